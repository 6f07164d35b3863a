"""One fit: encoder, members, normaliser and fusion, and held-out scores.

`read_table` checks what the user gave. `Learned` fits everything once, in this order: encode the
rows, leave out those far outside, fit the members, gather their out-of-fold scores with anomalies
and pseudo-negatives, choose settings, fit normaliser and fusion. `held_out_scores` then scores
every training row by parts that have not seen it.
"""

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
from ocfuse.encoder import FeatureEncoder, check_table, is_given, take_rows
from ocfuse.ensemble.outliers import (
    LARGEST_GROUP,
    LARGEST_SHARE,
    is_voted_out,
    outlying_rows,
    remote_groups,
    remote_rows,
    warn_of_group,
)
from ocfuse.ensemble.score import ContextScale, ScoreChain
from ocfuse.exceptions import (
    IgnoredColumnsWarning,
    InvalidInputError,
    MemberError,
    OcfuseWarning,
    PseudoNegativeWarning,
    SuspectInputWarning,
)
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.competence import CompetenceFusion
from ocfuse.fusion.crossfit import ScoredRows, ballot_for, crossfitted_scores, fit_fusion
from ocfuse.fusion.labelled import LabelledFusion, default_share
from ocfuse.fusion.named import make_fusion
from ocfuse.fusion.trust import TrustFusion
from ocfuse.groups import Groups, check_groups
from ocfuse.negatives import diagnose, make_negatives
from ocfuse.scores import make_normaliser
from ocfuse.system.progress import Progress, silent
from ocfuse.tuning.search import Search
from ocfuse.tuning.splits import keep_columns, keep_members
from ocfuse.validation import ANOMALY, NORMAL, UNKNOWN, check_context, labels_to_learn_from

#: Passes of leaving out far rows: the farthest may hide others.
MOST_PASSES = 3
#: Folds in which everything is learned again.
N_REFITS = 5


@dataclass(frozen=True)
class Table:
    """Training rows as they were given, with one label each, perhaps a group and context."""

    X: Any
    y: Int64Array  # +1, 0 or -1
    groups: Groups | None
    context: FloatArray | None = None  # of shape (n, k), in its own units

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


def read_table(X: Any, y: Any, groups: Any, context: Any) -> Table:
    """Return the rows to learn from, or refuse them; see `FusedDetector.fit`."""
    rows = check_table(X)
    n = len(rows)
    labels = labels_to_learn_from(y, n)
    table = Table(
        rows,
        labels,
        None if groups is None else check_groups(groups, n),
        None if context is None else check_context(context, n),
    )
    n_learned = int(np.sum(labels != ANOMALY))
    if n_learned < 5:
        raise InvalidInputError(
            "At least 5 rows that are not anomalies are needed to learn from. "
            f"Got n_samples = {n_learned}."
        )
    return table


@dataclass(frozen=True)
class Recipe:
    """Parameters of a fit: those of FusedDetector, a seed, and whom to report progress to."""

    members: Any
    fusion: Any
    normaliser: Any
    negatives: Any
    seed: int
    n_jobs: int | None
    progress: Progress
    search: Search | None = None
    encoder: FeatureEncoder | None = None  # settled; None is the default one

    @property
    def learn_negatives(self) -> bool:
        """Whether pseudo-negatives are for more than a search."""
        return self.search is None or self.search.learn_negatives

    def pool(self) -> Pool:
        """Return the members, not fitted."""
        members = self.members
        pool: Pool = clone(members if isinstance(members, Pool) else Pool(members))
        return pool

    def parts(self, rows: ScoredRows) -> tuple[Any, BaseFusion]:
        """Return the normaliser and the fusion, not fitted, for the rows to learn from."""
        if self.fusion is not None:
            fusion = make_fusion(self.fusion)
        elif not rows.learns_pseudo:  # anomalies are known: classifiers beside it
            fusion = LabelledFusion(CompetenceFusion())
        elif self.search is not None or rows.groups is not None:
            # Most searches are for the norm p. Trust is learned from rows that stand alone: on runs
            # (SKAB) it has the same AUC, and at the threshold of a run finds less.
            fusion = CompetenceFusion()
        else:
            fusion = TrustFusion()
        if isinstance(fusion, LabelledFusion) and fusion.share is None:
            # once for all folds: else their scores would differ in scale
            share = default_share(int(rows.known.sum()))
            fusion = clone(fusion).set_params(share=share)
        learns_pseudo = rows.has_pseudo and rows.learns_pseudo and self.learn_negatives
        n_folds = len(np.unique(rows.fold[rows.known]))
        if fusion.needs_anomalies and not learns_pseudo and n_folds < 2:
            raise InvalidInputError(
                f"{type(fusion).__name__} learns from anomalies, and each is held out once. Give "
                "at least 2 in y, or let made-up ones stand in with negatives='mixture'."
            )
        return seeded(make_normaliser(self.normaliser), self.seed), seeded(fusion, self.seed)


class Learned:
    """What one fit has learned from a table; it scores rows.

    Attributes
    ----------
    encoder, pool, normaliser, fusion, scale : object
        The fitted parts; `scale` brings context to the units of the features, if there is any.
    rows : ndarray of shape (n,)
        Rows of the table that were learned as normal, in an order of their own.
    training, context : ndarray of shape (n, m) and (n, k)
        The same rows encoded, and their scaled context or None.
    anomalies, trimmed : ndarray
        Rows of the table that are anomalies, and those left out as too far outside.
    scored : ScoredRows
        What the fusion has learned from.
    search : Search or None
        What was tried, if anything was.
    parts : tuple
        Normaliser and fusion as they were asked for or chosen, not fitted.
    """

    encoder: FeatureEncoder
    pool: Pool

    def __init__(self, table: Table, recipe: Recipe) -> None:
        self.recipe = recipe
        is_normal = table.y != ANOMALY
        kept = is_normal.copy()
        self._encode(table, kept)
        suspects = self._unknown(table, remote_groups(self.training))
        if 0 < len(suspects) <= LARGEST_GROUP * kept.sum():
            kept[suspects] = False
            self._encode(table, kept)
        fit = self._fit_to_many if kept.sum() > MANY_ROWS else self._fit_to_few
        fit(table, kept, (1.0 - LARGEST_SHARE) * is_normal.sum())
        self.trimmed = np.flatnonzero(is_normal & ~kept)
        warn_of_group(int(kept[suspects].sum()), int(kept.sum()))
        self.scored = self._scored_rows(table)
        _warn_if_useless(self.scored)
        self.parts = recipe.parts(self.scored)
        self.search: Search | None = None
        if recipe.search is not None:
            self._tune(recipe.search)
        if not recipe.learn_negatives:
            self.scored = self.scored.real()
        recipe.progress("fusion", "weights", 0, 1)
        self.normaliser, self.fusion = fit_fusion(self.scored, *self.parts)
        recipe.progress("fusion", "weights", 1, 1)

    # -- rows and members ---------------------------------------------------

    def _encode(self, table: Table, kept: NDArray[np.bool_]) -> None:
        """Fit the encoder on the rows kept and encode them, in an order of their own."""
        before = getattr(self, "encoder", None)
        chosen = np.flatnonzero(kept)
        rows = table if kept.all() else table.take(chosen)
        settled = self.recipe.encoder or FeatureEncoder().settle(rows.X)
        self.encoder = copy(settled)
        label = None if rows.groups is None else rows.groups.label
        encoded = self.encoder.learn_encoded(rows.X, label)
        if before is not None:  # a column may still have gaps if it had some before
            self.encoder.complete_ = before.complete_
        order = canonical_order(encoded, *rows.keys())
        self.rows, self.training = chosen[order], encoded[order]
        self.training.flags.writeable = False  # members need no copy of their own
        self.scale: ContextScale | None = None
        self.context: FloatArray | None = None
        if rows.context is not None:
            self.scale = ContextScale(rows.context[order], encoded.shape[1])
            self.context = self.scale.transform(rows.context[order])

    def _unknown(self, table: Table, chosen: NDArray[np.bool_]) -> IntArray:
        """Return those of the chosen training rows that are not labelled as normal."""
        rows = self.rows[chosen]
        unknown: IntArray = rows[table.y[rows] == UNKNOWN]
        return unknown

    def _fit_members(self, table: Table) -> None:
        """Fit the members on the encoded rows."""
        self.pool = self.recipe.pool().fit(
            self.training,
            None if table.groups is None else table.groups.take(self.rows),
            random_state=self.recipe.seed,
            n_jobs=self.recipe.n_jobs,
            progress=self.recipe.progress,
        )

    def _fit_to_few(self, table: Table, kept: NDArray[np.bool_], least: float) -> None:
        """Fit the members, and again without the rows that they find far outside."""
        for _ in range(MOST_PASSES):
            self._fit_members(table)
            found = outlying_rows(self.pool.out_of_fold_scores_, self.training)
            outlying = self._unknown(table, found)
            if not len(outlying) or kept.sum() - len(outlying) < least:
                return
            kept[outlying] = False
            self._encode(table, kept)
        self._fit_members(table)

    def _fit_to_many(self, table: Table, kept: NDArray[np.bool_], least: float) -> None:
        """Fit the members without remote rows, and again with those that they find normal.

        Members that have learned from many rows are not fitted again and again: whether a row
        is far from the others is known before.
        """
        before = kept.copy()
        for _ in range(MOST_PASSES):
            remote = self._unknown(table, remote_rows(self.training))
            if not len(remote) or kept.sum() - len(remote) < least:
                break
            kept[remote] = False
            self._encode(table, kept)
        self._fit_members(table)
        suspects = np.flatnonzero(before & ~kept)
        if not len(suspects):
            return
        S = self.pool.score_samples(self.encoder.transform(table.take(suspects).X))
        vouched = suspects[~is_voted_out(S, self.pool.out_of_fold_scores_)]
        if len(vouched):
            kept[vouched] = True
            self._encode(table, kept)
            self._fit_members(table)

    # -- what the fusion learns from ----------------------------------------

    def _scored_rows(self, table: Table) -> ScoredRows:
        """Gather normals, anomalies and pseudo-negatives with out-of-fold member scores."""
        (n, m), d = self.training.shape, len(self.pool.names_)
        anomalies = self._encoded_anomalies(table)
        negatives, kind, labels = self._negatives()
        n_known, n_made_up = len(anomalies), len(negatives)
        strangers = np.vstack([anomalies, negatives])
        S = self.pool.score_samples(strangers) if len(strangers) else np.empty((0, d))
        real = np.append(self.rows, self.anomalies)
        n_folds = int(self.pool.fold_.max()) + 1
        if table.groups is None:
            groups, withheld = None, None
            held_out = np.arange(n_known) % n_folds
        else:
            # that of a pseudo-negative does not matter
            groups = table.groups.take(np.append(real, np.repeat(self.rows[:1], n_made_up)))
            held_out = _folds_of_anomalies(groups.label, self.pool.fold_, n_known)
            withheld = np.zeros((len(groups), n_folds), dtype=bool)
            fold = np.append(self.pool.fold_, held_out)
            withheld[: len(real)] = table.groups.take(real).withheld(fold)
        context = None
        if self.scale is not None and table.context is not None:
            # a pseudo-negative takes that of some normal
            drawn = check_random_state(self.recipe.seed).randint(n, size=n_made_up)
            context = self.scale.transform(table.context[np.append(real, self.rows[drawn])])
        return ScoredRows(
            S=np.vstack([self.pool.out_of_fold_scores_, S]),
            y=np.repeat([NORMAL, ANOMALY], [n, len(strangers)]),
            X=np.vstack([self.training, strangers]),
            fold=np.concatenate([self.pool.fold_, held_out, np.full(n_made_up, -1)]),
            kind=np.append(np.full(len(real), -1), kind),
            seen=np.vstack([self._seen_member_scores(), np.full((len(strangers), d), np.nan)]),
            ballot=ballot_for(labels, n, m),
            # On the development sets 3 real anomalies did better alone than with made-up ones.
            learns_pseudo=n_known < 3 or len(np.unique(held_out)) < 2,
            context=context,
            withheld=withheld,
            groups=groups,
        )

    def _encoded_anomalies(self, table: Table) -> FloatArray:
        """Encode the anomalies, in an order of their own."""
        chosen = np.flatnonzero(table.y == ANOMALY)
        anomalies = table.take(chosen)
        encoded = np.empty((0, self.training.shape[1]))
        if len(chosen):
            # an anomaly may have gaps that normal rows have not
            encoded = copy(self.encoder).set_gaps("judge").transform(anomalies.X)
        order = canonical_order(encoded, *anomalies.keys()[1:])
        self.anomalies = chosen[order]
        return encoded[order]

    def _negatives(self) -> tuple[FloatArray, Int64Array, list[str]]:
        """Return pseudo-negatives, the kind of each, and the names of the kinds."""
        spec = self.recipe.negatives
        if make_negatives(spec) is None:
            return np.empty((0, self.training.shape[1])), np.empty(0, dtype=np.int64), []
        generator = make_negatives(spec if isinstance(spec, list | tuple) else [spec])
        n = 300 * len(generator.labels)
        normals = self.training
        if len(normals) > 10_000:
            normals = normals[core_rows(len(normals), 10_000)]
        drawn = generator.sample(normals, n, self.recipe.seed, self.encoder.source_)
        return drawn, generator.kinds(n), generator.labels

    def _seen_member_scores(self) -> FloatArray:
        """Score rows by members that have seen them: all, or 1,000 of many, evenly spaced."""
        n = len(self.training)
        # from the rows that members with a maximum have learned
        chosen = core_rows(n, MANY_ROWS)
        chosen = chosen[core_rows(len(chosen), 1000)]
        scores = np.full((n, len(self.pool.names_)), np.nan)
        scores[chosen] = self.pool.score_samples(self.training[chosen])
        return scores

    def _tune(self, search: Search) -> None:
        """Choose settings, and perhaps members, from the scored rows."""
        names = self.pool.names_
        self.search = clone(search).fit(self.scored, *self.parts, names, self.recipe.seed)
        self.parts = self.search.best_normaliser_, self.search.best_fusion_
        if self.search.members_ != names:
            self.scored = keep_columns(self.scored, names, self.search.members_)
            self.pool = keep_members(self.pool, self.search.members_)

    # -- what has been learned ----------------------------------------------

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


def _folds_of_anomalies(label: Int64Array, fold: IntArray, n: int) -> IntArray:
    """Return folds for n anomalies, from the groups of the normals and then of the anomalies.

    An anomaly whose group is known goes to the fold of its group; unknown groups go to the
    folds in turn.
    """
    known = dict(zip(label[: len(fold)].tolist(), fold.tolist(), strict=True))
    theirs = label[len(fold) : len(fold) + n].tolist()
    others = sorted(set(theirs) - known.keys())
    n_folds = int(fold.max()) + 1
    known |= {group: place % n_folds for place, group in enumerate(others)}
    return np.array([known[group] for group in theirs], dtype=np.intp)


def _warn_if_useless(rows: ScoredRows) -> None:
    """Warn if no kind of pseudo-negative tells the members apart, from 30 normals on."""
    pseudo, normal = rows.kind >= 0, rows.y > 0
    if not pseudo.any() or normal.sum() < 30:
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
    n_groups = None if table.groups is None else len(np.unique(table.groups.label))
    is_small = is_refitted(learned.training.shape, len(learned.anomalies), n_groups)
    if is_small and np.ptp(learned.training) > 0:
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


def is_refitted(shape: tuple[int, ...], n_anomalies: int, n_groups: int | None) -> bool:
    """Return whether everything is learned again in folds, as far as numbers decide.

    `shape` is that of the rows that are learned as normal. With fewer than 3 rows per column,
    standardising by the rows themselves makes them look nearer than fresh ones. Every fold
    must have groups and anomalies left to learn from.
    """
    n, m = shape
    return (
        n < 3 * m
        and n <= 1000
        and (n_groups is None or n_groups > N_REFITS)
        and (n_anomalies == 0 or n_anomalies >= 2 * N_REFITS)
    )


def _refitted_scores(table: Table, learned: Learned) -> FloatArray:
    """Return the score of every row by a fit to the other folds."""
    scores = np.empty(len(table))
    order = canonical_order(learned.encoder.transform(table.X), *table.keys())
    fold = np.empty(len(table), dtype=np.intp)
    if table.groups is None:
        for is_anomaly in (False, True):
            chosen = order[(table.y[order] == ANOMALY) == is_anomaly]
            fold[chosen] = np.arange(len(chosen)) % N_REFITS
    else:
        fold[order] = table.groups.take(order).folds(N_REFITS)
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


def canonical_order(
    X: FloatArray, *keys: NDArray[Any] | None, first_columns: tuple[int, ...] = (1, 8)
) -> IntArray:
    """Return an order of the rows that depends on their content only.

    Whatever is learned from rows in this order does not depend on the order in
    which they came. Rounded values count first, so that a change of units, which
    changes the last bits of standardised values, keeps the order; then all bits;
    then the keys that are given. The first columns are looked at before all: mostly they
    differ between any two rows.
    """
    digits = 8
    for k in first_columns:
        place = row_numbers(np.round(X[:, :k], digits))
        if len(place) and place.max() == len(place) - 1:  # no two are equal: nothing else counts
            return np.argsort(place)
    given = [key for key in keys[::-1] if key is not None]
    return np.lexsort((*given, row_numbers(X), row_numbers(np.round(X, digits))))


def row_numbers(X: FloatArray) -> IntArray:
    """Return the place of every row when rows are sorted by their bytes; equal ones share it."""
    X = np.ascontiguousarray(X) + 0.0  # -0.0 and 0.0 are the same value
    rows = X.view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1]


def warn_of_settings(encoder: FeatureEncoder, table: Any) -> None:
    """Warn of settings of a fitted encoder that have no effect on this training table."""
    for name in encoder.alike(table):
        warnings.warn(
            f"Column {name!r} is a category, but its values come too rarely to differ: all are "
            "one, 'other', and nothing is learned from them. Leave the column out.",
            SuspectInputWarning,
            stacklevel=4,
        )
    if encoder.time_ is not None and not is_given(encoder.season):
        warnings.warn(
            f"time={encoder.time!r} has no effect without season, other than that the column is "
            "no feature. Give season, such as season='day', to compare numbers with the usual "
            "values at the same time; or leave time out, and the column out of X.",
            SuspectInputWarning,
            stacklevel=4,
        )


def warn_of_ignored(columns: list[str]) -> None:
    """Warn of columns that are not learned from."""
    if columns:
        are_empty = all(column.endswith(f"({EMPTY})") for column in columns)
        named = "What is a category all the same can be named: "
        advice = "" if are_empty else f" {named}encoder=FeatureEncoder(categories=[...])."
        warnings.warn(
            f"These columns are not learned from: {'; '.join(columns)}.{advice}",
            IgnoredColumnsWarning,
            stacklevel=4,
        )
