"""Pictures of the account: all are drawn, text stays text, and they do not change."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("matplotlib")

from benchmarks.paper.figures import draw
from tests.lab.paper.records import hand_made

CELL = {
    "printed": 2.0,
    "runs": [
        {"interior_point": 1.0, "paper": 2.0, "strong": 0.5}
        | {"is_paper_capped": True, "is_strong_capped": False}
    ],
}
NORMS, GAPS = (32 / 31, 8 / 7, 2.0, 100.0), (0.01, 0.001, 0.0001)


@pytest.mark.slow
def test_pictures(tmp_path):
    cells = [{**CELL, "p": p, "tol": tol} for p in NORMS for tol in GAPS]
    ablation = tmp_path / "ablation.json"
    ablation.write_text(json.dumps({"data": {"local non-pure": cells}}))
    names = draw(hand_made(), ablation, tmp_path / "one")
    assert draw(hand_made(), ablation, tmp_path / "two") == names
    for name in names:
        text = (tmp_path / "one" / name).read_text()
        assert text == (tmp_path / "two" / name).read_text(), name
        tree = ElementTree.fromstring(text)
        assert [e for e in tree.iter() if e.tag.endswith("}text")], name
