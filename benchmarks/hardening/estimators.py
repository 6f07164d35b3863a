"""A fitted instance of every estimator of scikit-learn that a model file may name.

Those that keep other things when they are told to, such as neighbours with another
metric, are there more than once.
"""

import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn import (
    compose,
    covariance,
    decomposition,
    ensemble,
    impute,
    isotonic,
    kernel_approximation,
    linear_model,
    mixture,
    neighbors,
    pipeline,
    preprocessing,
    svm,
    tree,
)

from ocfuse import FusedDetector
from ocfuse.detectors import GMM

N_ROWS, N_COLUMNS = 41, 3
#: Rows of training, and the rows that a loaded model is asked about.
X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
QUERY = np.random.default_rng(1).normal(size=(5, N_COLUMNS))
Y = (X[:, 0] > 0).astype(int)
GAPS = np.where(X > 1.5, np.nan, X)
KINDS = np.round(np.abs(QUERY))


def _neighbours() -> dict[str, Any]:
    matrix, ones = np.eye(N_COLUMNS) + 0.1, np.arange(1.0, N_COLUMNS + 1)
    lof, near, density = (
        neighbors.LocalOutlierFactor,
        neighbors.NearestNeighbors,
        neighbors.KernelDensity,
    )
    inverse, spread = {"VI": matrix}, {"V": ones}
    return {
        "LOF": lof(5, novelty=True),
        "LOF, ball tree": lof(5, novelty=True, algorithm="ball_tree", leaf_size=4),
        "LOF, Mahalanobis": lof(
            5, novelty=True, metric="mahalanobis", metric_params=inverse, algorithm="ball_tree"
        ),
        "LOF, of one matrix": lof(
            5, novelty=True, metric="mahalanobis", metric_params=inverse, algorithm="brute"
        ),
        "neighbours": near(algorithm="brute"),
        "neighbours, KD tree": near(algorithm="kd_tree", leaf_size=4),
        "neighbours, Minkowski": near(p=3, metric_params={"w": ones}, algorithm="ball_tree"),
        "neighbours, by variance": near(
            metric="seuclidean", metric_params=spread, algorithm="brute"
        ),
        "neighbours, tree by variance": near(
            metric="seuclidean", metric_params=spread, algorithm="ball_tree"
        ),
        "neighbours, cosine": near(metric="cosine"),
        "density": density(leaf_size=4),
        "density, Mahalanobis": density(
            algorithm="ball_tree", metric="mahalanobis", metric_params=inverse
        ),
    }


def _detectors() -> dict[str, Any]:
    machine, mixtures = svm.OneClassSVM, mixture.GaussianMixture
    return {
        "machine": machine(),
        "machine, polynomial": machine(kernel="poly", gamma=0.1),
        "machine, linear": machine(kernel="linear"),
        "SGD machine": linear_model.SGDOneClassSVM(random_state=0),
        "envelope": covariance.EllipticEnvelope(random_state=0),
        "mixture": mixtures(2, random_state=0),
        "mixture, tied": mixtures(2, covariance_type="tied", random_state=0),
        "mixture, diagonal": mixtures(2, covariance_type="diag", random_state=0),
        "mixture, spherical": mixtures(2, covariance_type="spherical", random_state=0),
        "Bayesian mixture": mixture.BayesianGaussianMixture(n_components=2, random_state=0),
        "isolation": ensemble.IsolationForest(n_estimators=2, random_state=0),
        "isolation, few columns": ensemble.IsolationForest(
            n_estimators=2, max_features=2, random_state=np.random.RandomState(0)
        ),
    }


def _supervised() -> dict[str, Any]:
    searched = linear_model.LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(0,))
    if "use_legacy_attributes" in searched.get_params():
        searched.set_params(use_legacy_attributes=False)
    few: dict[str, Any] = {"n_estimators": 2, "random_state": 0}
    return {
        "random forest": ensemble.RandomForestClassifier(**few),
        "random forest, numbers": ensemble.RandomForestRegressor(**few),
        "extra trees": ensemble.ExtraTreesClassifier(**few),
        "extra trees, numbers": ensemble.ExtraTreesRegressor(**few),
        "tree": tree.DecisionTreeClassifier(random_state=0),
        "tree, numbers": tree.DecisionTreeRegressor(random_state=0),
        "extra tree": tree.ExtraTreeClassifier(random_state=0),
        "extra tree, numbers": tree.ExtraTreeRegressor(random_state=0),
        "logistic": linear_model.LogisticRegression(),
        "logistic, searched": searched,
    }


def _transformers() -> dict[str, Any]:
    return {
        "covariance": covariance.EmpiricalCovariance(),
        "covariance, not inverted": covariance.EmpiricalCovariance(store_precision=False),
        "Ledoit and Wolf": covariance.LedoitWolf(),
        "robust covariance": covariance.MinCovDet(random_state=0),
        "OAS": covariance.OAS(),
        "shrunk covariance": covariance.ShrunkCovariance(),
        "ICA": decomposition.FastICA(random_state=0),
        "incremental PCA": decomposition.IncrementalPCA(2),
        "kernel PCA": decomposition.KernelPCA(2, kernel="rbf"),
        "kernel PCA, back": decomposition.KernelPCA(2, fit_inverse_transform=True),
        "PCA": decomposition.PCA(2, whiten=True),
        "SVD": decomposition.TruncatedSVD(random_state=0),
        "Nystroem": kernel_approximation.Nystroem(n_components=8, random_state=0),
        "Nystroem, chi2": kernel_approximation.Nystroem(
            "additive_chi2", n_components=8, random_state=0
        ),
        "Fourier": kernel_approximation.RBFSampler(n_components=8, random_state=0),
        "binarizer": preprocessing.Binarizer(),
        "logarithm": preprocessing.FunctionTransformer(np.expm1),
        "largest": preprocessing.MaxAbsScaler(),
        "range": preprocessing.MinMaxScaler(),
        "lengths": preprocessing.Normalizer(),
        "power": preprocessing.PowerTransformer(),
        "quantiles": preprocessing.QuantileTransformer(n_quantiles=10, random_state=0),
        "robust": preprocessing.RobustScaler(),
        "standard": preprocessing.StandardScaler(),
        "columns": compose.ColumnTransformer(
            [("a", preprocessing.StandardScaler(), [0, 1])], remainder="passthrough"
        ),
        "pipeline": pipeline.make_pipeline(preprocessing.StandardScaler(), svm.OneClassSVM()),
        "pipeline of neighbours": pipeline.make_pipeline(
            decomposition.PCA(2), neighbors.LocalOutlierFactor(3, novelty=True)
        ),
    }


def _others() -> dict[str, tuple[Any, ...]]:
    """Return estimators with the rows of their own that they are fitted to."""
    words = np.take(["red", "green", "blue"], np.arange(N_ROWS * 2) % 3).reshape(-1, 2)
    table = np.abs(np.round(X))
    hot = preprocessing.OneHotEncoder
    members = [
        ("gmm", GMM(1)),
        ("machine", svm.OneClassSVM()),
        ("lof", neighbors.LocalOutlierFactor(5, novelty=True)),
        ("envelope", covariance.EllipticEnvelope(random_state=0)),
    ]
    return {
        # A metric that nobody filled is one of a single column.
        "LOF, one column": (
            neighbors.LocalOutlierFactor(5, novelty=True, algorithm="ball_tree", leaf_size=4),
            X[:, :1],
        ),
        "neighbours, one column": (neighbors.NearestNeighbors(algorithm="brute"), X[:, :1]),
        "envelope, one column": (covariance.EllipticEnvelope(random_state=0), X[:, :1]),
        "centring": (preprocessing.KernelCenterer(), X @ X.T),
        "isotonic": (isotonic.IsotonicRegression(out_of_bounds="clip"), X[:, 0], X[:, 1]),
        "labels": (preprocessing.LabelEncoder(), Y),
        "labels as columns": (preprocessing.LabelBinarizer(), np.arange(9) % 3),
        "imputer": (impute.SimpleImputer(), GAPS),
        "categories": (hot(handle_unknown="ignore"), table),
        "categories, first dropped": (
            hot(drop="first", handle_unknown="ignore", sparse_output=False),
            table,
        ),
        "categories, words": (hot(handle_unknown="ignore"), words.astype(object)),
        "ordinal": (
            preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            table,
        ),
        "standard, gaps": (preprocessing.StandardScaler(), GAPS),
        "quarter precision": (preprocessing.StandardScaler(), X.astype("f4")),
        "fused": (FusedDetector(members, random_state=0), X),
    }


def estimators() -> dict[str, tuple[Any, ...]]:
    """Return the estimators by their names, each with what it is fitted to."""
    usual = _neighbours() | _detectors() | _supervised() | _transformers()
    rows = {name: np.abs(X) if "chi2" in name else X for name in usual}
    return {name: (model, rows[name], Y) for name, model in usual.items()} | _others()


@cache
def fitted() -> dict[str, Any]:
    """Return the models by their names, fitted once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are few rows, on purpose
        return {name: model.fit(*given) for name, (model, *given) in estimators().items()}
