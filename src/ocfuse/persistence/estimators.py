"""What `fit` of scikit-learn's estimators leaves behind, one entry per class.

A model file may name the classes of `FITTED` and no other of scikit-learn's estimators.
Their attributes must be of the types and shapes that `fit` gives them, and belong together:
compiled code trusts them. An attribute that is not listed here is one that no compiled code
reads, such as one of a later version or one that somebody added.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ocfuse.persistence.integrity import are_below, check_categories, is_tree, n_columns, require
from ocfuse.system.packages import slow

#: Sides of arrays that have been seen, by the letters of `FITTED`: all of a letter are equal.
#: "c" is the number of columns of training, "n" of its rows.
Sides = dict[str, int]
#: Tells whether a value can be what `fit` leaves.
Fits = Callable[[Any, Sides], bool]
#: Tells what attributes must have to do with each other, by an error if they have not.
Relation = Callable[[Mapping[str, Any]], None]


def _array(value: Any, kinds: str) -> bool:
    """Tell whether a value is an array, and no other thing that is used as one."""
    return type(value) is np.ndarray and value.dtype.kind in kinds and value.dtype.isnative


def numbers(*sides: str, kinds: str = "f", dtype: Any = None) -> Fits:
    """Return what knows an array of numbers by its sides."""

    def fits(value: Any, seen: Sides) -> bool:
        """Tell whether a value is one."""
        return (
            _array(value, kinds)
            and (dtype is None or value.dtype == dtype)
            and value.ndim == len(sides)
            and all(seen.setdefault(s, n) == n for s, n in zip(sides, value.shape, strict=True))
        )

    return fits


def doubles(*sides: str) -> Fits:
    """Return what knows an array that compiled code reads as it is."""
    return numbers(*sides, dtype=np.float64)


def indexes(*sides: str, below: str, dtype: Any = None) -> Fits:
    """Return what knows an array of positions on a side that was seen before."""
    fits = numbers(*sides, kinds="iu", dtype=dtype)
    return lambda value, seen: fits(value, seen) and are_below(value, seen[below])


def one_of(*kinds: type) -> Fits:
    """Return what knows objects of some types."""
    return lambda value, seen: isinstance(value, kinds)


def instance_of(module: str, *names: str) -> Fits:
    """Return what knows objects of classes of a module, which is imported when it is asked."""
    return lambda value, seen: isinstance(
        value, tuple(getattr(slow(module), name) for name in names)
    )


def maybe(fits: Fits) -> Fits:
    """Return what also takes None."""
    return lambda value, seen: value is None or fits(value, seen)


def either(*several: Fits) -> Fits:
    """Return what knows the values of several."""

    def fits(value: Any, seen: Sides) -> bool:
        """Tell whether a value is one of any of them."""
        for one in several:
            tried = dict(seen)
            if one(value, tried):
                seen.update(tried)
                return True
        return False

    return fits


def each(fits: Fits) -> Fits:
    """Return what knows a list or a tuple by its items."""
    return lambda value, seen: (
        isinstance(value, list | tuple) and all(fits(item, seen) for item in value)
    )


def _is_number(value: Any, seen: Sides) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def _is_count(value: Any, seen: Sides) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= 0)


def _is_side(letter: str) -> Fits:
    """Return what knows the length of a side."""
    return lambda value, seen: (
        _is_count(value, seen) and seen.setdefault(letter, int(value)) == value
    )


def _is_categories(value: Any, seen: Sides) -> bool:
    return type(value) is np.ndarray and value.ndim == 1


NUMBER, COUNT, COLUMNS, ROWS = _is_number, _is_count, _is_side("c"), _is_side("n")
FLAG, TEXT, LIST, DICT = one_of(bool, np.bool_), one_of(str), one_of(list, tuple), one_of(dict)
LABELS = either(_is_categories, each(_is_categories))
ESTIMATOR = one_of(BaseEstimator)
NEIGHBOUR_TREE = instance_of("sklearn.neighbors", "BallTree", "KDTree")

_COVARIANCE = {
    "location_": numbers("c"),
    "covariance_": numbers("c", "c"),
    "precision_": maybe(numbers("c", "c")),
}
_SHRUNK = {**_COVARIANCE, "shrinkage_": NUMBER}
_ROBUST = {
    **_COVARIANCE,
    "raw_location_": numbers("c"),
    "raw_covariance_": numbers("c", "c"),
    "raw_support_": numbers("n", kinds="b"),
    "support_": numbers("n", kinds="b"),
    "dist_": numbers("n"),
}
_COMPONENTS = {
    "components_": numbers("k", "c"),
    "explained_variance_": numbers("k"),
    "explained_variance_ratio_": numbers("k"),
    "singular_values_": numbers("k"),
}
_PCA = {
    **_COMPONENTS,
    "mean_": numbers("c"),
    "var_": numbers("c"),
    "noise_variance_": NUMBER,
    "n_components_": _is_side("k"),
    "n_samples_": COUNT,
    "n_samples_seen_": NUMBER,
    "batch_size_": COUNT,
    "_fit_svd_solver": TEXT,
}
_MATRICES = either(
    numbers("k", "c", "c"), numbers("c", "c"), numbers("k", "c"), numbers("k")
)  # of the four types of covariance
_MIXTURE = {
    "means_": numbers("k", "c"),
    "weights_": numbers("k"),
    "covariances_": _MATRICES,
    "precisions_": _MATRICES,
    "precisions_cholesky_": _MATRICES,
    "converged_": FLAG,
    "n_iter_": COUNT,
    "lower_bound_": NUMBER,
    "lower_bounds_": LIST,
}
_BAYESIAN = {
    **_MIXTURE,
    "weight_concentration_prior_": NUMBER,
    "weight_concentration_": either(numbers("k"), each(numbers("k"))),
    "mean_precision_prior_": NUMBER,
    "mean_precision_": numbers("k"),
    "mean_prior_": numbers("c"),
    "degrees_of_freedom_prior_": NUMBER,
    "degrees_of_freedom_": either(numbers("k"), NUMBER),
    "covariance_prior_": either(numbers("c", "c"), numbers("c"), NUMBER),
}
_NEIGHBOURS = {
    "n_samples_fit_": ROWS,
    "_fit_X": numbers("n", "c", kinds="fiu"),
    "_fit_method": lambda value, seen: value in ("brute", "ball_tree", "kd_tree"),
    "_tree": maybe(NEIGHBOUR_TREE),
    "effective_metric_": one_of(str, FunctionType),
    "effective_metric_params_": DICT,
}
_OUTLIERS = {
    **_NEIGHBOURS,
    "n_neighbors_": _is_side("k"),
    "_distances_fit_X_": numbers("n", "k"),
    "_lrd": numbers("n"),
    "negative_outlier_factor_": numbers("n"),
    "offset_": NUMBER,
}
_MACHINE = {
    "support_": numbers("s", kinds="iu", dtype=np.int32),
    "support_vectors_": doubles("s", "c"),
    "_n_support": numbers("two", kinds="iu", dtype=np.int32),
    "_dual_coef_": doubles("one", "s"),
    "dual_coef_": doubles("one", "s"),
    "_intercept_": doubles("one"),
    "intercept_": doubles("one"),
    "offset_": doubles("one"),
    "_probA": doubles("none"),
    "_probB": doubles("none"),
    "_gamma": NUMBER,
    "_sparse": FLAG,
    "_effective_probability": FLAG,
    "_num_iter": numbers("one", kinds="iu"),
    "n_iter_": COUNT,
    "fit_status_": COUNT,
    "shape_fit_": each(COUNT),
}
_TREE = {
    "n_outputs_": COUNT,
    "n_classes_": either(COUNT, numbers("o", kinds="iu"), each(COUNT)),
    "classes_": LABELS,
    "max_features_": COUNT,
    "tree_": instance_of("sklearn.tree._tree", "Tree"),
}
_FOREST = {
    "estimator_": maybe(ESTIMATOR),
    "estimators_": each(instance_of("sklearn.tree", "BaseDecisionTree")),
    "n_outputs_": COUNT,
    "n_classes_": either(COUNT, each(COUNT)),
    "classes_": LABELS,
    "_n_samples": COUNT,
    "_n_samples_bootstrap": maybe(COUNT),
    "_sample_weight": maybe(numbers("n")),
}
_ISOLATION = {
    **_FOREST,
    "estimators_features_": each(indexes("own", below="c")),
    "max_samples_": COUNT,
    "_max_samples": COUNT,
    "_max_features": COUNT,
    "_seeds": numbers("t", kinds="iu"),
    "_average_path_length_per_tree": LIST,
    "_decision_path_lengths": LIST,
    "offset_": NUMBER,
}
_SEEN = either(NUMBER, numbers("c", kinds="iuf"))
_SCALE = {"scale_": maybe(numbers("c")), "n_samples_seen_": _SEEN}
_CATEGORIES = {
    "categories_": each(_is_categories),
    "_infrequent_enabled": FLAG,
    "_missing_indices": DICT,
    "_n_features_outs": each(COUNT),
}
_LINEAR = {
    "coef_": numbers("m", "c"),
    "intercept_": numbers("m"),
    "classes_": LABELS,
}

#: Attributes of each class, without those of its constructor. The name is the package and
#: the class.
FITTED: dict[str, dict[str, Fits]] = {
    "compose.ColumnTransformer": {
        "transformers_": LIST,
        "output_indices_": DICT,
        "sparse_output_": FLAG,
        "_columns": LIST,
        "_remainder": LIST,
        "_transformer_to_input_indices": DICT,
    },
    "covariance.EllipticEnvelope": {**_ROBUST, "offset_": NUMBER},
    "covariance.EmpiricalCovariance": _COVARIANCE,
    "covariance.LedoitWolf": _SHRUNK,
    "covariance.MinCovDet": _ROBUST,
    "covariance.OAS": _SHRUNK,
    "covariance.ShrunkCovariance": _SHRUNK,
    "decomposition.FastICA": {
        "components_": numbers("k", "c"),
        "mixing_": numbers("c", "k"),
        "mean_": numbers("c"),
        "whitening_": numbers("k", "c"),
        "_unmixing": numbers("k", "k"),
        "n_iter_": COUNT,
    },
    "decomposition.IncrementalPCA": _PCA,
    "decomposition.KernelPCA": {
        "X_fit_": numbers("n", "c", kinds="fiu"),
        "eigenvalues_": numbers("k"),
        "eigenvectors_": numbers("n", "k"),
        "gamma_": maybe(NUMBER),
        "_centerer": ESTIMATOR,
        "dual_coef_": numbers("n", "c"),
        "X_transformed_fit_": numbers("n", "k"),
    },
    "decomposition.PCA": _PCA,
    "decomposition.TruncatedSVD": _COMPONENTS,
    "ensemble.ExtraTreesClassifier": _FOREST,
    "ensemble.ExtraTreesRegressor": _FOREST,
    "ensemble.IsolationForest": _ISOLATION,
    "ensemble.RandomForestClassifier": _FOREST,
    "ensemble.RandomForestRegressor": _FOREST,
    "impute.SimpleImputer": {
        "statistics_": numbers("c", kinds="fiubOU"),
        "indicator_": maybe(ESTIMATOR),
        "_fit_dtype": one_of(np.dtype),
        "_fill_dtype": one_of(np.dtype),
    },
    "isotonic.IsotonicRegression": {
        "X_thresholds_": numbers("t"),
        "y_thresholds_": numbers("t"),
        "X_min_": NUMBER,
        "X_max_": NUMBER,
        "increasing_": FLAG,
    },
    "kernel_approximation.Nystroem": {
        "components_": numbers("k", "c", kinds="fiu"),
        "component_indices_": numbers("k", kinds="iu"),
        "normalization_": numbers("k", "k"),
        "_n_features_out": _is_side("k"),
    },
    "kernel_approximation.RBFSampler": {
        "random_weights_": numbers("c", "k"),
        "random_offset_": numbers("k"),
        "_gamma": NUMBER,
        "_n_features_out": _is_side("k"),
    },
    "linear_model.LogisticRegression": {**_LINEAR, "n_iter_": numbers("i", kinds="iu")},
    "linear_model.LogisticRegressionCV": _LINEAR,
    "linear_model.SGDOneClassSVM": {
        "coef_": numbers("c"),
        "offset_": numbers("one"),
        "t_": NUMBER,
        "n_iter_": COUNT,
    },
    "mixture.BayesianGaussianMixture": _BAYESIAN,
    "mixture.GaussianMixture": _MIXTURE,
    "neighbors.KernelDensity": {"bandwidth_": NUMBER, "tree_": NEIGHBOUR_TREE},
    "neighbors.LocalOutlierFactor": _OUTLIERS,
    "neighbors.NearestNeighbors": _NEIGHBOURS,
    "pipeline.Pipeline": {},
    "preprocessing.Binarizer": {},
    "preprocessing.FunctionTransformer": {},
    "preprocessing.KernelCenterer": {"K_fit_rows_": numbers("n"), "K_fit_all_": NUMBER},
    "preprocessing.LabelBinarizer": {
        "classes_": _is_categories,
        "y_type_": TEXT,
        "sparse_input_": FLAG,
    },
    "preprocessing.LabelEncoder": {"classes_": _is_categories},
    "preprocessing.MaxAbsScaler": {**_SCALE, "max_abs_": numbers("c")},
    "preprocessing.MinMaxScaler": {
        **_SCALE,
        "min_": numbers("c"),
        "data_min_": numbers("c"),
        "data_max_": numbers("c"),
        "data_range_": numbers("c"),
    },
    "preprocessing.Normalizer": {},
    "preprocessing.OneHotEncoder": _CATEGORIES,
    "preprocessing.OrdinalEncoder": _CATEGORIES,
    "preprocessing.PowerTransformer": {"lambdas_": numbers("c"), "_scaler": ESTIMATOR},
    "preprocessing.QuantileTransformer": {
        "quantiles_": numbers("q", "c"),
        "references_": numbers("q"),
        "n_quantiles_": _is_side("q"),
    },
    "preprocessing.RobustScaler": {**_SCALE, "center_": maybe(numbers("c"))},
    "preprocessing.StandardScaler": {
        **_SCALE,
        "mean_": maybe(numbers("c")),
        "var_": maybe(numbers("c")),
    },
    "svm.OneClassSVM": _MACHINE,
    "tree.DecisionTreeClassifier": _TREE,
    "tree.DecisionTreeRegressor": _TREE,
    "tree.ExtraTreeClassifier": _TREE,
    "tree.ExtraTreeRegressor": _TREE,
}
#: Attributes of any estimator that has columns.
COMMON = {"n_features_in_": COLUMNS, "feature_names_in_": numbers("c", kinds="OU")}
#: Packages of scikit-learn that have one.
PACKAGES = frozenset(name.partition(".")[0] for name in FITTED)
#: Sides of a length that is the same in every model.
ALWAYS = {"none": 0, "one": 1, "two": 2}
#: What a metric may be told, as it stands in the rows.
METRIC_OPTIONS: dict[str, Fits] = {
    "p": NUMBER,
    "w": maybe(doubles("c")),
    "V": either(doubles("c"), doubles("c", "c")),
    "VI": doubles("c", "c"),
    "missing_values": NUMBER,
}


def listed(kind: type) -> str:
    """Return the name under which a class of scikit-learn would stand in `FITTED`."""
    package = kind.__module__.split(".")[1:2]
    return ".".join([*package, kind.__name__])


def check_fitted(kind: type, attributes: Mapping[str, Any]) -> None:
    """Refuse attributes of an estimator of scikit-learn that `fit` cannot have left.

    Parameters
    ----------
    kind : type
        One of the classes of `FITTED`.
    attributes : mapping
        What a file says of its fitted state.
    """
    name = listed(kind)
    for about, relation in RELATIONS.items():
        if name in about.split():
            relation(attributes)
    seen: Sides = dict(ALWAYS)
    if "n_features_in_" in attributes:
        seen["c"] = n_columns(attributes)
    for attribute in attributes:
        require(
            inspect.getattr_static(kind, attribute, None) is None,
            f"{attribute} of {kind.__name__} is one of the class",
        )
    for attribute, fits in (COMMON | FITTED[name]).items():
        if attribute in attributes:
            require(
                fits(attributes[attribute], seen),
                f"{attribute} of {kind.__name__} is not what fit leaves there",
            )


def _check_machine(attributes: Mapping[str, Any]) -> None:
    """Refuse a support vector machine of which libsvm would read beyond an array."""
    if "_dual_coef_" not in attributes:
        return
    vectors, rows, kernel = (
        attributes[name] for name in ("support_vectors_", "support_", "kernel")
    )
    require("_impl" not in attributes and not attributes["_sparse"], "a machine is of other rows")
    require(isinstance(kernel, str) and kernel != "precomputed", "a machine has its own kernel")
    require(
        vectors.shape == (len(rows), n_columns(attributes))
        and are_below(rows, attributes["shape_fit_"][0])
        and attributes["_n_support"].shape == (2,)
        and are_below(attributes["_n_support"], len(rows) + 1)
        and attributes["_dual_coef_"].shape == (1, len(rows))
        and len(attributes["_intercept_"]) == 1
        and all(len(attributes[name]) == 0 for name in ("_probA", "_probB")),
        "the arrays of a support vector machine do not belong together",
    )


def _check_neighbours(attributes: Mapping[str, Any]) -> None:
    """Refuse neighbours among other rows, or by a metric that would read beyond an array."""
    if "_fit_X" not in attributes:
        return
    rows, tree, metric = (attributes[name] for name in ("_fit_X", "_tree", "effective_metric_"))
    shape = (attributes["n_samples_fit_"], n_columns(attributes))
    require(
        type(rows) is np.ndarray
        and rows.shape == shape
        and (metric == "nan_euclidean" or bool(np.isfinite(rows).all())),
        "neighbours are not looked for among the rows of training",
    )
    require(
        (tree is None) == (attributes["_fit_method"] == "brute")
        and (tree is None or np.shape(tree.data) == shape),
        "a tree of neighbours is not one of their rows",
    )
    given, brief = attributes["metric"], ("minkowski", "euclidean", "manhattan", "chebyshev")
    require(
        metric is given or metric == given or (given == "minkowski" and metric in brief),
        "a metric is not the one that was asked for",
    )
    for option in ("metric_params", "effective_metric_params_"):
        _check_metric(metric, attributes.get(option), shape[1])


def _check_metric(metric: Any, options: Any, columns: int) -> None:
    if isinstance(metric, FunctionType):  # of somebody who vouched for it
        return
    require(isinstance(metric, str) and metric in _metrics(), "a metric is not one by its name")
    for name, value in (options or {}).items():
        fits = METRIC_OPTIONS.get(name)
        require(
            fits is not None and fits(value, {"c": columns}),
            f"the option {name!r} of a metric is not one of these columns",
        )


@cache
def _metrics() -> frozenset[str]:
    """Return metrics that need no more than rows; others are distances already, or a function."""
    known = slow("sklearn.neighbors").VALID_METRICS.values()
    return frozenset().union(*known) - {"precomputed", "pyfunc"}


def _check_density(attributes: Mapping[str, Any]) -> None:
    if "tree_" in attributes:
        tree = attributes["tree_"]
        require(
            NEIGHBOUR_TREE(tree, {}) and tree.data.shape[1] == n_columns(attributes),
            "a density is not one of these columns",
        )


def _check_own_tree(attributes: Mapping[str, Any]) -> None:
    """Refuse a tree of other columns, outputs or classes than its estimator says."""
    tree: Any = attributes.get("tree_")
    if is_tree(tree):
        require(
            tree.n_features == n_columns(attributes),
            "a tree asks for more columns than there are, or for other ones",
        )
        _check_outputs(tree, attributes)


def _check_outputs(tree: Any, attributes: Mapping[str, Any]) -> None:
    # Room is made for as many numbers per row as an estimator says itself.
    told = (attributes.get(name) for name in ("n_outputs_", "n_classes_"))
    for said, found in zip(told, (tree.n_outputs, tree.n_classes), strict=True):
        fits = said is None or np.array_equal(np.atleast_1d(said), np.atleast_1d(found))
        require(fits, "a tree has other classes than its forest")


def _check_trees(attributes: Mapping[str, Any]) -> None:
    """Refuse trees that would get fewer columns from their forest than they ask for."""
    if "estimators_" not in attributes:
        return
    trees: list[Any] = [
        getattr(one, "__dict__", {}).get("tree_") for one in attributes["estimators_"]
    ]
    columns = n_columns(attributes)
    own = attributes.get("estimators_features_") or [np.arange(columns)] * len(trees)
    for tree, some in zip(trees, own, strict=True):
        require(is_tree(tree), "a forest is not of trees alone")
        require(
            tree.n_features <= columns
            and _array(some, "iu")
            and some.shape == (tree.n_features,)
            and are_below(some, columns),
            "a tree asks for more columns than there are, or for other ones",
        )
        _check_outputs(tree, attributes)


def _check_kernel(attributes: Mapping[str, Any]) -> None:
    """Refuse a function in the place of a kernel's name, unless somebody vouched for it."""
    kernel, options = attributes.get("kernel"), attributes.get("kernel_params")
    require(isinstance(kernel, str | FunctionType), "a kernel is not one by its name")
    plain = isinstance(kernel, FunctionType) or all(
        NUMBER(value, {}) for value in (options or {}).values()
    )
    require(plain, "a kernel is told something else than numbers")


def _check_function(attributes: Mapping[str, Any]) -> None:
    """Refuse options of NumPy's functions, which may leave numbers as they were in memory."""
    for function, options in (("func", "kw_args"), ("inverse_func", "inv_kw_args")):
        of_numpy = isinstance(attributes.get(function), np.ufunc)
        require(
            not (of_numpy and attributes.get(options)),
            "a function of NumPy is told how to write its result",
        )


def _check_hot(attributes: Mapping[str, Any]) -> None:
    if "categories_" in attributes:
        check_categories(attributes)
        require(
            len(attributes["categories_"]) == n_columns(attributes),
            "categories are not those of their columns",
        )


#: What the attributes of some classes have to do with each other.
RELATIONS: dict[str, Relation] = {
    "decomposition.KernelPCA kernel_approximation.Nystroem": _check_kernel,
    "ensemble.ExtraTreesClassifier ensemble.ExtraTreesRegressor ensemble.IsolationForest "
    "ensemble.RandomForestClassifier ensemble.RandomForestRegressor": _check_trees,
    "neighbors.KernelDensity": _check_density,
    "neighbors.LocalOutlierFactor neighbors.NearestNeighbors": _check_neighbours,
    "preprocessing.FunctionTransformer": _check_function,
    "preprocessing.OneHotEncoder": _check_hot,
    "svm.OneClassSVM": _check_machine,
    "tree.DecisionTreeClassifier tree.DecisionTreeRegressor tree.ExtraTreeClassifier "
    "tree.ExtraTreeRegressor": _check_own_tree,
}
