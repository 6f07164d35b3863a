"""Fewer triangles: the same surface up to the edge of a cell."""

import numpy as np

from ocfuse.lab.robot_cell.world import simplified

N = 40


def sheet():
    """Return a fine sheet of triangles over the unit square, half of them without texture."""
    grid = [(i / N, j / N) for i in range(N + 1) for j in range(N + 1)]
    lines = ["mtllib some.mtl", "usemtl one", *(f"v {x} {y} 0" for x, y in grid)]
    lines += ["vt 0.5 0.25", "vn 0 0 1"]
    for i in range(N):
        if i == N // 2:
            lines.append("usemtl two")
        middle = "1" if i < N // 2 else ""
        for j in range(N):
            a, b = i * (N + 1) + j + 1, (i + 1) * (N + 1) + j + 1
            for corners in ((a, b, b + 1), (a, b + 1, a + 1)):
                lines.append("f " + " ".join(f"{c}/{middle}/1" for c in corners))
    return "\n".join(lines)


def parsed(text):
    lines = [line.split() for line in text.splitlines()]
    points = np.array([[float(v) for v in line[1:]] for line in lines if line[0] == "v"])
    faces = [[int(c.split("/")[0]) - 1 for c in line[1:]] for line in lines if line[0] == "f"]
    return points, np.array(faces)


def area(points, faces):
    a, b, c = (points[faces[:, i]] for i in range(3))
    return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2


def test_a_sheet_keeps_its_place_and_loses_triangles():
    points, faces = parsed(simplified(sheet(), cell=0.1))
    before = parsed(sheet())
    assert len(faces) < len(before[1]) / 4
    assert area(*before).sum() == np.float64(1.0).round(9)
    # the rim moves inwards by less than a cell; there is no hole and no overlap
    assert 0.8 < area(points, faces).sum() <= 1.0
    assert area(points, faces).min() > 0
    assert points.min() >= 0
    assert points.max() <= 1


def test_materials_textures_and_the_way_triangles_look_are_kept():
    text = simplified(sheet(), cell=0.1)
    assert [line for line in text.splitlines() if line.startswith(("usemtl", "mtllib"))] == [
        "mtllib some.mtl",
        "usemtl one",
        "usemtl two",
    ]
    one, two = text.split("usemtl two")
    assert "vt 0.500000 0.250000" in one
    assert "vt 0.500000 0.250000" not in two
    points, faces = parsed(text)
    a, b, c = (points[faces[:, i]] for i in range(3))
    assert np.all(np.cross(b - a, c - a)[:, 2] > 0)


def test_a_tiny_cell_changes_nothing():
    before, after = parsed(sheet()), parsed(simplified(sheet(), cell=0.001))
    assert len(after[1]) == len(before[1])
    assert np.isclose(area(*after).sum(), 1.0)
