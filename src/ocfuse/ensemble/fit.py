"""One fit: encoder, members, normaliser and fusion, and held-out scores."""

import warnings
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ocfuse.arrays import FloatArray, Int64Array, IntArray
from ocfuse.column_kinds import EMPTY
from ocfuse.detectors.base import MANY_ROWS, core_rows
from ocfuse.detectors.members import seeded
from ocfuse.detectors.pool import Pool
from ocfuse.encoder import JUDGE, FeatureEncoder, check_table, take_rows
from ocfuse.ensemble.outliers import (
    LARGEST_GROUP,
    LARGEST_SHARE,
    is_voted_out,
    outlying_rows,
    remote_groups,
    remote_rows,
    warn_of_group,
)
from ocfuse.ensemble.rows import (
    ContextScale,
    canonical_order,
    check_groups,
    matching_folds,
    scaled_context,
    spread_folds,
)
from ocfuse.ensemble.score import ScoreChain
from ocfuse.exceptions import (
    IgnoredColumnsWarning,
    InvalidInputError,
    MemberError,
    OcfuseWarning,
    PseudoNegativeWarning,
)
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.crossfit import ScoredRows, ballot_for, crossfitted_scores, fit_fusion
from ocfuse.fusion.labelled import LabelledFusion, default_share
from ocfuse.fusion.named import make_fusion
from ocfuse.groups import Groups
from ocfuse.negatives import diagnose, make_negatives
from ocfuse.scores import make_normaliser
from ocfuse.system.progress import Progress, silent
from ocfuse.tuning.search import Search
from ocfuse.tuning.splits import keep_columns, keep_members
from ocfuse.validation import ANOMALY, NORMAL, UNKNOWN, check_context, check_training_labels

#: Passes of leaving out far rows: the farthest may hide others.
MOST_PASSES = 3
#: Pseudo-negatives of each kind.
NEGATIVES_PER_KIND = 300
#: Normals from which on it can be told whether pseudo-negatives are of use.
FEWEST_DIAGNOSED = 30
#: Training rows that they are made from.
MOST_TEMPLATES = 10_000
#: Training rows that the members score after they have seen them: all, or so many of many rows.
MOST_SEEN = 1000
#: Labelled anomalies from which on weights are not learned from pseudo-negatives too. On
#: the development sets 3 real ones alone did better than together with the others.
ENOUGH_ANOMALIES = 3

#: Folds in which everything is learned again.
N_REFITS = 5
#: That is done with fewer rows than this many per column, and up to so many rows:
#: standardising by the rows themselves then makes them look nearer than fresh ones.
ROWS_PER_COLUMN, MOST_REFIT_ROWS = 3, 1000
#: Anomalies from which on every fold has some left to learn from.
FEWEST_REFIT_ANOMALIES = 2 * N_REFITS

#: Fewest normal rows that anything can be learned from.
FEWEST_ROWS = 5


@dataclass(frozen=True)
class Table:
    """Training rows as they were given, with one label each, perhaps a group and context.

    Parameters
    ----------
    X : array or data frame of n rows
        The rows.
    y : ndarray of shape (n,)
        +1, 0 or -1.
    groups : Groups or None
        Which rows are held out together.
    context : ndarray of shape (n, k) or None
        Context, as it was given.
    """

    X: Any
    y: Int64Array
    groups: Groups | None
    context: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: IntArray) -> "Table":
        """Return the chosen rows."""
        groups = None if self.groups is None else self.groups.take(rows)
        context = None if self.context is None else self.context[rows]
        return Table(take_rows(self.X, rows), self.y[rows], groups, context)

    def keys(self) -> list[NDArray[Any] | None]:
        """Return what orders rows with the same features: label, group, context."""
        groups = [None, None] if self.groups is None else [self.groups.label, self.groups.place]
        return [self.y, *groups, *([] if self.context is None else self.context.T)]


@dataclass(frozen=True)
class Recipe:
    """What is asked for, as the parameters of FusedDetector, and how to go about it."""

    members: Any
    fusion: Any
    normaliser: Any
    negatives: Any
    seed: int
    n_jobs: int | None
    progress: Progress
    search: Search | None = None
    encoder: FeatureEncoder | None = None  # settled; None is the default one

    def pool(self) -> Pool:
        """Return the members, not fitted."""
        members = self.members
        pool: Pool = clone(members if isinstance(members, Pool) else Pool(members))
        return pool

    def parts(self, rows: ScoredRows) -> tuple[Any, BaseFusion]:
        """Return the normaliser and the fusion, not fitted, for the rows to learn from."""
        fusion = default_fusion(rows) if self.fusion is None else make_fusion(self.fusion)
        fusion = with_one_share(fusion, rows)
        made_up = rows.has_pseudo and rows.learns_pseudo
        if fusion.needs_anomalies and not (made_up or has_anomalies_in_two_folds(rows)):
            raise InvalidInputError(
                f"{type(fusion).__name__} learns from anomalies, and each is held out once. Give "
                "at least 2 in y, or let made-up ones stand in with negatives='mixture'."
            )
        return seeded(make_normaliser(self.normaliser), self.seed), seeded(fusion, self.seed)


class Learned:
    """What one fit has learned; it scores rows.

    Parameters
    ----------
    table : Table
        Rows to learn from.
    recipe : Recipe
        How.

    Attributes
    ----------
    rows : ndarray
        Rows of the table that were learned as normal, in an order of their own.
    context : ndarray of shape (number of rows, k) or None
        Their context, in the units of the features.
    trimmed : ndarray
        Rows that were left out as too far outside.
    scored : ScoredRows
        What the fusion has learned from.
    search : Search or None
        What was tried, if anything was.
    parts : tuple
        Normaliser and fusion as they were asked for or chosen, not fitted.
    """

    pool: Pool

    def __init__(self, table: Table, recipe: Recipe) -> None:
        self.recipe = recipe
        kept = table.y != ANOMALY
        self._encode(table, kept)
        suspects = self._unknown(table, remote_groups(self.training))
        if 0 < len(suspects) <= LARGEST_GROUP * kept.sum():
            kept[suspects] = False
            self._encode_again(table, kept)
        fit = self._fit_to_many if kept.sum() > MANY_ROWS else self._fit_to_few
        fit(table, kept, (1.0 - LARGEST_SHARE) * (table.y != ANOMALY).sum())
        self.trimmed = np.flatnonzero((table.y != ANOMALY) & ~kept)
        warn_of_group(int(kept[suspects].sum()), int(kept.sum()))
        self.scored = self._scored_rows(table)
        _warn_if_useless(self.scored)
        self.parts = recipe.parts(self.scored)
        self.search: Search | None = None
        if recipe.search is not None:
            self._tune(recipe.search)
        recipe.progress("fusion", "weights", 0, 1)
        self.normaliser, self.fusion = fit_fusion(self.scored, *self.parts)
        recipe.progress("fusion", "weights", 1, 1)

    @property
    def chain(self) -> ScoreChain:
        """The steps from rows to scores."""
        return ScoreChain(self.encoder, self.pool, self.normaliser, self.fusion, self.scale)

    def score(self, encoded: FloatArray, context: FloatArray | None) -> FloatArray:
        """Return the fused scores of encoded rows, with their context as it was given."""
        chain = self.chain
        return chain.score_encoded(encoded, chain.scaled(context, len(encoded)))

    def seen_scores(self) -> FloatArray:
        """Return the fused scores of the rows by parts that have seen them; some may be NaN."""
        n = len(self.rows)
        known = ~np.isnan(self.scored.seen[:n]).any(axis=1)
        scores = np.full(n, np.nan)
        context = None if self.context is None else self.context[known]
        seen = self.scored.seen[:n][known]
        scores[known] = self.chain.fuse(seen, self.training[known], context)[1]
        return scores

    def settled(self) -> Recipe:
        """Return the recipe with what was chosen, so that nothing is searched again."""
        normaliser, fusion = self.parts
        recipe = replace(self.recipe, normaliser=normaliser, fusion=fusion, search=None)
        if self.search is None:
            return recipe
        members = [(name, clone(member)) for name, member in self.pool.members_]
        return replace(recipe, members=clone(self.pool).set_params(members=members))

    def _fit_to_few(self, table: Table, kept: NDArray[np.bool_], least: float) -> None:
        """Fit the members, and again without the rows that they find far outside."""
        for _ in range(MOST_PASSES):
            self._fit_members(table)
            outlying = self._unknown(
                table, outlying_rows(self.pool.out_of_fold_scores_, self.training)
            )
            if not len(outlying) or kept.sum() - len(outlying) < least:
                return
            kept[outlying] = False
            self._encode_again(table, kept)
        self._fit_members(table)

    def _fit_to_many(self, table: Table, kept: NDArray[np.bool_], least: float) -> None:
        """Fit the members without rows that are remote, and again with those they vouch for.

        Members that have learned from many rows are not learned again and again:
        whether a row is far from the others can be told before.
        """
        before = kept.copy()
        for _ in range(MOST_PASSES):
            remote = self._unknown(table, remote_rows(self.training))
            if not len(remote) or kept.sum() - len(remote) < least:
                break
            kept[remote] = False
            self._encode_again(table, kept)
        self._fit_members(table)
        suspects = np.flatnonzero(before & ~kept)
        if not len(suspects):
            return
        S = self.pool.score_samples(self.encoder.transform(table.take(suspects).X))
        vouched = suspects[~is_voted_out(S, self.pool.out_of_fold_scores_)]
        if len(vouched):
            kept[vouched] = True
            self._encode_again(table, kept)
            self._fit_members(table)

    def _tune(self, search: Search) -> None:
        """Choose settings, and perhaps members, from the scored rows."""
        names = self.pool.names_
        self.search = clone(search).fit(self.scored, *self.parts, names, self.recipe.seed)
        self.parts = self.search.best_normaliser_, self.search.best_fusion_
        if self.search.members_ != names:
            self.scored = keep_columns(self.scored, names, self.search.members_)
            self.pool = keep_members(self.pool, self.search.members_)

    def _unknown(self, table: Table, chosen: NDArray[np.bool_]) -> IntArray:
        """Return those of the chosen training rows that nobody vouches for."""
        rows = self.rows[chosen]
        unknown: IntArray = rows[table.y[rows] == UNKNOWN]
        return unknown

    def _encode_again(self, table: Table, kept: NDArray[np.bool_]) -> None:
        """Encode what is kept now; a column may still have gaps if it had some before."""
        complete = self.encoder.complete_
        self._encode(table, kept)
        self.encoder.complete_ = complete

    def _encode(self, table: Table, kept: NDArray[np.bool_]) -> None:
        """Fit the encoder on the rows kept and encode them, in an order of their own."""
        chosen = np.flatnonzero(kept)
        rows = table if kept.all() else table.take(chosen)
        settled = self.recipe.encoder or FeatureEncoder().settle(rows.X)
        self.encoder = copy(settled).learn(rows.X)
        encoded = self.encoder.transform(rows.X)
        order = canonical_order(encoded, *rows.keys())
        self.rows, self.training = chosen[order], encoded[order]
        self.training.flags.writeable = False  # members need no copy of their own
        self.scale: ContextScale | None = None
        if rows.context is not None:
            self.scale = ContextScale(rows.context[order], encoded.shape[1])
        self.context = self._scaled(table, self.rows)

    def _scaled(self, table: Table, rows: IntArray) -> FloatArray | None:
        """Return the context of some rows of the table in the units of the features."""
        context = None if table.context is None else table.context[rows]
        return scaled_context(self.scale, context, len(rows))

    def _fit_members(self, table: Table) -> None:
        """Fit the members on the encoded rows."""
        self.pool = self.recipe.pool().fit(
            self.training,
            None if table.groups is None else table.groups.take(self.rows),
            random_state=self.recipe.seed,
            n_jobs=self.recipe.n_jobs,
            progress=self.recipe.progress,
        )

    def _scored_rows(self, table: Table) -> ScoredRows:
        """Gather normals, anomalies and pseudo-negatives with out-of-fold member scores."""
        anomalies = table.take(np.flatnonzero(table.y == ANOMALY))
        encoded = np.empty((0, self.training.shape[1]))
        if len(anomalies):
            # an anomaly may have gaps that normal rows have not
            encoded = copy(self.encoder).set_gaps(JUDGE).transform(anomalies.X)
        order = canonical_order(encoded, *anomalies.keys()[1:])
        self.anomalies = np.flatnonzero(table.y == ANOMALY)[order]
        negatives, kind, labels = self._negatives()
        strangers = np.vstack([encoded[order], negatives])
        d = len(self.pool.names_)
        S = self.pool.score_samples(strangers) if len(strangers) else np.empty((0, d))
        fold = self.pool.fold_
        known = None if table.groups is None else table.groups.take(self.rows)
        theirs = None if table.groups is None else table.groups.take(self.anomalies)
        held_out = matching_folds(len(anomalies), fold, known, theirs)
        folds = np.concatenate([fold, held_out, np.full(len(negatives), -1)])
        n, m = self.training.shape
        return ScoredRows(
            S=np.vstack([self.pool.out_of_fold_scores_, S]),
            y=np.repeat([NORMAL, ANOMALY], [n, len(strangers)]),
            X=np.vstack([self.training, strangers]),
            fold=folds,
            kind=np.concatenate([np.full(n + len(anomalies), -1), kind]),
            seen=np.vstack([self._seen_scores(), np.full((len(strangers), d), np.nan)]),
            ballot=ballot_for(labels, n, m),
            learns_pseudo=len(anomalies) < ENOUGH_ANOMALIES or len(np.unique(held_out)) < 2,
            context=self._contexts(table, len(negatives)),
            withheld=_withheld(table, np.append(self.rows, self.anomalies), folds),
            groups=self._kinship(table, len(negatives)),
        )

    def _contexts(self, table: Table, n_negatives: int) -> FloatArray | None:
        """Return the context of all scored rows; a pseudo-negative takes that of some normal."""
        theirs = self._scaled(table, self.anomalies)
        if self.context is None or theirs is None:
            return None
        drawn = check_random_state(self.recipe.seed).randint(len(self.context), size=n_negatives)
        return np.vstack([self.context, theirs, self.context[drawn]])

    def _kinship(self, table: Table, n_negatives: int) -> Groups | None:
        """Return the groups of all scored rows; a pseudo-negative takes that of some normal."""
        if table.groups is None:
            return None
        real = np.append(self.rows, self.anomalies)
        return table.groups.take(np.append(real, np.repeat(self.rows[:1], n_negatives)))

    def _seen_scores(self) -> FloatArray:
        """Score rows by members that have seen them: all, or some of many, evenly spaced."""
        n = len(self.training)
        # from the rows that members with a maximum have learned
        chosen = core_rows(n, MANY_ROWS)
        if n > MANY_ROWS:
            chosen = chosen[core_rows(MANY_ROWS, MOST_SEEN)]
        scores = np.full((n, len(self.pool.names_)), np.nan)
        scores[chosen] = self.pool.score_samples(self.training[chosen])
        return scores

    def _negatives(self) -> tuple[FloatArray, Int64Array, list[str]]:
        """Make pseudo-anomalies up, if they are wanted."""
        wanted = self.recipe.negatives
        if make_negatives(wanted) is None:
            return np.empty((0, self.training.shape[1])), np.empty(0, dtype=np.int64), []
        generator = make_negatives(wanted if isinstance(wanted, list | tuple) else [wanted])
        n = NEGATIVES_PER_KIND * len(generator.labels)
        source = self.encoder.source_
        normals = self.training
        if len(normals) > MOST_TEMPLATES:
            normals = normals[core_rows(len(normals), MOST_TEMPLATES)]
        drawn = generator.sample(normals, n, self.recipe.seed, source)
        return drawn, generator.kinds(n), generator.labels


def _withheld(table: Table, rows: IntArray, fold: IntArray) -> NDArray[np.bool_] | None:
    """Return which rows are too near to each fold; pseudo-negatives, the last, never are."""
    if table.groups is None or not table.groups.purge:
        return None
    real = table.groups.take(rows).withheld(fold[: len(rows)])
    return np.vstack([real, np.zeros((len(fold) - len(rows), real.shape[1]), dtype=bool)])


def _warn_if_useless(rows: ScoredRows) -> None:
    """Warn if no kind of pseudo-negative tells the members apart."""
    pseudo = rows.kind >= 0
    normal = rows.y > 0
    if not pseudo.any() or normal.sum() < FEWEST_DIAGNOSED:
        return
    labels = list(rows.ballot.kinds)
    message = diagnose(rows.S[normal], rows.S[pseudo], rows.kind[pseudo], labels).message()
    if message is not None:
        warnings.warn(message, PseudoNegativeWarning, stacklevel=2)


def held_out_scores(table: Table, learned: Learned) -> FloatArray:
    """Return a fused score for every row of the table, by parts that have not seen it.

    Members, normaliser and fusion never have. With few rows for the columns the
    encoder has not either: everything is then learned again in folds.
    """
    if _needs_refits(table, learned):
        # A part may be too small for a member, a group or a category: then the way below.
        with suppress(InvalidInputError, MemberError):
            return _refitted_scores(table, learned)
    scores = np.empty(len(table))
    learned.recipe.progress("fusion", "held-out scores", 0, 1)
    fused = crossfitted_scores(learned.scored, *learned.parts)
    learned.recipe.progress("fusion", "held-out scores", 1, 1)
    real = fused[learned.scored.fold >= 0]
    scores[np.concatenate([learned.rows, learned.anomalies])] = real
    if len(learned.trimmed):
        left_out = table.take(learned.trimmed)
        encoded = learned.encoder.transform(left_out.X)
        order = canonical_order(encoded)
        scores[learned.trimmed[order]] = learned.score(encoded[order], left_out.take(order).context)
    return scores


def _needs_refits(table: Table, learned: Learned) -> bool:
    """Tell whether the encoder matters, and whether folds of everything can be learned."""
    n_groups = None if table.groups is None else len(np.unique(table.groups.label))
    return is_refitted(learned.training.shape, len(learned.anomalies), n_groups) and bool(
        np.ptp(learned.training) > 0
    )


def is_refitted(shape: tuple[int, ...], n_anomalies: int, n_groups: int | None) -> bool:
    """Tell whether everything is learned again in folds, as far as numbers tell.

    Parameters
    ----------
    shape : tuple of int
        Rows that are learned as normal, and columns.
    n_anomalies : int
        Number of labelled anomalies.
    n_groups : int or None
        Number of groups, if there are groups.

    Returns
    -------
    bool
        Whether it is; gaps and rows that are all equal may prevent it.
    """
    n, m = shape
    return (
        n < ROWS_PER_COLUMN * m
        and n <= MOST_REFIT_ROWS
        and (n_groups is None or n_groups > N_REFITS)
        and (n_anomalies == 0 or n_anomalies >= FEWEST_REFIT_ANOMALIES)
    )


def _refitted_scores(table: Table, learned: Learned) -> FloatArray:
    scores = np.empty(len(table))
    order = canonical_order(learned.encoder.transform(table.X), *table.keys())
    fold = _folds(table, order)
    groups = Groups(fold) if table.groups is None else table.groups
    withheld = groups.withheld(fold)
    recipe = replace(learned.settled(), progress=silent)
    count = int(fold.max()) + 1
    for f in range(count):
        learned.recipe.progress("fusion", "held-out fits", f, count)
        held_out = order[fold[order] == f]
        with warnings.catch_warnings():  # the fit on all rows says it once
            warnings.simplefilter("ignore", OcfuseWarning)
            part = Learned(table.take(np.flatnonzero(~withheld[:, f])), recipe)
        if part.pool.names_ != learned.pool.names_:
            raise MemberError("A member that learned from all rows failed on a part of them.")
        rows = table.take(held_out)
        scores[held_out] = part.score(part.encoder.transform(rows.X), rows.context)
    learned.recipe.progress("fusion", "held-out fits", count, count)
    return scores


def _folds(table: Table, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the fold of every row of the table."""
    if table.groups is None:
        return spread_folds(order, table.y == ANOMALY, N_REFITS)
    fold = np.empty(len(table), dtype=np.intp)
    fold[order] = table.groups.take(order).folds(N_REFITS)
    return fold


def read_table(X: Any, y: Any, groups: Any, context: Any) -> Table:
    """Return the rows to learn from, or refuse them; see `FusedDetector.fit`."""
    rows = check_table(X)
    n = len(rows)
    labels = check_training_labels(y, n)
    situation = None if context is None else check_context(context, n)
    table = Table(rows, labels, check_groups(groups, n), situation)
    n_learned = int(np.sum(labels != ANOMALY))
    if n_learned < FEWEST_ROWS:
        raise InvalidInputError(
            f"At least {FEWEST_ROWS} rows that are not anomalies are needed to learn from. "
            f"Got n_samples = {n_learned}."
        )
    return table


def warn_of_ignored(columns: list[str]) -> None:
    """Tell which columns are not learned from."""
    if columns:
        are_empty = all(column.endswith(f"({EMPTY})") for column in columns)
        named = "What is a category all the same can be named: "
        advice = "" if are_empty else f" {named}encoder=FeatureEncoder(categories=[...])."
        warnings.warn(
            f"These columns are not learned from: {'; '.join(columns)}.{advice}",
            IgnoredColumnsWarning,
            stacklevel=4,
        )


def default_fusion(rows: ScoredRows) -> BaseFusion:
    """Return the competence fusion, with classifiers beside it if anomalies are known."""
    return CompetenceFusion() if rows.learns_pseudo else LabelledFusion(CompetenceFusion())


def with_one_share(fusion: BaseFusion, rows: ScoredRows) -> BaseFusion:
    """Settle how much labels count, once for all folds: else their scores would differ in scale."""
    if not isinstance(fusion, LabelledFusion) or fusion.share is not None:
        return fusion
    share = default_share(int(rows.known.sum()))
    settled: BaseFusion = clone(fusion).set_params(share=share)
    return settled


def has_anomalies_in_two_folds(rows: ScoredRows) -> bool:
    """Tell whether known anomalies are left when those of one fold are held out."""
    return len(np.unique(rows.fold[rows.known])) > 1
