"""Which types a model file may name without anybody vouching for them."""

import importlib
import inspect
import sys

import numpy as np
from sklearn.base import BaseEstimator

from ocfuse.persistence.header import PACKAGE

#: Parts of module names that no model needs; importing such a module may do anything.
NEVER_IMPORTED = frozenset(
    {"tests", "conftest"}  # of scikit-learn
    | {"bench", "cli", "datasets", "distributed", "report", "robots", "serve"}  # ours
)
#: Estimators of scikit-learn, by package, that score by NumPy alone, or of which
#: `ocfuse.persistence.integrity` has checked what compiled code follows.
ESTIMATORS = {
    "calibration": "CalibratedClassifierCV",
    "compose": "ColumnTransformer",
    "covariance": "EllipticEnvelope EmpiricalCovariance LedoitWolf MinCovDet OAS ShrunkCovariance",
    "decomposition": "FastICA IncrementalPCA KernelPCA PCA TruncatedSVD",
    "discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "ensemble": "ExtraTreesClassifier ExtraTreesRegressor IsolationForest RandomForestClassifier "
    "RandomForestRegressor VotingClassifier",
    "gaussian_process": "GaussianProcessRegressor",
    "impute": "SimpleImputer",
    "isotonic": "IsotonicRegression",
    "kernel_approximation": "Nystroem RBFSampler",
    "linear_model": "BayesianRidge ElasticNet HuberRegressor Lasso LinearRegression "
    "LogisticRegression LogisticRegressionCV Ridge RidgeCV RidgeClassifier SGDClassifier "
    "SGDOneClassSVM SGDRegressor",
    "mixture": "BayesianGaussianMixture GaussianMixture",
    "naive_bayes": "GaussianNB",
    "neighbors": "KernelDensity LocalOutlierFactor NearestNeighbors",
    "neural_network": "MLPClassifier MLPRegressor",
    "pipeline": "Pipeline",
    "preprocessing": "Binarizer FunctionTransformer KernelCenterer LabelBinarizer LabelEncoder "
    "MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder PowerTransformer "
    "QuantileTransformer RobustScaler StandardScaler",
    "svm": "LinearSVC LinearSVR OneClassSVM",
    "tree": "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
}
METRICS = (
    "BrayCurtis Canberra Chebyshev Dice Euclidean Hamming Haversine Jaccard Kulsinski Mahalanobis "
    "Manhattan Matching Minkowski RogersTanimoto RussellRao SEuclidean SokalMichener SokalSneath"
)
PARTS = {
    "calibration": "_CalibratedClassifier _SigmoidCalibration",
    "gaussian_process.kernels": "CompoundKernel ConstantKernel DotProduct ExpSineSquared "
    "Exponentiation Matern PairwiseKernel Product RBF RationalQuadratic Sum WhiteKernel",
    "metrics._dist_metrics": " ".join(f"{m}Distance32 {m}Distance64" for m in METRICS.split()),
    "neighbors._ball_tree": "BallTree",
    "neighbors._kd_tree": "KDTree",
    "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "tree._tree": "Tree",
    "utils._bunch": "Bunch",
}
LOSSES = {
    "_loss._loss": "CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss "
    "CyHalfMultinomialLoss CyHalfPoissonLoss CyHalfSquaredError CyHalfTweedieLoss "
    "CyHalfTweedieLossIdentity CyHuberLoss CyPinballLoss",
    "linear_model._sgd_fast": "EpsilonInsensitive Hinge ModifiedHuber "
    "SquaredEpsilonInsensitive SquaredHinge",
}


def _full_names(names: dict[str, str]) -> frozenset[str]:
    return frozenset(
        f"sklearn.{module}.{name}" for module in names for name in names[module].split()
    )


#: What fitted estimators of scikit-learn hold that is no estimator.
SKLEARN_PARTS = _full_names(PARTS)
#: Compiled losses, made from numbers.
SKLEARN_LOSSES = _full_names(LOSSES)
#: Types of NumPy's numbers and texts.
SCALARS = {
    f"numpy.{kind.__name__}": kind
    for kind in set(np.sctypeDict.values())
    if not issubclass(kind, np.void | np.object_)
}
#: Types that may stand in a model as themselves.
PLAIN_TYPES: dict[str, type] = SCALARS | {
    f"builtins.{kind.__name__}": kind for kind in (bool, dict, float, int, list, set, str, tuple)
}


def is_known_class(name: str) -> bool:
    """Tell whether a name is a class of ours, or a listed one of scikit-learn."""
    if name in SKLEARN_PARTS:
        return True
    module_name, _, class_name = name.rpartition(".")
    if not _may_be_imported(module_name):
        return False
    try:
        module = importlib.import_module(module_name)
    except Exception:  # whatever a module does when it is imported, we do not know it
        return False
    found = vars(module).get(class_name)
    if not inspect.isclass(found) or found.__module__ != module_name:
        return False
    package, *inner = module_name.split(".")
    if package == PACKAGE:
        return True
    return issubclass(found, BaseEstimator) and class_name in ESTIMATORS[inner[0]].split()


def is_ufunc(name: str) -> bool:
    """Tell whether a name is an elementary function of NumPy or SciPy, such as log1p."""
    module_name, _, function = name.rpartition(".")
    ours = module_name.split(".")[0] in ("numpy", "scipy")
    found = vars(sys.modules.get(module_name, sys)).get(function)
    return ours and isinstance(found, np.ufunc)


def _may_be_imported(module_name: str) -> bool:
    parts = module_name.split(".")
    return (
        (
            parts[0] == PACKAGE
            or (parts[0] == "sklearn" and not ESTIMATORS.keys().isdisjoint(parts[1:2]))
        )
        and all(part.isidentifier() and not part.startswith("__") for part in parts)
        and NEVER_IMPORTED.isdisjoint(parts)
    )
