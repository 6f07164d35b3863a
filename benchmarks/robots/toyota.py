"""Part "toyota": the Toyota HSR that places a book, if its recordings are there."""

from benchmarks.report import Report
from benchmarks.robots.cell import MOTION, compare, learn_ours, view_tables
from benchmarks.robots.motion import has_torch
from benchmarks.robots.recordings import TOYOTA_VARIABLE, load_toyota

TITLE = "Toyota HSR: which frames, and which runs, went wrong"
#: Thoduka, Gall and Ploeger (2021), per frame, with camera and body motion.
PUBLISHED = "0.804 and 0.549"


def run(quick: bool) -> Report:
    data = load_toyota()
    if data is None:
        return Report(TITLE, missing(), [], [])
    found = compare(data, learn_ours(data), quick)
    method = (
        f"{len(data.train.trials)} normal runs to learn from, {len(data.validation.trials)} to "
        f"tune and to set thresholds by, {len(data.test.trials)} to test. The controller tells no "
        "progress and there are no labelled anomalies apart from the test, so that there is no "
        f"row Non-pure. Published by Thoduka et al. (2021) on the same frames: AUC-ROC and AUC-PR "
        f"{PUBLISHED}, both by frame; a figure by run is not comparable. The recordings tell no "
        f"times: delays are in frames. {MOTION[has_torch()]}"
    )
    return Report(TITLE, method, [], view_tables(found), {"systems": found})


def missing() -> str:
    return (
        "Not measured: the recordings are not on this machine. Get record 4578539 of Zenodo, "
        "unpack it so that one folder holds `train`, `validation` and `test`, and name that folder "
        f"in `{TOYOTA_VARIABLE}`. Then `python -m benchmarks.robots toyota`."
    )
