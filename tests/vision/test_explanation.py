"""Marks of unusual places: where they are, and how large."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocfuse.vision.explanation import PictureExplanation
from tests.vision.cases import needs

needs("PIL.Image")


def explained(unusual, limit=3.0):
    """Return the explanation of one picture with this map."""
    maps = np.asarray(unusual, dtype=np.float32)[np.newaxis]
    one, none = np.zeros(1), np.zeros((1, 0))
    return PictureExplanation(one, -1.0, one, [], none, none, one[:0], none, maps, limit)


maps = hnp.arrays(np.float32, (8, 8), elements=st.floats(-2, 50, width=16))


@given(unusual=maps)
@example(unusual=4.0 * (np.arange(64).reshape(8, 8) == 0))
@settings(max_examples=60, deadline=None)
def test_the_most_unusual_place_is_marked_if_it_is_beyond_the_limit(unusual):
    explanation = explained(unusual)
    marked, (y, x) = explanation.marks(), explanation.place()
    assert marked[int(y * len(marked)), int(x * len(marked))] == (unusual.max() > 3.0)
    assert marked.any() == (unusual.max() > 3.0)
    spot = explanation.spot(0, (64, 32, 3))
    assert (spot.box is None) == (not marked.any())
    if spot.box is not None:
        left, top, width, height = spot.box
        assert left <= spot.x < left + width <= 32
        assert top <= spot.y < top + height <= 64


@given(unusual=maps, factor=st.floats(0.125, 8, width=16))
@settings(max_examples=40, deadline=None)
def test_marks_do_not_depend_on_the_unit_of_the_map(unusual, factor):
    factor = 2.0 ** round(np.log2(factor))  # exact, so that ties stay ties
    scaled = explained(unusual * np.float32(factor), 3.0 * factor)
    assert (scaled.marks() == explained(unusual).marks()).all()


@pytest.mark.parametrize("height", [6.0, 20.0, 500.0])
def test_a_stronger_anomaly_is_not_marked_larger_than_its_half_height(height):
    y, x = np.mgrid[:16, :16]
    bump = height * np.exp(-((y - 8) ** 2 + (x - 8) ** 2) / (2 * 1.5**2))
    area = explained(bump).marks().mean() * 256
    assert area <= 1.15 * np.pi * (1.5 * np.sqrt(2 * np.log(2))) ** 2


def test_a_weak_defect_far_from_a_strong_one_is_marked_too():
    unusual = np.zeros((16, 16))
    unusual[3, 3], unusual[12, 12] = 200.0, 8.0
    marked = explained(unusual).marks()
    assert marked[int(3.5 * 9), int(3.5 * 9)]
    assert marked[int(12.5 * 9), int(12.5 * 9)]


def test_an_overlay_has_the_shape_of_its_picture_and_changes_marked_pixels_only():
    unusual = np.zeros((8, 8))
    unusual[2, 6] = 30.0
    picture = np.full((40, 100, 3), 120, dtype=np.uint8)
    drawn = explained(unusual).overlay(0, picture)
    assert drawn.shape == picture.shape
    changed = (drawn != picture).any(axis=2)
    left, top, width, height = explained(unusual).spot(0, picture.shape).box
    assert changed[top : top + height, left : left + width].mean() > 0.4
    assert changed.sum() <= width * height
    assert (picture == 120).all()


def test_without_maps_nothing_is_marked():
    explanation = explained(np.empty((0, 0)))
    picture = np.zeros((10, 10, 3), dtype=np.uint8)
    assert explanation.spot(0, picture.shape) is None
    assert (explanation.overlay(0, picture) == 0).all()
