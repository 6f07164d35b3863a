"""The log of the library."""

import logging
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import ocfuse
from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN
from ocfuse.tables import TableDetector

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.OcfuseWarning")

ROWS = np.random.default_rng(0).normal(size=(60, 3))
MEMBERS = [("knn", KNN()), ("gmm", GMM(n_components=1))]


def detector():
    return FusedDetector(MEMBERS, fusion="sum", random_state=0)


def test_info_says_what_was_learned_written_and_read(caplog, tmp_path):
    caplog.set_level(logging.INFO, "ocfuse")
    fitted = detector().fit(ROWS, np.r_[np.ones(58), -np.ones(2)])
    ocfuse.load(fitted.save(tmp_path / "m.ocf"))
    words = [record.getMessage() for record in caplog.records]
    assert words[0] == "fit: 60 rows, 2 labelled anomalies"
    assert words[1].startswith("fitted: members knn, gmm; SumRule; rows left out: 0; threshold ")
    assert words[2].startswith(f"wrote {tmp_path / 'm.ocf'}: FusedDetector, ")
    assert words[3].startswith(f"read {tmp_path / 'm.ocf'}: FusedDetector, by ocfuse ")
    assert {record.name.split(".")[0] for record in caplog.records} == {"ocfuse"}


def test_debug_says_every_step(caplog):
    caplog.set_level(logging.DEBUG, "ocfuse.ensemble")
    fitted = detector().fit(ROWS)
    steps = [r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG]
    assert any(step.startswith("fit: knn (") for step in steps)
    caplog.set_level(logging.CRITICAL, "ocfuse.ensemble")
    again = detector().fit(ROWS)
    np.testing.assert_array_equal(again.score_samples(ROWS), fitted.score_samples(ROWS))


def test_tables_say_what_their_columns_hold(caplog):
    caplog.set_level(logging.INFO, "ocfuse.tables")
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(mode=["x", "y"] * 30)
    TableDetector(detector()).fit(frame)
    assert "columns: a (number), b (number), c (number), mode (category)" in caplog.text


def test_nothing_is_written_by_default():
    code = (
        "import logging, numpy as np; from ocfuse import FusedDetector\n"
        "FusedDetector('light', fusion='sum').fit(np.random.default_rng(0).normal(size=(40, 2)))\n"
        "assert any(isinstance(h, logging.NullHandler) "
        "for h in logging.getLogger('ocfuse').handlers)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
