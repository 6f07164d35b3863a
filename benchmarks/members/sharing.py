"""Part "sharing": nine kernel members on one Gram, apart, and as public counterparts."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from benchmarks.members.rivals import Array, PyodKernelPCA, Rival, SklearnGP, SklearnSVM
from benchmarks.report import Data, Report, Table, Target, number
from ocfuse.detectors.base import KernelDetector, out_of_fold_scores
from ocfuse.detectors.gp import OneClassGP
from ocfuse.detectors.gram import Gram, Reference
from ocfuse.detectors.kpca import KPCA
from ocfuse.detectors.svdd import SVDD

WIDTHS = (1.0, 0.5, 0.25)
COLUMNS, QUERIES = 20, 1_000
#: rows: rounds
SIZES = {2_000: 3, 5_000: 1}
QUICK_SIZES = {300: 3, 1_200: 1}
RIVALS: dict[type[KernelDetector], type[Rival]] = {
    SVDD: SklearnSVM,
    OneClassGP: SklearnGP,
    KPCA: PyodKernelPCA,
}
NAMES = {
    SklearnSVM: "scikit-learn OneClassSVM",
    SklearnGP: "scikit-learn GaussianProcessRegressor",
    PyodKernelPCA: "PyOD KPCA",
}
APART_TARGET, RIVAL_TARGET = 2.0, 5.0


@dataclass
class Watch:
    """CPU seconds of named stages."""

    stages: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.process_time()
        yield
        self.stages[name] += time.process_time() - begin


def run(quick: bool) -> Report:
    sizes = QUICK_SIZES if quick else SIZES
    with threadpool_limits(1):
        for way in WAYS.values():  # first calls load libraries
            way(*rows(200))
        found = {n: measured(n, rounds) for n, rounds in sizes.items()}
    return Report(
        "Nine kernel members: together, apart, and public counterparts",
        f"SVDD, OneClassGP and KPCA at the widths {', '.join(map(str, WIDTHS))}, all rows "
        f"(`max_samples=None`), {COLUMNS} Gaussian columns: fit, out-of-fold scores of the "
        f"training rows, and scores of {QUERIES:,} new rows. CPU seconds of one thread, medians "
        f"over {', '.join(f'{r} rounds at n = {n:,}' for n, r in sizes.items())}, in turn. "
        "Counterparts have the same kernels, nu, noise and number of components; they have no "
        "out-of-fold scores but by refitting on four folds.",
        targets(found),
        [totals(found), *(members(n, each) for n, each in found.items()), stages(found)],
        {str(n): each for n, each in found.items()},
    )


def rows(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, COLUMNS)), rng.normal(size=(QUERIES, COLUMNS))


def nine() -> list[KernelDetector]:
    return [kind(width=width, max_samples=None) for width in WIDTHS for kind in RIVALS]


def together(X: Array, Q: Array) -> Watch:
    watch = Watch()
    with watch.stage("distances"):
        gram = Gram(X)
        _ = gram.squared_distances
    with watch.stage("kernels"):
        for width in WIDTHS:
            gram.kernel(width)
    members = sorted(nine(), key=lambda member: member.fit_rank)
    for member in members:
        with watch.stage(f"{type(member).__name__}: fit"):
            member.fit_gram(gram)
        with watch.stage(f"{type(member).__name__}: out-of-fold scores"):
            out_of_fold_scores(member, gram, [])
    with watch.stage("scores of new rows"):
        query = gram.query(Q)
        for member in members:
            member.score_query(query)
    return watch


def apart(X: Array, Q: Array) -> Watch:
    watch = Watch()
    for member in nine():
        with watch.stage(type(member).__name__):
            member.fit(X).score_samples(Q)
    return watch


def counterparts(X: Array, Q: Array) -> Watch:
    watch = Watch()
    scale = Reference(X).scale
    for width in WIDTHS:
        for rival in RIVALS.values():
            with watch.stage(rival.__name__):
                rival(width * scale).fit(X).score(Q)
    return watch


def refits(X: Array, Q: Array) -> Watch:
    watch = Watch()
    scale = Reference(X).scale
    for width in WIDTHS:
        for rival in RIVALS.values():
            with watch.stage(rival.__name__):
                rival(width * scale).out_of_fold(X)
    return watch


WAYS: dict[str, Callable[[Array, Array], Watch]] = {
    "together": together,
    "apart": apart,
    "counterparts": counterparts,
    "refits": refits,
}


def measured(n: int, rounds: int) -> Data:
    X, Q = rows(n)
    runs: dict[str, list[dict[str, float]]] = defaultdict(list)
    for _ in range(rounds):
        for name, way in WAYS.items():
            runs[name].append(dict(way(X, Q).stages))
    found: Data = {
        name: {stage: median(each[stage] for each in all_runs) for stage in all_runs[0]}
        for name, all_runs in runs.items()
    }
    for name, all_runs in runs.items():
        found[f"{name} in all"] = median(sum(each.values()) for each in all_runs)
    return found | {"agreement": agreement(X, Q), "runs": runs}


def agreement(X: Array, Q: Array) -> dict[str, float]:
    """Return rank correlations with the counterparts: both must do the same work."""
    scale = Reference(X).scale
    return {
        kind.__name__: float(
            spearmanr(
                kind(max_samples=None).fit(X).score_samples(Q), rival(scale).fit(X).score(Q)
            ).statistic
        )
        for kind, rival in RIVALS.items()
    }


@dataclass(frozen=True)
class Speedups:
    """How many times faster nine members are together, each time for the same work."""

    apart: float
    rivals: float  # fit and score alone
    out_of_fold: float  # out-of-fold scores too


def speedups(each: Data) -> Speedups:
    ours, theirs = each["together in all"], each["counterparts in all"]
    plain = ours - sum(
        t for name, t in each["together"].items() if name.endswith("out-of-fold scores")
    )
    return Speedups(
        apart=each["apart in all"] / ours,
        rivals=theirs / plain,
        out_of_fold=(theirs + each["refits in all"]) / ours,
    )


def totals(found: Data) -> Table:
    table = []
    for n, each in found.items():
        times = speedups(each)
        names = ("together", "apart", "counterparts", "refits")
        taken = [number(each[f"{name} in all"]) for name in names]
        ratios = [f"{ratio:.2f}" for ratio in (times.apart, times.rivals, times.out_of_fold)]
        table.append([f"{n:,}", *taken, *ratios])
    header = ["n", "together, s", "apart, s", "counterparts: fit and score, s", "their refits, s"]
    header += ["apart / together", "counterparts, fit and score", "counterparts, with refits"]
    note = (
        "Ours include out-of-fold scores. The ratios compare like with like: fit and score without "
        "out-of-fold scores on both sides, then with them on both sides."
    )
    return Table("In all", header, table, note)


def members(n: int, each: Data) -> Table:
    table = []
    for kind, rival in RIVALS.items():
        ours, theirs = each["apart"][kind.__name__], each["counterparts"][rival.__name__]
        more = each["refits"][rival.__name__]
        table.append(
            [
                f"{kind.__name__} / {NAMES[rival]}",
                number(ours),
                number(theirs),
                number(more),
                f"{(theirs + more) / ours:.2f}",
                f"{each['agreement'][kind.__name__]:.6f}",
            ]
        )
    header = ["three widths", "ours apart, s", "counterpart, s", "its refits, s"]
    header += ["with refits / ours", "rank correlation"]
    return Table(f"One by one, n = {n:,}", header, table)


def stages(found: Data) -> Table:
    names = next(iter(found.values()))["together"]
    table = [[name, *(share(each, name) for each in found.values())] for name in names]
    return Table(
        "Where the time goes together, s", ["stage", *(f"n = {n:,}" for n in found)], table
    )


def share(each: Data, name: str) -> str:
    taken = each["together"][name]
    return f"{number(taken)} ({taken / each['together in all']:.0%})"


def targets(found: Data) -> list[Target]:
    promises = {
        f"together {APART_TARGET:g}x faster than apart": (APART_TARGET, "apart"),
        f"{RIVAL_TARGET:g}x faster than counterparts, fit and score": (RIVAL_TARGET, "rivals"),
        f"{RIVAL_TARGET:g}x faster than counterparts, out-of-fold scores too": (
            RIVAL_TARGET,
            "out_of_fold",
        ),
    }
    met = []
    for n, each in found.items():
        for promise, (factor, kind) in promises.items():
            ratio = getattr(speedups(each), kind)
            met.append(Target(f"{promise}, n = {n:,}", f"{ratio:.2f}x", ratio >= factor))
    return met
