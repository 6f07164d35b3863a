"""Small models of every kind that a file may hold, and how to ask them for scores."""

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from ocfuse import FusedDetector
from ocfuse.detectors import GMM, KNN, Forest, Marginal
from ocfuse.groups import Groups
from ocfuse.persistence import save
from ocfuse.streaming import StreamDetector, StreamTable
from ocfuse.tables import TableDetector
from ocfuse.vision.features import Features
from ocfuse.vision.patches import PatchGaussian, PatchKNN

FEW = [("gmm", GMM(1)), ("knn", KNN(3))]
MEMBERS = [
    *FEW,
    ("forest", Forest(4, rows_per_tree=8)),
    ("marginal", Marginal()),
    ("isolation", IsolationForest(n_estimators=3, random_state=0)),
]
#: How often each model is mutated, against the others.
WEIGHTS = {
    "members": 6, "light": 3, "default": 1, "table": 3, "stream": 2, "patches": 3,
    "nearest patches": 3, "isolation forest": 4, "random forest": 3, "categories": 4,
    "labelled": 3, "neighbours": 6, "density": 3, "machine": 4,
}  # fmt: skip


def plain(n: int) -> Any:
    return np.random.default_rng(0).normal(size=(n, 3))


def plant(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    flow = rng.normal(size=n)
    return pd.DataFrame({"flow": flow, "current": flow / 2 + rng.normal(size=n)})


def kinds(n: int) -> pd.DataFrame:
    colours = pd.Categorical(np.take(["red", "green", "blue"], np.arange(n) % 3))
    return plant(n, 2).assign(colour=colours, shape=np.take(["round", "flat"], np.arange(n) % 2))


def pictures(n: int) -> Features:
    rng = np.random.default_rng(0)
    return Features(rng.normal(size=(n, 4)), {16: rng.normal(size=(n, 2, 2, 3))})


def ask(name: str) -> Callable[[Any], Any]:
    """Return what makes the model of a name score a few rows."""
    if name in ("patches", "nearest patches"):
        few = pictures(2)
        return lambda model: model.score(few)
    if name in ("table", "stream"):
        table = plant(8, 9)
        return lambda model: model.score(table)
    if name == "categories":
        mixed = kinds(8)
        return lambda model: _scored(model, mixed)
    X = plain(4)
    return lambda model: _scored(model, X)


def write_models(folder: Path) -> None:
    """Save each model under its name."""
    for name, model in fitted_models().items():
        save(model, folder / f"{name}.ocf")


@cache
def fitted_models() -> dict[str, Any]:
    """Return the models by their names, fitted once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are few rows, on purpose
        return _fused() | _patches() | _parts()


def _fused() -> dict[str, Any]:
    X, table = plain(30), plant(40, 1).assign(kind=np.arange(40) % 2)
    runs = pd.concat([plant(30, i).assign(file=f"{i}.csv") for i in range(4)], ignore_index=True)
    few = FusedDetector(FEW, random_state=0)
    return {
        "members": FusedDetector(MEMBERS, random_state=0).fit(X),
        "light": FusedDetector("light", random_state=0).fit(X),
        "default": FusedDetector(random_state=0).fit(X),
        "categories": FusedDetector(FEW, random_state=0).fit(kinds(40)),
        "labelled": FusedDetector(FEW, random_state=0).fit(X, np.where(X[:, 0] > 0.8, -1, 1)),
        "table": TableDetector(few, ignore=["kind"]).fit(table),
        "stream": StreamTable(StreamDetector(few, windows=(3,))).fit(runs),
    }


def _patches() -> dict[str, Any]:
    seen, folds = pictures(12), Groups(np.arange(12) % 3)
    found = {"patches": PatchGaussian(strides=(16,)), "nearest patches": PatchKNN(strides=(16,))}
    for member in found.values():
        member.fit(seen, folds)
    return found


def _parts() -> dict[str, Any]:
    X = plain(30)
    random = np.random.RandomState(0)
    parts = {
        "isolation forest": IsolationForest(n_estimators=3, max_features=2, random_state=random),
        "random forest": RandomForestClassifier(3, random_state=0),
        "neighbours": LocalOutlierFactor(5, novelty=True, algorithm="ball_tree", leaf_size=4),
        "density": KernelDensity(algorithm="kd_tree", leaf_size=4),
        "machine": make_pipeline(StandardScaler(), OneClassSVM()),
    }
    return {name: part.fit(X, X[:, 0] > 0) for name, part in parts.items()}


def _scored(model: Any, X: Any) -> Any:
    for name in ("score_samples", "predict_proba", "decision_function"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    return model.predict(X)
