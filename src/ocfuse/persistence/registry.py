"""Names of our classes in model files, and where the classes are.

A model file names a class by the key of `CLASSES`, such as "LocalScale", and never by a module:
modules move, files stay. Only these classes of ours are built from a file.

- A class that moves, or is called otherwise: change the value, keep the key.
- A new class that models hold: add a key, which is the name of the class unless it is taken.
- An attribute that is called otherwise: add the old and the new name to `RENAMED_ATTRIBUTES`.
- A key is never removed or given to another class: files that name it must load, or be refused.
"""

import importlib
from functools import cache
from typing import Any

#: Where the class of each name is, imported when a file needs it.
CLASSES: dict[str, str] = {
    "ALP": "ocfuse.detectors.neighbours.ALP",
    "AlarmRate": "ocfuse.streaming.alarm_rate.AlarmRate",
    "AverageOfMaximum": "ocfuse.fusion.rules.AverageOfMaximum",
    "Bets": "ocfuse.scores.slow.Bets",
    "Blocks": "ocfuse.detectors.landmarks.Blocks",
    "Calendar": "ocfuse.usual.seasons.Calendar",
    "CascadeFusion": "ocfuse.fusion.cascade.CascadeFusion",
    "ChangeTest": "ocfuse.scores.slow.ChangeTest",
    "ChannelMonitor": "ocfuse.streaming.sensors.ChannelMonitor",
    "Clock": "ocfuse.streaming.clock.Clock",
    "Column": "ocfuse.tables.cells.Column",
    "CompetenceFusion": "ocfuse.fusion.competence.CompetenceFusion",
    "Compressed": "ocfuse.detectors.views.Compressed",
    "Compression": "ocfuse.detectors.views.Compression",
    "ConformalCalibrator": "ocfuse.scores.conformal.ConformalCalibrator",
    "ContextScale": "ocfuse.ensemble.score.ContextScale",
    "Course": "ocfuse.streaming.course.Course",
    "Event": "ocfuse.streaming.events.Event",
    "EventRule": "ocfuse.streaming.events.EventRule",
    "EventTracker": "ocfuse.streaming.events.EventTracker",
    "Evidence": "ocfuse.fusion.base.Evidence",
    "Family": "ocfuse.vision.fit.Family",
    "FamilyFusion": "ocfuse.vision.fit.FamilyFusion",
    "FeatureEncoder": "ocfuse.encoder.FeatureEncoder",
    "FittedMixture": "ocfuse.detectors.mixture.FittedGaussians",
    "Forest": "ocfuse.detectors.forest.Forest",
    "FusedDetector": "ocfuse.ensemble.detector.FusedDetector",
    "GMM": "ocfuse.detectors.mixture.GMM",
    "Gauss": "ocfuse.negatives.generators.Gauss",
    "Groups": "ocfuse.groups.Groups",
    "GroupLevels": "ocfuse.usual.groups.GroupLevels",
    "HeldOutRuns": "ocfuse.streaming.alarm_rate.HeldOutRuns",
    "KNN": "ocfuse.detectors.neighbours.KNN",
    "KPCA": "ocfuse.detectors.kpca.KPCA",
    "LOF": "ocfuse.detectors.neighbours.LOF",
    "LabelCalibrator": "ocfuse.scores.calibrate.LabelCalibrator",
    "LabelRule": "ocfuse.tables.labels.LabelRule",
    "LabelledAUC": "ocfuse.tuning.criteria.LabelledAUC",
    "LabelledFusion": "ocfuse.fusion.labelled.LabelledFusion",
    "LeastSquaresFusion": "ocfuse.fusion.lp.LeastSquaresFusion",
    "Lite0": "ocfuse.vision.backbone.Lite0",
    "ValueLimits": "ocfuse.limits.ValueLimits",
    "LocalFactor": "ocfuse.detectors.neighbours.LocalFactor",
    "LocalLpFusion": "ocfuse.fusion.local_lp.LocalLpFusion",
    "LocalScale": "ocfuse.fusion.local_scale.LocalScale",
    "Locality": "ocfuse.fusion.locality.Locality",
    "LpFusion": "ocfuse.fusion.lp.LpFusion",
    "Mahalanobis": "ocfuse.detectors.views.Mahalanobis",
    "MajorityVote": "ocfuse.fusion.rules.MajorityVote",
    "Marginal": "ocfuse.detectors.marginal.Marginal",
    "MaxRule": "ocfuse.fusion.rules.MaxRule",
    "MedianRule": "ocfuse.fusion.rules.MedianRule",
    "MinMax": "ocfuse.scores.normalise.MinMax",
    "MinRule": "ocfuse.fusion.rules.MinRule",
    "Mirror": "ocfuse.negatives.generators.Mirror",
    "Mixture": "ocfuse.negatives.generators.Mixture",
    "Neighbourhood": "ocfuse.fusion.local_lp.Neighbourhood",
    "NumberScaler": "ocfuse.encoder.NumberScaler",
    "OneClassGP": "ocfuse.detectors.gp.OneClassGP",
    "OnValidation": "ocfuse.paper.OnValidation",
    "OnnxBackbone": "ocfuse.vision.backbone.OnnxBackbone",
    "PCShuffle": "ocfuse.negatives.generators.PCShuffle",
    "PaperDetector": "ocfuse.paper.PaperDetector",
    "Parts": "ocfuse.tuning.search.Parts",
    "PatchGaussian": "ocfuse.vision.patches.PatchGaussian",
    "PatchKNN": "ocfuse.vision.patches.PatchKNN",
    "PictureDetector": "ocfuse.vision.detector.PictureDetector",
    "Pool": "ocfuse.detectors.pool.Pool",
    "PooledMembers": "ocfuse.vision.pooled.PooledMembers",
    "ProductRule": "ocfuse.fusion.rules.ProductRule",
    "PseudoNegativeAUC": "ocfuse.tuning.criteria.PseudoNegativeAUC",
    "PyodDetector": "ocfuse.detectors.members.PyodDetector",
    "QueryProblems": "ocfuse.fusion.local_lp.QueryProblems",
    "RPAU": "ocfuse.tuning.criteria.RPAU",
    "Reference": "ocfuse.detectors.gram.Reference",
    "Rest": "ocfuse.streaming.clock.Rest",
    "RobustZ": "ocfuse.scores.normalise.RobustZ",
    "RollingThreshold": "ocfuse.scores.slow.RollingThreshold",
    "SVDD": "ocfuse.detectors.svdd.SVDD",
    "SavedStream": "ocfuse.streaming.resume.SavedStream",
    "Schema": "ocfuse.tables.schema.Schema",
    "Search": "ocfuse.tuning.search.Search",
    "Season": "ocfuse.usual.seasons.Season",
    "Seasons": "ocfuse.usual.seasons.Seasons",
    "SensorLimits": "ocfuse.streaming.sensors.SensorLimits",
    "Shuffle": "ocfuse.negatives.generators.Shuffle",
    "Sides": "ocfuse.sides.Sides",
    "SingleBest": "ocfuse.fusion.rules.SingleBest",
    "SlowChange": "ocfuse.streaming.slow.SlowChange",
    "SlowMean": "ocfuse.streaming.clock.SlowMean",
    "SmoothTail": "ocfuse.scores.distribution.SmoothTail",
    "Stability": "ocfuse.tuning.criteria.Stability",
    "StackedFusion": "ocfuse.fusion.stacking.StackedFusion",
    "Start": "ocfuse.ensemble.update.Start",
    "Stillness": "ocfuse.vision.fit.Stillness",
    "StreamDetector": "ocfuse.streaming.detector.StreamDetector",
    "StreamState": "ocfuse.streaming.clock.StreamState",
    "StreamTable": "ocfuse.streaming.table.StreamTable",
    "StreamView": "ocfuse.streaming.view.StreamView",
    "Subspace": "ocfuse.detectors.mixture.Subspace",
    "SumRule": "ocfuse.fusion.rules.SumRule",
    "Swap": "ocfuse.negatives.generators.Swap",
    "TableDetector": "ocfuse.tables.detector.TableDetector",
    "TailCalibrator": "ocfuse.scores.calibrate.TailCalibrator",
    "TailProbability": "ocfuse.scores.normalise.TailProbability",
    "TorchBackbone": "ocfuse.vision.networks.TorchBackbone",
    "Trees": "ocfuse.detectors.forest.Trees",
    "TailScale": "ocfuse.fusion.trust.TailScale",
    "TrimmedMean": "ocfuse.fusion.rules.TrimmedMean",
    "TrustFusion": "ocfuse.fusion.trust.TrustFusion",
    "Uniform": "ocfuse.negatives.generators.Uniform",
    "Usual": "ocfuse.usual.Usual",
    "UsualValues": "ocfuse.explain.UsualValues",
    "Viewed": "ocfuse.detectors.views.Viewed",
    "ViewedReference": "ocfuse.detectors.gram.ViewedReference",
    "WeightedSample": "ocfuse.scores.distribution.WeightedSample",
    "Whitened": "ocfuse.detectors.views.Whitened",
    "Whitening": "ocfuse.detectors.views.Whitening",
    "Windows": "ocfuse.streaming.windows.Windows",
    "ZScore": "ocfuse.scores.normalise.ZScore",
}
#: Paths that files of format 1 have instead, without the package, and their names. This table
#: is history: it does not change when classes move.
PATHS_OF_FORMAT_1: dict[str, str] = {
    "detectors.adapters.PyodDetector": "PyodDetector",
    "detectors.alp.ALP": "ALP",
    "detectors.blocks.Blocks": "Blocks",
    "detectors.compressed.Compressed": "Compressed",
    "detectors.compressed.Compression": "Compression",
    "detectors.forest.Forest": "Forest",
    "detectors.forest.Trees": "Trees",
    "detectors.gp.OneClassGP": "OneClassGP",
    "detectors.gram.Reference": "Reference",
    "detectors.gram.ViewedReference": "ViewedReference",
    "detectors.groups.Groups": "Groups",
    "detectors.kpca.KPCA": "KPCA",
    "detectors.marginal.Marginal": "Marginal",
    "detectors.mixture.GMM": "GMM",
    "detectors.mixture.Mixture": "FittedMixture",
    "detectors.mixture.Subspace": "Subspace",
    "detectors.neighbours.KNN": "KNN",
    "detectors.neighbours.LOF": "LOF",
    "detectors.neighbours.LocalFactor": "LocalFactor",
    "detectors.pools.Pool": "Pool",
    "detectors.svdd.SVDD": "SVDD",
    "detectors.viewed.Viewed": "Viewed",
    "detectors.whitened.Mahalanobis": "Mahalanobis",
    "detectors.whitened.Whitened": "Whitened",
    "detectors.whitening.Whitening": "Whitening",
    "ensemble.context.ContextScale": "ContextScale",
    "ensemble.detector.FusedDetector": "FusedDetector",
    "explain.UsualValues": "UsualValues",
    "features.FeatureEncoder": "FeatureEncoder",
    "features.NumberScaler": "NumberScaler",
    "fusion.cascade.CascadeFusion": "CascadeFusion",
    "fusion.competence.CompetenceFusion": "CompetenceFusion",
    "fusion.evidence.Evidence": "Evidence",
    "fusion.labelled.LabelledFusion": "LabelledFusion",
    "fusion.local.LocalLpFusion": "LocalLpFusion",
    "fusion.locality.Locality": "Locality",
    "fusion.lp.LpFusion": "LpFusion",
    "fusion.neighbourhood.Neighbourhood": "Neighbourhood",
    "fusion.query.QueryProblems": "QueryProblems",
    "fusion.rules.AverageOfMaximum": "AverageOfMaximum",
    "fusion.rules.MajorityVote": "MajorityVote",
    "fusion.rules.MaxRule": "MaxRule",
    "fusion.rules.MedianRule": "MedianRule",
    "fusion.rules.MinRule": "MinRule",
    "fusion.rules.ProductRule": "ProductRule",
    "fusion.rules.SumRule": "SumRule",
    "fusion.rules.TrimmedMean": "TrimmedMean",
    "fusion.single.SingleBest": "SingleBest",
    "fusion.stacking.StackedFusion": "StackedFusion",
    "fusion.surroundings.LocalScale": "LocalScale",
    "negatives.gauss.Gauss": "Gauss",
    "negatives.mirror.Mirror": "Mirror",
    "negatives.mixture.Mixture": "Mixture",
    "negatives.pcshuffle.PCShuffle": "PCShuffle",
    "negatives.shuffle.Shuffle": "Shuffle",
    "negatives.swap.Swap": "Swap",
    "negatives.uniform.Uniform": "Uniform",
    "scores.calibrate.LabelCalibrator": "LabelCalibrator",
    "scores.calibrate.TailCalibrator": "TailCalibrator",
    "scores.conformal.ConformalCalibrator": "ConformalCalibrator",
    "scores.normalise.MinMax": "MinMax",
    "scores.normalise.RobustZ": "RobustZ",
    "scores.normalise.TailProbability": "TailProbability",
    "scores.normalise.ZScore": "ZScore",
    "scores.sample.WeightedSample": "WeightedSample",
    "scores.tail.SmoothTail": "SmoothTail",
    "streaming.clock.Clock": "Clock",
    "streaming.course.Course": "Course",
    "streaming.detector.StreamDetector": "StreamDetector",
    "streaming.slow.Rest": "Rest",
    "streaming.slow.SlowMean": "SlowMean",
    "streaming.state.StreamState": "StreamState",
    "streaming.table.StreamTable": "StreamTable",
    "streaming.view.StreamView": "StreamView",
    "streaming.windows.Windows": "Windows",
    "tables.column.Column": "Column",
    "tables.detector.TableDetector": "TableDetector",
    "tables.labels.LabelRule": "LabelRule",
    "tables.schema.Schema": "Schema",
    "tuning.areas.LabelledAUC": "LabelledAUC",
    "tuning.areas.PseudoNegativeAUC": "PseudoNegativeAUC",
    "tuning.parts.Parts": "Parts",
    "tuning.rpau.RPAU": "RPAU",
    "tuning.search.Search": "Search",
    "tuning.stability.Stability": "Stability",
    "vision.backbone.OnnxBackbone": "OnnxBackbone",
    "vision.detector.PictureDetector": "PictureDetector",
    "vision.families.FamilyFusion": "FamilyFusion",
    "vision.gaussian.PatchGaussian": "PatchGaussian",
    "vision.learning.Family": "Family",
    "vision.named.Lite0": "Lite0",
    "vision.nearest.PatchKNN": "PatchKNN",
    "vision.pooled.PooledMembers": "PooledMembers",
    "vision.torched.TorchBackbone": "TorchBackbone",
}
#: Attributes that earlier files name otherwise, and their names today, by the key of the class.
RENAMED_ATTRIBUTES: dict[str, dict[str, str]] = {
    "Pool": {"honest_scores_": "out_of_fold_scores_"},
}
_NAMES = {path: name for name, path in CLASSES.items()}


def name_in_files(path: str) -> str | None:
    """Return what a file calls the class at a path of today; None for any other path."""
    return _NAMES.get(path)


def registered(name: str) -> str | None:
    """Return the key of a full name that stands in a file, or None if it is not registered.

    The name is "ocfuse." and a key of `CLASSES` or, in format 1, of `PATHS_OF_FORMAT_1`.
    """
    package, _, rest = name.partition(".")
    if package != "ocfuse":
        return None
    return rest if rest in CLASSES else PATHS_OF_FORMAT_1.get(rest)


def with_names_of_today(name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that a file has of a class, by their names of today."""
    renamed = RENAMED_ATTRIBUTES.get(registered(name) or "", {})
    return {renamed.get(attribute, attribute): value for attribute, value in attributes.items()}


@cache
def class_of(key: str) -> type:
    """Return the class of a key, having imported its module."""
    module, _, name = CLASSES[key].rpartition(".")
    found: type = getattr(importlib.import_module(module), name)
    return found
