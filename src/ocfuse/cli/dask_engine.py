"""The work of `ocfuse fit` and `ocfuse score` with ``--engine dask``."""

from pathlib import Path
from time import perf_counter
from typing import Any

from ocfuse import distributed
from ocfuse.cli.output import collected, in_words, progress, warn, warn_of
from ocfuse.cli.score import Tally, tell
from ocfuse.distributed import Outcome, connected
from ocfuse.exceptions import TableError
from ocfuse.persistence import check_storable
from ocfuse.report.words import count
from ocfuse.system.progress import show_progress
from ocfuse.tables import TableDetector


def score_folder(
    model: TableDetector,
    data: str,
    out: Path,
    cluster: dict[str, Any],
    *,
    json: bool,
    quiet: bool,
    keep_going: bool,
) -> Tally:
    """Write the scores of all files of a folder; return how many rows there are."""
    with connected(**cluster) as client, progress(quiet) as bar:

        def show(done: int, total: int) -> None:
            bar("score", f"{done:,} of {count(total, 'file')}", done, total)

        outcome = distributed.score(
            model, data, out, client=client, keep_going=keep_going, progress=show
        )
    with collected() as notes:
        outcome.give_warnings()
    tally = Tally(outcome.rows, outcome.anomalies, unknown=outcome.without_score)
    notes += tally.notes()
    if not quiet:
        warn_of(notes)
    told = {
        "rows": outcome.rows,
        "anomalies": outcome.anomalies,
        "without_score": outcome.without_score,
        "threshold": model.detector_.offset_,
        "file": str(out),
        "files": outcome.files,
        "resumed": outcome.resumed,
        "failed": outcome.failed,
        "warnings": notes,
    }
    tell(told, json, quiet)
    _refuse_failed(outcome)
    return tally


def learn_from_folder(
    model: TableDetector,
    data: str,
    out: Path,
    cluster: dict[str, Any],
    *,
    rows: int | None,
    seed: int,
    quiet: bool,
) -> dict[str, Any]:
    """Fit and save a model; return the file, the seconds and what was warned of."""
    check_storable(model)
    with (
        collected() as notes,
        progress(quiet) as bar,
        show_progress(bar),
        connected(**cluster) as client,
    ):
        start = perf_counter()
        size = {} if rows is None else {"rows": rows}
        distributed.fit(model, data, client=client, seed=seed, **size)
        seconds = perf_counter() - start
    model.save(out)
    return {"file": str(out), "seconds": round(seconds, 2), "warnings": notes}


def _refuse_failed(outcome: Outcome) -> None:
    """Tell of files without scores, which are no success, and end with an error."""
    if not outcome.failed:
        return
    for why in outcome.failed.values():
        warn(in_words(why))
    raise TableError(
        f"There are no scores of {count(len(outcome.failed), 'file')}; those of the other "
        f"{outcome.files:,} are written."
    )
