"""Detectors, rows and reports that several tests look at."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from ocfuse import FusedDetector
from ocfuse.ensemble.report import report_data
from ocfuse.exceptions import CellsWarning
from ocfuse.report import ChannelCourse

N_NORMAL, N_ODD = 60, 8
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"


def normal_rows(n, seed):
    """Rows around a line, with a category that goes with nothing."""
    rng = np.random.default_rng(seed)
    position = rng.normal(size=n)
    noise = 0.3 * rng.normal(size=(n, 2))
    return pd.DataFrame(
        {
            "pressure": 5 + position + noise[:, 0],
            "flow": 2 * position + noise[:, 1],
            HOSTILE: rng.choice(["open", "shut"], size=n),
        }
    )


@cache
def fitted():
    """A detector of three columns, one of them categorical."""
    return FusedDetector("light", random_state=0).fit(normal_rows(200, 0))


@cache
def new_rows():
    """Normal rows, then odd ones, of which one has a hostile category."""
    rows = normal_rows(N_NORMAL + N_ODD, 1)
    rows.loc[N_NORMAL:, "pressure"] += 8.0
    rows.loc[N_NORMAL, HOSTILE] = HOSTILE
    return rows


@cache
def labels():
    """What is true of `new_rows`."""
    return np.repeat([1, -1], [N_NORMAL, N_ODD])


@cache
def dates():
    """One minute after another."""
    return np.datetime64("2026-11-16T09:00") + np.arange(N_NORMAL + N_ODD).astype("timedelta64[m]")


@cache
def full_data():
    """What a report with labels and times shows."""
    return _data(
        labels(),
        time=dates(),
        ids=[f"{HOSTILE} {i}" for i in range(N_NORMAL + N_ODD)],
        title=HOSTILE,
        card={HOSTILE: HOSTILE},
    )


@cache
def stream_data():
    """What a report of a stream shows."""
    course = ChannelCourse(
        name=HOSTILE,
        values=np.where(np.arange(N_NORMAL + N_ODD) % 20 == 7, np.nan, new_rows()["pressure"]),
        low=np.array([3.0]),
        high=np.array([7.0]),
    )
    readings = {int(row): HOSTILE for row in full_data().rows}
    return replace(full_data(), channels=(course,), channel_readings=readings)


@cache
def bare_data():
    """What a report of rows alone shows."""
    return _data(title="Rows alone")


def _data(*arguments, **options):
    """Return what a report shows of the new rows, whose hostile category is told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CellsWarning)
        return report_data(fitted(), new_rows(), *arguments, **options)
