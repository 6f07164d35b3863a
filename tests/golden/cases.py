"""Small models of every kind, and what each of them answers.

A case is a function that fits a model and a function that asks it. Every named pool, fusion,
normaliser, generator of pseudo-anomalies and criterion is a case: a new one is found by itself,
and fails until ``python -m tests.golden.write`` has recorded its answers.

Rows come from `numpy.random.RandomState`, whose stream NumPy promises never to change.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from ocfuse import FeatureEncoder, FusedDetector
from ocfuse.detectors import (
    ALP,
    GMM,
    KNN,
    KPCA,
    LOF,
    SVDD,
    Compressed,
    Forest,
    Mahalanobis,
    Marginal,
    OneClassGP,
    Pool,
    Whitened,
    make_pool,
)
from ocfuse.fusion import LocalLpFusion, LpFusion, make_fusion
from ocfuse.fusion.local_lp import Neighbourhood
from ocfuse.fusion.locality import Locality
from ocfuse.negatives import (
    Gauss,
    Mirror,
    Mixture,
    PCShuffle,
    Shuffle,
    Swap,
    Uniform,
    make_negatives,
)
from ocfuse.scores import TailProbability, make_normaliser
from ocfuse.streaming import Course, StreamDetector, StreamTable, blocks
from ocfuse.tables import TableDetector
from ocfuse.tuning import Search, make_criterion
from ocfuse.vision import PatchGaussian, PatchKNN, PictureDetector, PooledMembers
from tests.golden.record import SINGLE, TOLERANCE
from tests.vision.cases import Blocks, runs

#: The type that is not ours in a model file: a network for pictures that needs no weights.
TRUSTED = ["tests.vision.cases.Blocks"]

Answers = dict[str, Any]
FEW = [("gmm", GMM(1)), ("knn", KNN(3))]
#: Every detector of ours; kernel members of all rows, and by way of landmarks.
EVERY = [
    ("alp", ALP()),
    ("compressed", Compressed(KNN(3))),
    ("forest", Forest(8, rows_per_tree=16)),
    ("gmm", GMM(2)),
    ("gp", OneClassGP()),
    ("gp-landmarks", OneClassGP(landmarks=15)),
    ("knn", KNN(3)),
    ("kpca", KPCA()),
    ("kpca-landmarks", KPCA(landmarks=15)),
    ("lof", LOF((4, 8))),
    ("maha", Mahalanobis()),
    ("marginal", Marginal()),
    ("svdd", SVDD()),
    ("svdd-landmarks", SVDD(landmarks=15)),
    ("whitened", Whitened(KPCA())),
]
#: Members of scikit-learn.
FOREIGN = [
    ("isolation", IsolationForest(n_estimators=5, random_state=0)),
    ("mixture", GaussianMixture(2, random_state=0)),
    ("machine", make_pipeline(StandardScaler(), OneClassSVM(gamma="scale"))),
]
#: Fusions whose weights a solver finds, and pools that hold an SVDD.
SOLVED = ("lp", "local-lp")
WITH_SVDD = ("paper", "paper-all", "wide")
#: Fields of an explanation that are recorded.
ARRAYS = ("score", "p_value", "weights", "base", "contributions", "local_p", "nearest_rows",
          "nearest_distances", "attributions", "maps")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """How a model is fitted and asked.

    Parameters
    ----------
    fit : function
        Returns the model.
    ask : function
        Returns the answers of a model.
    is_kept : bool, default=False
        Whether a model file is kept.
    is_iterated : bool, default=False
        Whether a fit goes on until something is below a tolerance, or picks the best of nearly
        equal candidates: a last bit then decides where it ends, so that answers of two fits
        can only be compared on one kind of machine.
    elsewhere : float, default=1e-9
        How far numbers may differ on another kind of machine, relative to the largest: 1e-5 in
        single precision, 1e-4 where a kernel of landmarks is nearly singular.
    """

    fit: Callable[[], Any]
    ask: Callable[[Any], Answers]
    is_kept: bool = False
    is_iterated: bool = False
    elsewhere: float = TOLERANCE


def numbers(n: int, seed: int = 0) -> Any:
    """Return normal rows of four columns that depend on each other."""
    random = np.random.RandomState(seed)
    flow, load = random.normal(size=(2, n))
    return np.column_stack(
        [flow, load, flow - load / 2 + 0.2 * random.normal(size=n), np.abs(random.normal(size=n))]
    )


def new_numbers() -> Any:
    """Return rows of which the last four are not normal."""
    rows = numbers(10, seed=1)
    rows[6:] += [[4, 0, 0, 0], [0, -3, 3, 0], [0, 0, 0, 9], [30, -30, 30, 30]]
    return rows


def labels(n: int) -> Any:
    """Return labels of training rows: some anomalies, some unknown."""
    y = np.ones(n)
    y[::9], y[1::4] = -1, 0
    return y


def labelled_numbers(n: int) -> tuple[Any, Any]:
    """Return rows and labels; rows with the label of an anomaly are far out."""
    rows, y = numbers(n), labels(n)
    rows[y == -1, 1] += 4
    return rows, y


def table(n: int, seed: int = 0) -> pd.DataFrame:
    """Return a table with numbers, gaps, categories, a name and a time of every row."""
    random = np.random.RandomState(seed)
    flow = random.normal(size=n)
    current = np.where(random.uniform(size=n) < 0.15, np.nan, 2 * flow + random.normal(size=n))
    return pd.DataFrame(
        {
            "part": [f"P-{seed}-{i:04d}" for i in range(n)],
            "when": pd.date_range("2026-01-05", periods=n, freq="min"),
            "flow": flow,
            "current": current,
            "pressure": np.round(5 + 0.1 * random.normal(size=n), 2),
            "colour": np.take(["red", "green", "blue"], random.randint(0, 3, size=n)),
            "shift": np.where(flow > 0, "day", "night"),
            "tool": random.randint(1, 4, size=n),
        }
    )


def new_table() -> pd.DataFrame:
    """Return rows with a category and a gap that training had not, and far values."""
    rows = table(8, seed=1)
    rows.loc[3, "colour"] = "violet"
    rows.loc[4, "pressure"] = np.nan
    rows.loc[5, "flow"] = 9.0
    rows.loc[6, "shift"] = None
    rows.loc[7, ["flow", "current", "pressure"]] = [-6.0, 12.0, 9.5]
    return rows


def plant(n_runs: int = 5, n: int = 30, seed: int = 0) -> pd.DataFrame:
    """Return runs of two sensors, with a gap, the file and the progress of every sample."""
    frames = []
    for run in range(n_runs):
        random = np.random.RandomState(100 * seed + run)
        flow = np.sin(np.arange(n) / 4) + 0.2 * random.normal(size=n)
        current = 0.5 * flow + 0.2 * random.normal(size=n)
        current[7] = np.nan
        frames.append(
            pd.DataFrame(
                {
                    "file": f"run-{seed}-{run}.csv",
                    "flow": flow,
                    "current": current,
                    "progress": np.linspace(0, 1, n),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def new_plant() -> pd.DataFrame:
    """Return two runs, one of which goes wrong."""
    rows = plant(2, 20, seed=1)
    rows.loc[32:, "current"] += 3.0
    return rows


# -- how models are asked ---------------------------------------------------------------------


def explained(found: Any, rows: int = 2) -> Answers:
    """Return the arrays and the words of an explanation."""
    names = [field.name for field in fields(found) if field.name in ARRAYS]
    answers: Answers = {f"explain {name}": getattr(found, name) for name in names}
    return answers | {"explain words": [found.describe(row) for row in range(rows)]}


def ask_rows(X: Any, context: Any = None) -> Callable[[Any], Answers]:
    """Return what asks a `FusedDetector` all that it knows of some rows."""
    few = None if context is None else context[-2:]

    def ask(model: Any) -> Answers:
        return {
            "scores": model.score_samples(X, context),
            "p-values": model.p_values(X, context),
            "probabilities": model.predict_proba(X, context),
            "discoveries": model.discoveries(X, 0.2, context),
            "members": model.transform(X),
            "offset": [model.offset_, model.threshold_rate_],
            "held-out scores": model.training_scores_,
            "left out": model.trimmed_rows_,
            **explained(model.explain(X[-2:], few)),
        }

    return ask


def ask_many(X: Any) -> Callable[[Any], Answers]:
    """Return what asks a `FusedDetector` of many rows, of which few are recorded."""

    def ask(model: Any) -> Answers:
        return {
            "scores": model.score_samples(X),
            "p-values": model.p_values(X),
            "members": model.transform(X),
            "offset": model.offset_,
            "some held-out scores": model.training_scores_[::97],
        }

    return ask


def ask_scores(X: Any) -> Callable[[Any], Answers]:
    """Return what asks a detector alone."""
    return lambda model: {"scores": model.score_samples(X), "offset": model.offset_}


def ask_table(rows: Any) -> Callable[[Any], Answers]:
    """Return what asks a `TableDetector`."""

    def ask(model: Any) -> Answers:
        return {
            **_columns(model.score(rows, why="all")),
            "held-out scores": model.detector_.training_scores_,
            **explained(model.explain(rows.iloc[-2:])),
        }

    return ask


def ask_stream(rows: Any, runs: Any, context: Any = None) -> Callable[[Any], Answers]:
    """Return what asks a `StreamDetector`: recorded runs, and a live stream that is resumed."""
    last = [len(rows) - 2, len(rows) - 1]

    def ask(model: Any) -> Answers:
        return {
            "scores": model.score_samples(rows, runs, context=context),
            "p-values": model.p_values(rows, runs, context=context),
            "features": model.features(rows, runs, context=context),
            "live scores": _live(model, np.asarray(rows), context),
            "offset": model.offset_,
            "drift": model.drift_ratio_,
            "held-out scores": model.training_scores_,
            **explained(model.explain(rows, last, runs, context=context)),
        }

    return ask


def _live(model: Any, rows: Any, context: Any) -> Any:
    """Score samples one by one and in a chunk, with a checkpoint between."""
    situation = [None] * len(rows) if context is None else context
    model.reset()
    one_by_one = [model.score_one(rows[i], context=situation[i]) for i in range(12)]
    with tempfile.TemporaryDirectory() as folder:
        path = model.checkpoint(Path(folder) / "state.ocf")
        model.reset().resume(path)
    later = None if context is None else context[12:20]
    return [*one_by_one, *model.score_chunk(rows[12:20], context=later)]


def ask_stream_table(rows: Any) -> Callable[[Any], Answers]:
    """Return what asks a `StreamTable`: whole runs, and rows as they come."""

    def ask(model: Any) -> Answers:
        live = model.restart().score_rows(rows.iloc[:12])
        return {
            **_columns(model.score(rows)),
            "live scores": live["score"].to_numpy(),
            **explained(model.explain(rows, [len(rows) - 2, len(rows) - 1])),
        }

    return ask


def ask_pictures(pictures: Any, context: Any = None) -> Callable[[Any], Answers]:
    """Return what asks a `PictureDetector`."""
    few = None if context is None else context[-2:]

    def ask(model: Any) -> Answers:
        return {
            "scores": model.score_samples(pictures, context),
            "p-values": model.p_values(pictures, context),
            "members": model.transform_raw(pictures, context),
            "offset": [model.offset_, model.threshold_rate_],
            "held-out scores": model.training_scores_,
            **explained(model.explain(pictures[-2:], few)),
        }

    return ask


def _columns(frame: pd.DataFrame) -> Answers:
    """Return the columns of a result, times as texts."""
    found = {}
    for name, column in frame.items():
        is_number = pd.api.types.is_numeric_dtype(column.dtype)
        found[f"column {name}"] = (
            column.to_numpy(dtype=float, na_value=np.nan) if is_number else column.astype(str)
        )
    return found


# -- the cases --------------------------------------------------------------------------------


def names_of(make: Callable[..., Any], known: str) -> list[str]:
    """Return the names that a function such as `make_pool` knows: the keys of its table."""
    tables = [
        value
        for value in vars(sys.modules[make.__module__]).values()
        if isinstance(value, dict) and known in value and all(map(callable, value.values()))
    ]
    assert len(tables) == 1, f"{make.__name__} has {len(tables)} tables of names"
    return list(tables[0])


def rows_case(members: Any, *, kept: bool = False, iterated: bool = False, **options: Any) -> Case:
    """Return a case of rows without labels."""

    def fit() -> Any:
        return FusedDetector(members, random_state=0, **options).fit(numbers(50))

    return Case(fit, ask_rows(new_numbers()), kept, iterated)


def labelled_case(
    members: Any, *, kept: bool = False, iterated: bool = False, **options: Any
) -> Case:
    """Return a case of rows with labels."""

    def fit() -> Any:
        return FusedDetector(members, random_state=0, **options).fit(*labelled_numbers(50))

    return Case(fit, ask_rows(new_numbers()), kept, iterated)


def _by_name() -> dict[str, Case]:
    """Return a case for each name that a user can give."""
    cases = {}
    for name in names_of(make_pool, "default"):
        kept = name in ("default", "light", "paper")
        cases[f"pool {name}"] = rows_case(name, kept=kept, iterated=name in WITH_SVDD)
    for name in names_of(make_fusion, "competence"):
        small = name != "labelled"  # the case "labels" keeps a smaller one
        solved = name in SOLVED
        cases[f"fusion {name}"] = rows_case(FEW, fusion=name, kept=small, iterated=solved)
        if small:
            cases[f"fusion {name}, labels"] = labelled_case(FEW, fusion=name, iterated=solved)
    for name in names_of(make_normaliser, "min-max"):
        cases[f"normaliser {name}"] = rows_case(FEW, normaliser=name, kept=True)
    for name in names_of(make_negatives, "mixture"):
        cases[f"negatives {name}"] = rows_case(FEW, negatives=name)
    for name in names_of(make_criterion, "rpau"):
        make = labelled_case if name == "labels" else rows_case
        cases[f"tune {name}"] = make(FEW, tune=name, fusion="lp", kept=True, iterated=True)
    for name in ("standard", "robust", "none"):
        cases[f"encoder {name}"] = rows_case(FEW, encoder=name)
    return cases


def _grouped() -> Any:
    return FusedDetector(FEW, random_state=0).fit(numbers(60), groups=np.arange(60) % 12)


def _blocked() -> Any:
    return FusedDetector(FEW, random_state=0).fit(numbers(60), groups=blocks(60, purge=2))


def _with_context(fusion: Any = None) -> Any:
    rows, progress = numbers(60), np.linspace(0, 1, 60)
    rows[:, 0] += 3 * progress
    return FusedDetector(FEW, fusion=fusion, random_state=0).fit(rows, context=progress)


def _copies() -> Any:
    rows = numbers(60)
    rows[50:] = rows[20:30]
    rows[3] = 40.0
    return FusedDetector(FEW, random_state=0).fit(rows)


def _calibrated() -> Any:
    model = FusedDetector(FEW, false_alarm_rate=0.1, random_state=0).fit(numbers(40))
    return model.calibrate(numbers(30, seed=2))


def _calibrated_groups() -> Any:
    model = FusedDetector(FEW, false_alarm_rate=0.2, random_state=0).fit(numbers(40))
    return model.calibrate(numbers(30, seed=2), groups=np.arange(30) // 3)


def _moved_threshold() -> Any:
    model = FusedDetector(FEW, random_state=0).fit(numbers(40))
    return model.fit_threshold(new_numbers(), np.repeat([1, -1], [6, 4]))


def _searched() -> Any:
    grid = {"p": [4 / 3, 2, 4], "normaliser": ["min-max", "z-score"]}
    search = Search("pseudo-negatives", grid, select_members=True)
    members = [("knn-1", KNN(1)), ("knn-5", KNN(5)), ("gmm", GMM(1))]
    return FusedDetector(members, fusion="lp", tune=search, random_state=0).fit(numbers(50))


def _objects() -> Any:
    fusion = LocalLpFusion(
        kernel=Neighbourhood("knn", 8), anchors="query", locality=Locality(kappa=2.0)
    )
    generators = [Gauss(), Mirror(), PCShuffle(), Shuffle(), Swap(), Uniform(0.5)]
    return FusedDetector(
        FEW,
        fusion=fusion,
        normaliser=TailProbability(),
        negatives=Mixture(generators),
        encoder=FeatureEncoder("robust"),
        random_state=np.random.RandomState(0),
    ).fit(numbers(50))


def _many() -> Any:
    members = [("gp", OneClassGP(landmarks=80)), ("kpca", KPCA(landmarks=80)),
               ("svdd", SVDD(landmarks=80)), ("knn", KNN(3))]  # fmt: skip
    return FusedDetector(members, random_state=0).fit(numbers(2300))


def _many_columns() -> Any:
    return KNN(3).fit(np.random.RandomState(0).normal(size=(6000, 360)))


def _mixed(**options: Any) -> Any:
    rows = table(60).drop(columns=["part", "when"])
    return FusedDetector(FEW, random_state=0, **options).fit(rows)


def _mixed_gaps() -> Any:
    return _mixed(encoder=FeatureEncoder(categories=["tool"])).set_gaps("alarm")


def _table(**options: Any) -> Any:
    return TableDetector(FusedDetector(FEW, random_state=0), **options).fit(table(60))


def _labelled_table() -> Any:
    rows = table(60).assign(state=np.where(np.arange(60) % 9 == 4, "broken", "fine"))
    rows.loc[rows["state"] == "broken", "flow"] += 5
    few = FusedDetector(FEW, fusion="lp", random_state=0)
    return TableDetector(few, label="state", normal="fine", ignore="tool").fit(rows)


def _grouped_table() -> Any:
    rows = table(60).assign(machine=np.arange(60) // 5)
    few = FusedDetector(FEW, false_alarm_rate=0.1, random_state=0)
    return TableDetector(few, group="machine", categories="tool", id="part").fit(rows)


def _stream(**options: Any) -> Any:
    rows = plant()
    model = StreamDetector(FusedDetector(FEW, random_state=0), windows=(3, 6), **options)
    return model.fit(rows[["flow", "current"]], runs=rows["file"])


def _stream_course() -> Any:
    rows = plant()
    few = FusedDetector(FEW, random_state=0)
    model = StreamDetector(few, windows=(3,), course=Course(5))
    return model.fit(
        rows[["flow", "current"]], runs=rows["file"], context=rows["progress"].to_numpy()
    )


def _stream_alone() -> Any:
    rows = plant(1, 90)
    model = StreamDetector(FusedDetector(FEW, random_state=0), windows=(4,))
    return model.fit(rows[["flow", "current"]], time=np.arange(90) * 0.5)


def _stream_table() -> Any:
    stream = StreamDetector(FusedDetector(FEW, random_state=0), windows=(3,))
    return StreamTable(stream, ignore="progress").fit(plant())


def _stream_table_context() -> Any:
    stream = StreamDetector(FusedDetector(FEW, random_state=0), windows=(3,), course=Course(5))
    return StreamTable(stream, context="progress").fit(plant())


def _pictures(members: Any = None, **options: Any) -> Any:
    pictures, run, progress = runs(4, 6)
    model = PictureDetector(Blocks(), members=members, false_alarm_rate=0.2, random_state=0)
    given = {"groups": run, "context": progress}
    return model.fit(pictures, **{name: given[name] for name in options if options[name]})


def new_pictures() -> tuple[Any, Any]:
    """Return pictures, one of which has a dark spot, and their progress."""
    pictures, _, progress = runs(1, 6, seed=3)
    pictures[-1, 40:60, 40:60] //= 3
    return pictures, progress


def _of_pictures() -> dict[str, Case]:
    pictures, progress = new_pictures()
    patches = [("gaussian", PatchGaussian()), ("knn", PatchKNN())]
    whole = [("whole", PooledMembers(FusedDetector(FEW, random_state=0)))]
    return {
        "pictures": Case(partial(_pictures, patches), ask_pictures(pictures), True, True, SINGLE),
        "pictures, runs": Case(
            partial(_pictures, patches + whole, groups=True, context=True),
            ask_pictures(pictures, progress),
            True,
            True,
            SINGLE,
        ),
    }


def _of_streams() -> dict[str, Case]:
    rows = new_plant()
    sensors, run = rows[["flow", "current"]], rows["file"]
    progress = rows["progress"].to_numpy()
    return {
        "stream": Case(_stream, ask_stream(sensors, run), True),
        "stream, drift followed": Case(
            partial(_stream, drift="follow"), ask_stream(sensors, run), True
        ),
        "stream, course": Case(_stream_course, ask_stream(sensors, run, progress), True),
        "stream, one run": Case(_stream_alone, ask_stream(sensors, run), True),
        "stream table": Case(_stream_table, ask_stream_table(rows), True),
        "stream table, context": Case(_stream_table_context, ask_stream_table(rows), True),
    }


def _of_tables() -> dict[str, Case]:
    rows = new_table()
    plain = rows.drop(columns=["part", "when"])
    return {
        "categories and gaps": Case(_mixed, ask_rows(plain), True),
        "gaps raise alarms": Case(_mixed_gaps, ask_rows(plain), True),
        "table": Case(_table, ask_table(rows), True),
        "table, labels": Case(_labelled_table, ask_table(rows), True, True),
        "table, groups": Case(_grouped_table, ask_table(rows.assign(machine=99)), True),
    }


def _of_rows() -> dict[str, Case]:
    ask = ask_rows(new_numbers())
    situated = ask_rows(new_numbers(), np.linspace(0, 1, 10))
    local = LocalLpFusion(p=4, eta=0.5)
    return {
        "every detector": rows_case(Pool(EVERY), kept=True, iterated=True),
        "members of scikit-learn": rows_case(FOREIGN, kept=True),
        "local-lp, parameters": rows_case(FEW, fusion=local, kept=True, iterated=True),
        "lp, parameters": rows_case(FEW, fusion=LpFusion(p=8 / 7), kept=True, iterated=True),
        "labels": labelled_case(FEW, kept=True),
        "no pseudo-anomalies": rows_case(FEW, negatives=None),
        "groups": Case(_grouped, ask, True),
        "blocks of time": Case(_blocked, ask, True),
        "context": Case(_with_context, situated, True),
        "context, local-lp": Case(partial(_with_context, "local-lp"), situated, True, True),
        "copies": Case(_copies, ask, True),
        "calibrated": Case(_calibrated, ask, True),
        "calibrated by groups": Case(_calibrated_groups, ask, True),
        "moved threshold": Case(_moved_threshold, ask, True),
        "searched": Case(_searched, ask, True, True),
        "objects": Case(_objects, ask, True, True),
        "many rows": Case(_many, ask_many(new_numbers()), elsewhere=1e-4),
        "many columns": Case(
            _many_columns, ask_scores(np.random.RandomState(1).normal(size=(10, 360)))
        ),
    }


CASES = _by_name() | _of_rows() | _of_tables() | _of_streams() | _of_pictures()


def fitted(case: Case) -> tuple[Any, list[str]]:
    """Fit the model of a case; return it, and the kinds of warnings on the way."""
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        model = case.fit()
    return model, sorted({warning.category.__name__ for warning in caught})


def asked(case: Case, model: Any) -> Answers:
    """Return the answers of a model as JSON has them.

    One thread, here and above: how a product of large matrices is divided decides how it is
    rounded.
    """
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return {name: np.asarray(value).tolist() for name, value in case.ask(model).items()}
