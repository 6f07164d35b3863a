"""Data of a report and of explanations, gathered from a fitted detector and new rows."""

import hashlib
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from ocfuse.arrays import BoolArray, FloatArray, IntArray
from ocfuse.detectors.base import core_rows
from ocfuse.encoder import check_table
from ocfuse.ensemble.outliers import LARGEST_GROUP, remote_groups
from ocfuse.ensemble.score import ScoreChain, Trace
from ocfuse.exceptions import InvalidInputError
from ocfuse.explain import Explanation, RowRanges, attribute_features, values_of
from ocfuse.limits import ValueLimits
from ocfuse.report.data import Embedding, GroupAlarms, ReportData, count_by_group
from ocfuse.report.timeline import to_times
from ocfuse.report.words import count
from ocfuse.stats.ranks import rank_correlation
from ocfuse.system.packages import slow
from ocfuse.validation import check_training_labels

if TYPE_CHECKING:
    from ocfuse.ensemble.detector import FusedDetector

#: Rows that are explained at least, if there are as many.
FEWEST_EXPLAINED = 10
#: Rows that may be scored to explain others; every row takes two per feature.
MOST_SCORED = 40_000
#: Training rows, and rows of the report, on the map.
MOST_POINTS = 2500


def report_data(
    detector: "FusedDetector",
    X: Any,
    y: Any = None,
    *,
    time: Any = None,
    ids: Any = None,
    feature_names: Sequence[str] | None = None,
    title: str,
    card: Mapping[str, str] | None = None,
    context: Any = None,
    trace: Trace | None = None,
    events: list[IntArray] | None = None,
) -> ReportData:
    """Return all that a report shows; `FusedDetector.report` says what the arguments are."""
    table = check_table(X)
    n = len(table)
    labels, times, is_date, remarks = None, None, False, []
    if y is not None:
        labels = check_training_labels(y, n)
        if not labels.any():
            labels = None
            remarks.append("No row has a label that says normal or anomaly: hits are not counted.")
    if time is not None:
        times, is_date = to_times(time, n)
        if not np.isfinite(times).any():
            times, is_date = None, False
            remarks.append("No row has a time that can be read: scores over time are not drawn.")
    trace = detector._trace(table, context) if trace is None else trace
    rules = detector.broken_limits(trace.X)
    is_broken = rules != ""
    rows = _rows_to_explain(
        *(trace.score, detector.offset_, detector.n_features_in_, events or (), is_broken)
    )
    if detector.limits_ is not None:
        remarks.append(_about_limits(detector.limits_, rules[is_broken].tolist()))
    why = explanation(detector, trace.take(rows))
    if feature_names is not None:
        names = [str(name) for name in feature_names]
        if len(names) != len(why.feature_names):
            raise InvalidInputError(
                f"feature_names must name all {len(why.feature_names)} columns. "
                f"Got {len(names)} names."
            )
        why = replace(why, feature_names=names)
    return ReportData(
        title=str(title),
        scores=trace.score,
        ids=_ids(ids, table, n),
        rows=rows,
        explanation=why,
        readings=[why.readings(i, 8) for i in range(len(why))],
        embedding=_embedding(detector, trace, rows),
        agreement=rank_correlation(trace.member_scores) if n >= 10 else None,
        card=_card(detector, trace.encoded)
        | {str(name): str(line) for name, line in (card or {}).items()},
        remarks=[*_remarks(detector, trace.encoded), *remarks],
        labels=labels,
        times=times,
        is_date=is_date,
        events=events,
        by_group=_by_group(detector, trace),
        offset=detector.offset_,
        wanted_rate=detector.false_alarm_rate,
        calibrator=detector.conformal_,
        held_out_scores=detector.training_scores_[np.sort(detector.training_rows_)],
    )


def _about_limits(limits: ValueLimits, broken: list[str]) -> str:
    """Say how many rows break limits, and that these are counted apart."""
    counts = Counter(rule for rules in broken for rule in rules.split("; "))
    shown = ", ".join(f"{rule}: {n:,}" for rule, n in counts.items())
    return (
        f"Limits: {limits}. {count(len(broken), 'row')} of this report break them"
        f"{f' ({shown})' * bool(broken)}. They raise alarms whatever their scores are, and are "
        "counted here and nowhere else: alarms and rates on this page are those of the score."
    )


def _rows_to_explain(
    scores: FloatArray,
    offset: float,
    n_features: int,
    events: Sequence[IntArray],
    is_broken: BoolArray,
) -> IntArray:
    """Return the rows that raise an alarm, the lowest first, within what may be spent.

    The lowest row of each event is one of them, of as many events as half of the rows are. Rows
    that break limits are counted in, behind the others.
    """
    affordable = max(MOST_SCORED // (2 * n_features), FEWEST_EXPLAINED)
    n_alarms = int(np.sum(scores < offset))
    most = min(max(n_alarms, FEWEST_EXPLAINED), 200, affordable)
    order: IntArray = np.argsort(scores, kind="stable")
    of_events = np.array([rows[np.argmin(scores[rows])] for rows in events if len(rows)], dtype=int)
    of_events = of_events[np.argsort(scores[of_events], kind="stable")][: most // 2]
    others = order[~np.isin(order, of_events)][: most - len(of_events)]
    chosen = np.concatenate([of_events, others])
    lowest = chosen[np.argsort(scores[chosen], kind="stable")]
    broken = np.setdiff1d(np.flatnonzero(is_broken), lowest)
    return np.append(lowest, broken[: max(min(200, affordable) - most, 0)])


def _ids(ids: Any, table: Any, n: int) -> list[str]:
    """Return what to call the rows: the names given, those of a data frame, or numbers."""
    if ids is None:
        index = getattr(table, "index", None)
        return [str(i) for i in (range(n) if index is None else index)]
    names = [str(i) for i in ids]
    if len(names) != n:
        raise InvalidInputError(f"ids must name all {n} rows. Got {len(names)} names.")
    return names


def _embedding(detector: "FusedDetector", trace: Trace, rows: IntArray) -> Embedding:
    """Put some training rows and some new ones, the explained among them, on a plane."""
    E, C = trace.encoded, trace.context
    known = core_rows(len(detector.training_), MOST_POINTS)
    fresh = np.union1d(core_rows(len(E), MOST_POINTS - len(rows)), rows)
    positions = detector.training_rows_[known]
    encoded = np.vstack([detector.training_[known], E[fresh]])
    theirs = detector.training_context_
    context = None if C is None or theirs is None else np.vstack([theirs[known], C[fresh]])
    # the first two principal components of the rows, whose far values are pulled in
    near = np.arcsinh(encoded)
    count = min(2, *near.shape)
    points = np.zeros((len(near), 2))
    pca = slow("sklearn.decomposition").PCA(count, random_state=0)
    points[:, :count] = pca.fit_transform(near)
    return Embedding(
        points=points,
        is_new=np.repeat([False, True], [len(known), len(fresh)]),
        rows=np.concatenate([positions, fresh]),
        scores=np.concatenate([detector.training_scores_[positions], trace.score[fresh]]),
        weights=detector.fusion_.weights(encoded, context),
        local_p=detector.fusion_.local_p(encoded, context),
    )


def _card(detector: "FusedDetector", E: FloatArray) -> dict[str, str]:
    """Return the lines of the data and model card."""
    packages = ("ocfuse", "numpy", "scipy", "scikit-learn")
    versions = [f"{name} {version(name)}" for name in packages]
    probabilities = type(detector.calibrator_).__name__
    return {
        "Report made": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "Versions": ", ".join([*versions, f"Python {platform.python_version()}"]),
        "Rows in this report": f"{len(E):,}",
        "Columns": f"{detector.n_features_in_:,}",
        "Training rows learned from": f"{len(detector.training_):,}",
        "Training rows left out, too far outside": _listed(detector.trimmed_rows_),
        "Pool": detector.pool_.pool_name_ or "none: the members were given",
        "Members": ", ".join(detector.pool_.names_),
        "Settings": str(detector),
        "Fusion": str(detector.fusion_),
        **{
            f"Trusted most, {place}": line
            for place, line in enumerate(in_words(trusted_members(detector)), start=1)
        },
        **_usual_card(detector),
        "Threshold": f"{detector.offset_:.6g}",
        **({} if detector.limits_ is None else {"Limits": str(detector.limits_)}),
        "False-alarm rate asked for in training": f"{detector.false_alarm_rate:g}",
        "Probabilities from": "labels" if probabilities == "LabelCalibrator" else "normal rows",
        "SHA-256 of the rows of this report, as the members see them": _checksum(E),
        "SHA-256 of the rows learned from, as the members see them": _checksum(detector.training_),
    }


def trusted_members(detector: "FusedDetector") -> list[dict[str, Any]]:
    """Return members with weight and reason, the most trusted first, if weights are learned."""
    fusion = detector.fusion_
    weights = getattr(fusion, "trust_", None)
    if weights is None:
        return []
    found = [
        {"member": name, "weight": float(weight), "reason": reason}
        for name, weight, reason in zip(
            detector.pool_.names_, weights, fusion.reasons(), strict=True
        )
    ]
    return sorted(found, key=lambda one: -float(one["weight"]))


def in_words(trusted: list[dict[str, Any]]) -> list[str]:
    """Return a line for each of the three most trusted members that has a reason."""
    return [
        f"{one['member']}, weight {one['weight']:.2f}; {one['reason']}"
        for one in trusted[:3]
        if one["reason"]
    ]


def _listed(rows: IntArray) -> str:
    """Return such as "3 (rows 4, 17, 30 of the training table, counted from 0)"."""
    if not len(rows):
        return "none"
    more = ", ..." if len(rows) > 20 else ""
    names = ", ".join(map(str, rows[:20].tolist()))
    return f"{len(rows):,} (of the training table, counted from 0: {names}{more})"


def _remarks(detector: "FusedDetector", E: FloatArray) -> list[str]:
    """Return what the user should know about the training rows and the members."""
    remarks = [
        f"Member {name} failed in training and is not used: {reason}"
        for name, reason in detector.pool_.dropped_.items()
    ]
    n = len(detector.training_)
    n_remote = int(remote_groups(detector.training_).sum())
    if n_remote > LARGEST_GROUP * n:  # as `fit` warns: a smaller group is left out
        remarks.append(
            f"{n_remote:,} of {n:,} training rows lie far from the others and were learned as "
            "normal, as so many may be a rare mode. Rows like them raise no alarm: if they are "
            "anomalies, label them -1 or leave them out, and fit again."
        )
    if _are_training_rows(detector, E):
        by_group = " Alarms by group are those of held-out scores." if detector.encoder_.by_ else ""
        remarks.append(
            "These are the rows that the members learned from: they score higher than fresh rows."
            f"{by_group}"
        )
    return remarks


def _are_training_rows(detector: "FusedDetector", E: FloatArray) -> bool:
    """Return whether encoded rows are those of training."""
    if len(E) != len(detector.training_scores_):
        return False
    found, learned = E[detector.training_rows_], detector.training_
    if detector.encoder_.usual_ is None:
        return np.array_equal(found, learned)
    # those were measured from the other rows of their group, and are nearly the same
    return bool(np.median(np.abs(found - learned)) < 0.1)


def _checksum(array: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def explanation(detector: "FusedDetector", trace: Trace) -> Explanation:
    """Return what lies behind the scores of rows; see `FusedDetector.explain`."""
    E, C, Z = trace.encoded, trace.context, trace.normalised
    base, contributions = detector.fusion_.contributions(Z, E, C)
    names = [*getattr(detector, "feature_names_in_", ())]
    names = names or [f"x{j}" for j in range(detector.n_features_in_)]
    near = [_near(detector, row) for row in E]
    nearest = np.array([rows for rows, _, _ in near])
    return Explanation(
        score=trace.score,
        offset=detector.offset_,
        p_value=detector.conformal_.p_values(trace.score),
        member_names=list(detector.pool_.names_),
        member_scores=trace.member_scores,
        normalised_scores=Z,
        weights=detector.fusion_.weights(E, C),
        base=base,
        contributions=contributions,
        local_p=detector.fusion_.local_p(E, C),
        nearest_rows=detector.training_rows_[nearest],
        nearest_distances=np.array([distances for _, distances, _ in near]),
        feature_names=names,
        attributions=_attributions(
            detector, trace, np.array([reference for *_, reference in near])
        ),
        values=values_of(trace.X, detector.encoder_),
        usual=detector.usual_,
        trust_reasons=detector.fusion_.reasons(),
        rules=[] if detector.limits_ is None else detector.broken_limits(trace.X).tolist(),
        ranges=_ranges(detector, trace.X),
        is_learned=np.isin(np.arange(detector.n_features_in_), detector.encoder_.source_),
    )


def _by_group(detector: "FusedDetector", trace: Trace) -> list[GroupAlarms]:
    """Count alarms by group, if numbers are measured from what is usual for it.

    Rows of training count with their held-out scores, as those of the members that know them are
    too high.
    """
    encoder = detector.encoder_
    if not len(encoder.by_):
        return []
    names = encoder.groups_of(trace.X, encoder.read(trace.X))
    is_known = _are_training_rows(detector, trace.encoded)
    scores = detector.training_scores_ if is_known else trace.score
    return count_by_group(names, scores < detector.offset_)


def usual_facts(detector: "FusedDetector") -> dict[str, Any] | None:
    """Return for whom numbers are measured from what is usual; None if they are not."""
    encoder = detector.encoder_
    if encoder.usual_ is None:
        return None
    names = [*getattr(detector, "feature_names_in_", ())]
    names = names or [f"x{j}" for j in range(detector.n_features_in_)]
    known: dict[str, Any] = {"by": [names[j] for j in encoder.by_]}
    if encoder.by_:
        levels = encoder.usual_.groups_
        known |= {
            "groups": len(levels.counts_),
            "rows": [int(n) for n in np.quantile(levels.counts_, [0, 0.5, 1], method="lower")],
            # how far centres are drawn to those of the wider group
            "drawn": {
                names[j]: round(1.0 - float(own), 4)
                for j, own in zip(encoder.numeric, levels.own_, strict=True)
            },
        }
    if encoder.usual_.seasons is not None:
        known |= encoder.usual_.seasons.facts([names[j] for j in encoder.numeric])
    return known


def usual_words(facts: dict[str, Any] | None) -> list[str]:
    """Return the same in words."""
    if facts is None:
        return []
    lines = []
    if facts.get("by"):
        least, middle, most = facts["rows"]
        size = f"{least:,} to {most:,} rows, mostly {middle:,}"
        size = count(least, "row") if least == most else size
        ranked = sorted(facts["drawn"].items(), key=lambda one: -one[1])
        drawn = ", ".join(f"{name} {share:.0%}" for name, share in ranked[:3] if share >= 0.005)
        how = f"centres drawn to the others: {drawn}" if drawn else "centres hardly drawn to others"
        groups = count(facts["groups"], "group")
        lines.append(f"measured by {', '.join(facts['by'])}: {groups} of {size}; {how}")
    for name, columns in facts.get("seasons", {}).items():
        if not columns:
            lines.append(f"time of {name}: foretells no column, and is left out")
            continue
        n, shown = facts["columns"], ", ".join(columns[:5])
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        zone = f" in {facts['zone']}" if facts["zone"] else ""
        zone += " all year round" if zone.startswith(" in UTC") and zone != " in UTC" else ""
        lines.append(f"time of {name}{zone}: for {len(columns)} of {n} columns: {shown}{more}")
    return lines


def _usual_card(detector: "FusedDetector") -> dict[str, str]:
    """Return lines of the card on what numbers are measured from."""
    lines = usual_words(usual_facts(detector))
    return {"Numbers": "; ".join(lines)} if lines else {}


def _ranges(detector: "FusedDetector", X: Any) -> RowRanges | None:
    """Return what is usual for each row, if that depends on its group or time."""
    encoder = detector.encoder_
    if encoder.usual_ is None:
        return None
    codes = encoder.read(X)
    low, high, centre, unit = encoder.ranges(codes)
    return RowRanges(low, high, centre, unit, encoder.situations(X, codes))


def _near(detector: "FusedDetector", x: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the nearest training rows, their distances, and what the row is compared with.

    Compared with is what the rows most like it have. Of these a feature counts no farther than
    one standard deviation: what is far off in one feature is then compared with rows that agree
    with it in the others.
    """
    training, source = detector.training_, detector.encoder_.source_
    order = np.argsort(source, kind="stable")
    starts = np.flatnonzero(np.diff(source[order], prepend=-1))
    distances, unlike = np.empty((2, len(training)))
    step = max(1, 2**22 // len(x))  # numbers that are held at a time
    for begin in range(0, len(training), step):
        some = slice(begin, begin + step)
        squares = np.square(training[some] - x)
        distances[some] = squares.sum(axis=1)
        if len(starts) < len(x):
            squares = np.add.reduceat(squares[:, order], starts, axis=1)
        unlike[some] = np.minimum(squares, 1.0).sum(axis=1)
    nearest = _lowest(distances)
    most_alike = training[_lowest(unlike)]
    return nearest, np.sqrt(distances[nearest]), _reference(detector, x, most_alike)


def _lowest(values: FloatArray) -> IntArray:
    """Return where the three lowest values are, the first ones if some are equal."""
    count = min(3, len(values))
    candidates = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    lowest: IntArray = candidates[np.argsort(values[candidates], kind="stable")[:count]]
    return lowest


def _reference(detector: "FusedDetector", x: FloatArray, alike: FloatArray) -> FloatArray:
    """Return the row with every feature that no row like it has brought to the nearest that has.

    A number is brought into their range, and so is what goes with a category that is
    described by it. Any other category that none of them has becomes that of most of them, of the
    most alike if there are several.
    """
    reference = np.clip(x, alike.min(axis=0), alike.max(axis=0))
    source, categorical = detector.encoder_.source_, detector.encoder_.categorical_
    width = np.bincount(source, minlength=len(categorical))
    is_block = categorical | (width > 1)
    is_block[np.flatnonzero(detector.encoder_.profiled_)] = False
    for j in np.flatnonzero(is_block).tolist():
        columns = source == j
        theirs = alike[:, columns]
        if (theirs == x[columns]).all(axis=1).any():
            reference[columns] = x[columns]
        else:
            agree = (theirs[:, np.newaxis] == theirs).all(axis=2).sum(axis=1)
            reference[columns] = theirs[int(np.argmax(agree))]
    return reference


def _attributions(detector: "FusedDetector", trace: Trace, reference: FloatArray) -> FloatArray:
    """Share every score among the features; the context of a row stays as it is.

    A value on the harmless side of its column stays as well: it costs nothing.
    """
    encoder, C = detector.encoder_, trace.context
    E, source, n_columns = trace.encoded, encoder.source_, trace.encoded.shape[1]
    chain = ScoreChain.of(detector)
    if encoder.sides_ is not None:
        given = encoder.two_sided(encoder.read(trace.X))
        reference = encoder.sides_.no_worse(given, E, reference)
        E = given
    if C is not None:
        E, reference = np.hstack([E, C]), np.hstack([reference, C])
        source = np.append(source, np.full(C.shape[1], -1))

    def score(rows: FloatArray) -> FloatArray:
        theirs = None if C is None else rows[:, n_columns:]
        return chain.score_encoded(encoder.one_sided(rows[:, :n_columns]), theirs)

    return attribute_features(score, E, reference, source, detector.n_features_in_)
