"""Search: try settings of the normaliser and the fusion on shared score matrices."""

import math
import time
from collections.abc import Mapping, Sequence, Sized
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ocfuse.arrays import FloatArray
from ocfuse.detectors.members import seeded
from ocfuse.detectors.training import jobs_apart, results_of
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.crossfit import ScoredRows
from ocfuse.fusion.labelled import LabelledFusion
from ocfuse.fusion.local_lp import LocalLpFusion
from ocfuse.fusion.locality import Locality
from ocfuse.fusion.named import make_fusion
from ocfuse.scores import make_normaliser
from ocfuse.system.cache import caching
from ocfuse.system.progress import current_progress
from ocfuse.tuning.criteria import Criterion, Verdict, judge, judge_members, make_criterion
from ocfuse.tuning.splits import JudgedSplit, ScaledSplit, best_of_each, family, keep_columns

#: The norms that the paper tries, and the percentiles of its min-max.
PAPER_P = (32 / 31, 16 / 15, 8 / 7, 4 / 3, 2.0, 4.0, 8.0, 10.0, 100.0)
PAPER_RHO = tuple(float(rho) for rho in range(1, 11))

Candidate = dict[str, Any]


class Parts(BaseEstimator):  # type: ignore[misc]
    """A normaliser and a fusion, not fitted."""

    def __init__(self, normaliser: Any, fusion: Any) -> None:
        self.normaliser = normaliser
        self.fusion = fusion

    def written_out(self) -> "Parts":
        """Return a copy in which nested parts that are None have their defaults."""
        parts: Parts = clone(self)
        pending = [parts.fusion]
        while pending:
            fusion = pending.pop()
            if isinstance(fusion, LocalLpFusion) and fusion.locality is None:
                fusion.locality = Locality()
            if isinstance(fusion, CompetenceFusion) and fusion.locality is None:
                fusion.locality = Locality(kappa=1.0)
            if isinstance(fusion, LabelledFusion) and fusion.fusion is None:
                fusion.fusion = CompetenceFusion()
            for value in fusion.get_params(deep=False).values():
                if hasattr(value, "get_params") and not isinstance(value, type):
                    pending.append(value)
        return parts

    def changed(self, candidate: Candidate) -> "Parts":
        """Return a copy with the parameters of a candidate."""
        parts: Parts = clone(self)
        own = {key: clone(value, safe=False) for key, value in candidate.items()}
        # whole parts first: by name they have no parameters yet
        for key, make in (("normaliser", make_normaliser), ("fusion", make_fusion)):
            if key in own:
                own[key] = make(own[key])
        try:
            parts.set_params(**own)
        except ValueError as error:  # a whole part of the grid may lack what others have
            raise InvalidInputError(f"grid cannot be used. {error}") from error
        return parts

    def full_name(self, key: str) -> str:
        """Return the parameter that a key of a grid stands for."""
        known: dict[str, Any] = self.get_params(deep=True)
        if key in known:
            return key
        found = [name for name in known if name.rpartition("__")[2] == key]
        # of a fusion rather than of its parts, such as a classifier
        direct = [name for name in found if set(name.split("__")[:-1]) == {"fusion"}]
        if len(found) == 1 or len(direct) == 1:
            return (direct or found)[0]
        if found:
            raise InvalidInputError(
                f"{key!r} in grid may stand for {', '.join(found)}. Give one of these names."
            )
        raise InvalidInputError(
            f"Neither {type(self.normaliser).__name__} nor {type(self.fusion).__name__} has "
            f"{key!r}, which grid names. They have {', '.join(sorted(known))}. "
            "Members are chosen among those of the pool, by select_members."
        )


def candidates(grid: Mapping[str, Sequence[Any]], parts: Parts) -> list[Candidate]:
    """Return every combination of the values of a grid, by full names."""
    if not isinstance(grid, Mapping):
        raise InvalidTypeError(
            f'grid must be a dict of lists, such as {{"p": [4 / 3, 2, 4]}}. Got {grid!r}.'
        )
    named: dict[str, list[Any]] = {}
    for key, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise InvalidTypeError(f"grid[{key!r}] must be a list of values. Got {values!r}.")
        name = parts.full_name(key)
        if name in named or not len(values):
            reason = "names a parameter twice" if name in named else "has no values"
            raise InvalidInputError(f"grid[{key!r}] {reason}. Give one list per parameter.")
        named[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
    return [dict(zip(named, values, strict=True)) for values in product(*named.values())]


class Search(BaseEstimator):  # type: ignore[misc]
    """Search for the settings with the best value of a criterion on held-out rows.

    The members are fitted once, as only their out-of-fold scores are needed. Of candidates with
    equal values the one with p closest to 2 is chosen, then the one whose other settings are
    nearest to the middle of their lists, then the first.

    Parameters
    ----------
    criterion : str or Criterion, default="pseudo-negatives"
        "pseudo-negatives", "labels", "rpau" or "stability", or an object.
    grid : dict, default=None
        Lists of values to try in every combination. A key is a parameter of the fusion or the
        normaliser, such as "fusion__eta", "fusion__locality__kappa" or "normaliser__rho". The last
        word ("p", "eta", "kappa", "rho") is enough if it is unique. The values of "fusion" and
        "normaliser" are names and objects. None is the nine values of p of the paper.
    select_members : bool, default=False
        Whether to keep only the best member of each family first, by the criterion on its own
        scores. Members are a family if their names are equal up to the last "-": "svdd-0.25",
        "svdd-0.5", "svdd-1".
    learn_negatives : bool, default=True
        Whether weights are learned from pseudo-negatives too, as without a search. False is the
        method of the paper: pseudo-negatives are used for the choice only, and weights are learned
        from real rows.

    Attributes
    ----------
    results_ : dict
        Lists with one entry per candidate: "params", "param_<name>" for each parameter, "value",
        "tie_break", "rank" and "seconds".
    best_index_ : int
        Position of the chosen candidate.
    best_params_ : dict
        Parameters of the chosen candidate.
    best_value_ : float
        Its value; too optimistic, as the candidate was chosen for it.
    best_normaliser_, best_fusion_ : normaliser and fusion
        Normaliser and fusion with these parameters, not fitted.
    criterion_ : Criterion
        The criterion.
    members_ : list of str
        Names of the members that are kept.
    member_results_ : dict
        "name", "family", "value" and "kept" of each member; empty without `select_members`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from ocfuse import FusedDetector
    >>> from ocfuse.tuning import Search
    >>> search = Search("pseudo-negatives", grid={"p": [4 / 3, 2, 4], "rho": [2, 5]})
    >>> detector = FusedDetector("light", tune=search, random_state=0).fit(load_iris().data)
    >>> sorted(detector.search_.best_params_)
    ['fusion__p', 'normaliser__rho']
    """

    def __init__(
        self,
        criterion: Any = "pseudo-negatives",
        grid: dict[str, Any] | None = None,
        select_members: bool = False,
        learn_negatives: bool = True,
    ) -> None:
        self.criterion = criterion
        self.grid = grid
        self.select_members = select_members
        self.learn_negatives = learn_negatives

    def fit(
        self,
        rows: ScoredRows,
        normaliser: Any,
        fusion: BaseFusion,
        names: list[str] | None = None,
        random_state: Any = None,
    ) -> "Search":
        """Try all candidates.

        Parameters
        ----------
        rows : ScoredRows
            Rows with out-of-fold member scores.
        normaliser : normaliser
            Normaliser with the values of all parameters that the grid does not name.
        fusion : fusion
            Fusion with the values of all parameters that the grid does not name.
        names : list of str, optional
            Names of the members, which are the columns of scores.
        random_state : int, RandomState instance or None
            Seed of the normaliser or fusion if its `random_state` is None.

        Returns
        -------
        Search
            The fitted search.
        """
        self.criterion_ = clone(make_criterion(self.criterion))
        self.criterion_.check(rows)
        parts = Parts(normaliser, fusion).written_out()
        tried = candidates(self._grid(parts), parts)
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        variants = [seeded(parts.changed(candidate), seed) for candidate in tried]
        self.members_ = [f"m{j}" for j in range(rows.S.shape[1])] if names is None else list(names)
        self.member_results_: dict[str, Any] = {}
        with caching():
            if self.select_members:
                rows = self._select(rows, normaliser)
            verdicts, seconds = self._try_all(rows, tried, variants)
        self._conclude(tried, verdicts, seconds)
        self.best_normaliser_ = variants[self.best_index_].normaliser
        self.best_fusion_ = variants[self.best_index_].fusion
        return self

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, as far as the grid is one."""
        grid = {"p": PAPER_P} if self.grid is None else self.grid
        values = grid.values() if isinstance(grid, Mapping) else ()
        return math.prod(len(some) for some in values if isinstance(some, Sized))

    def to_markdown(self) -> str:
        """Return the candidates as a table in Markdown, best first."""
        check_is_fitted(self, "results_")
        names = list(self.best_params_)
        lines = ["| " + " | ".join([*names, "value"]) + " |", "|---" * (len(names) + 1) + "|"]
        for i in np.argsort(self.results_["rank"]):
            values = [self.results_["params"][i][name] for name in names]
            values.append(float(self.results_["value"][i]))
            shown = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)
            lines.append("| " + " | ".join(shown) + " |")
        return "\n".join(lines)

    def _grid(self, parts: Parts) -> dict[str, Any]:
        if self.grid is not None:
            return self.grid
        if any(name.rpartition("__")[2] == "p" for name in parts.get_params(deep=True)):
            return {"p": PAPER_P}
        if self.select_members:
            return {}
        raise InvalidInputError(
            f"There is nothing to choose: {type(parts.fusion).__name__} has no parameter p. "
            'Give tune=Search(grid={"eta": [...]}) with what it has, or tune=None.'
        )

    def _select(self, rows: ScoredRows, normaliser: Any) -> ScoredRows:
        """Keep the best member of every family."""
        names = self.members_
        verdicts = judge_members(rows, self.criterion_, normaliser)
        self.members_ = best_of_each(names, verdicts)
        self.member_results_ = {
            "name": names,
            "family": [family(name) for name in names],
            "value": np.array([value for value, _ in verdicts]),
            "kept": np.array([name in self.members_ for name in names]),
        }
        return keep_columns(rows, names, self.members_)

    def _try_all(
        self, rows: ScoredRows, tried: list[Candidate], variants: list[Parts]
    ) -> tuple[list[Verdict], list[float]]:
        """Judge every variant; those with the same normaliser share its scores."""
        progress = current_progress()
        splits = self.criterion_.splits(rows)
        if not self.learn_negatives:
            splits = [JudgedSplit(split.learned.real(), split.rows) for split in splits]
        scaled: dict[Any, Scaled] = {}
        for candidate, variant in zip(tried, variants, strict=True):
            scaled.setdefault(_scale_of(candidate), Scaled(splits, variant.normaliser))
        calls = (
            (_timed, self.criterion_, scaled[_scale_of(candidate)], variant.fusion)
            for candidate, variant in zip(tried, variants, strict=True)
        )
        verdicts, seconds = [], []
        progress("tuning", type(self.criterion_).__name__, 0, len(variants))
        with results_of(calls, n_jobs=jobs_apart()) as results:
            for i, (verdict, taken) in enumerate(results, 1):
                verdicts.append(verdict)
                seconds.append(taken)
                progress("tuning", type(self.criterion_).__name__, i, len(variants))
        return verdicts, seconds

    def _conclude(
        self, tried: list[Candidate], verdicts: list[Verdict], seconds: list[float]
    ) -> None:
        """Rank the candidates and keep the first."""
        value, second = np.array(verdicts).T
        norm, middle = _distances(tried).T
        order = np.lexsort((middle, norm, -second, -value))
        rank = np.empty(len(tried), dtype=np.int64)
        rank[order] = np.arange(1, len(tried) + 1)
        columns = {f"param_{name}": [c[name] for c in tried] for name in tried[0]}
        self.results_: dict[str, Any] = {
            "params": tried,
            **columns,
            "value": value,
            "tie_break": second,
            "rank": rank,
            "seconds": np.array(seconds),
        }
        self.best_index_ = int(order[0])
        self.best_params_ = tried[self.best_index_]
        self.best_value_ = float(value[self.best_index_])


class Scaled:
    """Splits in the scores of a normaliser that is not fitted."""

    def __init__(self, splits: list[JudgedSplit], normaliser: Any) -> None:
        self._unscaled = splits
        self._normaliser = normaliser

    @cached_property
    def splits(self) -> list[ScaledSplit]:
        """The splits, made when first asked for."""
        return [split.scaled(self._normaliser) for split in self._unscaled]


def _timed(criterion: Criterion, scaled: Scaled, fusion: BaseFusion) -> tuple[Verdict, float]:
    """Return the verdict on a fusion, and the seconds it took."""
    start = time.perf_counter()
    verdict = judge(criterion, scaled.splits, fusion)
    return verdict, time.perf_counter() - start


def make_search(tune: Any) -> Search:
    """Return the search, not fitted, of a criterion's name, a criterion or a search."""
    if isinstance(tune, Search):
        search: Search = clone(tune)
        make_criterion(search.criterion)
        return search
    if isinstance(tune, str | Criterion):
        return Search(make_criterion(tune))
    raise InvalidTypeError(
        f"tune must be None, the name of a criterion, a criterion or a Search. Got {tune!r}."
    )


def _distances(tried: list[Candidate]) -> FloatArray:
    """Return how far norms are from 2, and how far other settings are from the middle of a list."""
    found = np.zeros((len(tried), 2))
    for name in tried[0]:
        values = [candidate[name] for candidate in tried]
        if name.rpartition("__")[2] == "p":
            found[:, 0] += [abs(p - 2.0) if isinstance(p, int | float) else 0.0 for p in values]
        else:
            listed = list(dict.fromkeys(map(id, values)))
            places = np.array([listed.index(id(value)) for value in values])
            found[:, 1] += np.abs(places - (len(listed) - 1) // 2)
    return found


def _scale_of(candidate: Candidate) -> tuple[tuple[str, int], ...]:
    """Return what tells normalisers apart: values of the grid, by identity."""
    return tuple(
        (name, id(value))
        for name, value in candidate.items()
        if name.partition("__")[0] == "normaliser"
    )
