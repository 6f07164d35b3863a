"""What `fit` of scikit-learn's estimators leaves behind, one entry per class.

A model file may name the classes of `FITTED` and no other of scikit-learn's estimators.
Their attributes must be of the types and shapes that `fit` gives them, and belong together:
compiled code trusts them. An attribute that is not listed here is one that no compiled code
reads, such as one of a later version or one that somebody added.
"""

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ocfuse.persistence.integrity import are_below, is_tree, n_columns, require
from ocfuse.system.packages import slow

#: Lengths of the sides of arrays that have been seen, by the letters of `FITTED`: all of a
#: letter are equal. "c" is the number of columns of training, "n" of its rows.
Sides = dict[str, int]
#: Returns whether a value can be what `fit` leaves.
Fits = Callable[[Any, Sides], bool]


def _is_array(value: Any, kinds: str) -> bool:
    """Return whether a value is an array, and no other thing that is used as one."""
    return type(value) is np.ndarray and value.dtype.kind in kinds and value.dtype.isnative


def number(value: Any, seen: Sides) -> bool:
    """Return whether a value is a number."""
    return isinstance(value, int | float | np.integer | np.floating)


def count(value: Any, seen: Sides) -> bool:
    """Return whether a value is a whole number from 0 on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= 0)


def vector(value: Any, seen: Sides) -> bool:
    """Return whether a value is an array of anything, of one dimension."""
    return type(value) is np.ndarray and value.ndim == 1


# Each of the functions below returns a function of type `Fits`.


def length_of(side: str) -> Fits:
    """Take the length of a side."""
    return lambda value, seen: count(value, seen) and seen.setdefault(side, int(value)) == value


def numbers(*sides: str, kinds: str = "f", dtype: Any = None) -> Fits:
    """Take an array of numbers with these sides."""
    return lambda value, seen: (
        _is_array(value, kinds)
        and (dtype is None or value.dtype == dtype)
        and value.ndim == len(sides)
        and all(seen.setdefault(s, n) == n for s, n in zip(sides, value.shape, strict=True))
    )


def doubles(*sides: str) -> Fits:
    """Take an array that compiled code reads as it is."""
    return numbers(*sides, dtype=np.float64)


def column_numbers(side: str) -> Fits:
    """Take an array of numbers of columns."""
    fits = numbers(side, kinds="iu")
    return lambda value, seen: fits(value, seen) and are_below(value, seen["c"])


def one_of(*kinds: type) -> Fits:
    """Take objects of some types."""
    return lambda value, seen: isinstance(value, kinds)


def instance_of(module: str, *names: str) -> Fits:
    """Take objects of classes of a module, which is imported when it is needed."""
    return lambda value, seen: isinstance(
        value, tuple(getattr(slow(module), name) for name in names)
    )


def maybe(fits: Fits) -> Fits:
    """Take None as well."""
    return lambda value, seen: value is None or fits(value, seen)


def either(*several: Fits) -> Fits:
    """Take what one of several takes."""

    def fits(value: Any, seen: Sides) -> bool:
        """Keep the sides that the first of them has seen."""
        for one in several:
            tried = dict(seen)
            if one(value, tried):
                seen.update(tried)
                return True
        return False

    return fits


def each(fits: Fits) -> Fits:
    """Take a list or a tuple by its items."""
    return lambda value, seen: (
        isinstance(value, list | tuple) and all(fits(item, seen) for item in value)
    )


flag = one_of(bool, np.bool_)
text = one_of(str)
sequence = one_of(list, tuple)
mapping = one_of(dict)
labels = either(vector, each(vector))
estimator = one_of(BaseEstimator)
neighbour_tree = instance_of("sklearn.neighbors", "BallTree", "KDTree")
covariance_matrices = either(  # of the four types of covariance
    numbers("k", "c", "c"), numbers("c", "c"), numbers("k", "c"), numbers("k")
)

_COVARIANCE = {
    "location_": numbers("c"),
    "covariance_": numbers("c", "c"),
    "precision_": maybe(numbers("c", "c")),
}
_SHRUNK = {**_COVARIANCE, "shrinkage_": number}
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
    "noise_variance_": number,
    "n_components_": length_of("k"),
    "n_samples_": count,
    "n_samples_seen_": number,
    "batch_size_": count,
    "_fit_svd_solver": text,
}
_MIXTURE = {
    "means_": numbers("k", "c"),
    "weights_": numbers("k"),
    "covariances_": covariance_matrices,
    "precisions_": covariance_matrices,
    "precisions_cholesky_": covariance_matrices,
    "converged_": flag,
    "n_iter_": count,
    "lower_bound_": number,
    "lower_bounds_": sequence,
}
_NEIGHBOURS = {
    "n_samples_fit_": length_of("n"),
    "_fit_X": numbers("n", "c", kinds="fiu"),
    "_fit_method": lambda value, seen: value in ("brute", "ball_tree", "kd_tree"),
    "_tree": maybe(neighbour_tree),
    "effective_metric_": one_of(str, FunctionType),
    "effective_metric_params_": mapping,
}
_TREE = {
    "n_outputs_": count,
    "n_classes_": either(count, numbers("o", kinds="iu"), each(count)),
    "classes_": labels,
    "max_features_": count,
    "tree_": instance_of("sklearn.tree._tree", "Tree"),
}
_FOREST = {
    "estimator_": maybe(estimator),
    "estimators_": each(instance_of("sklearn.tree", "BaseDecisionTree")),
    "n_outputs_": count,
    "n_classes_": either(count, each(count)),
    "classes_": labels,
    "_n_samples": count,
    "_n_samples_bootstrap": maybe(count),
    "_sample_weight": maybe(numbers("n")),
}
_SCALE = {
    "scale_": maybe(numbers("c")),
    "n_samples_seen_": either(number, numbers("c", kinds="iuf")),
}
_CATEGORIES = {
    "categories_": each(vector),
    "_infrequent_enabled": flag,
    "_missing_indices": mapping,
    "_n_features_outs": each(count),
}
_LINEAR = {
    "coef_": numbers("m", "c"),
    "intercept_": numbers("m"),
    "classes_": labels,
}

#: Attributes of each class, without those of its constructor. The name is the package and
#: the class.
FITTED: dict[str, dict[str, Fits]] = {
    "compose.ColumnTransformer": {
        "transformers_": sequence,
        "output_indices_": mapping,
        "sparse_output_": flag,
        "_columns": sequence,
        "_remainder": sequence,
        "_transformer_to_input_indices": mapping,
    },
    "covariance.EllipticEnvelope": {**_ROBUST, "offset_": number},
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
        "n_iter_": count,
    },
    "decomposition.IncrementalPCA": _PCA,
    "decomposition.KernelPCA": {
        "X_fit_": numbers("n", "c", kinds="fiu"),
        "eigenvalues_": numbers("k"),
        "eigenvectors_": numbers("n", "k"),
        "gamma_": maybe(number),
        "_centerer": estimator,
        "dual_coef_": numbers("n", "c"),
        "X_transformed_fit_": numbers("n", "k"),
    },
    "decomposition.PCA": _PCA,
    "decomposition.TruncatedSVD": _COMPONENTS,
    "ensemble.ExtraTreesClassifier": _FOREST,
    "ensemble.ExtraTreesRegressor": _FOREST,
    "ensemble.IsolationForest": {
        **_FOREST,
        "estimators_features_": each(column_numbers("own")),
        "max_samples_": count,
        "_max_samples": count,
        "_max_features": count,
        "_seeds": numbers("t", kinds="iu"),
        "_average_path_length_per_tree": sequence,
        "_decision_path_lengths": sequence,
        "offset_": number,
    },
    "ensemble.RandomForestClassifier": _FOREST,
    "ensemble.RandomForestRegressor": _FOREST,
    "impute.SimpleImputer": {
        "statistics_": numbers("c", kinds="fiubOU"),
        "indicator_": maybe(estimator),
        "_fit_dtype": one_of(np.dtype),
        "_fill_dtype": one_of(np.dtype),
    },
    "isotonic.IsotonicRegression": {
        "X_thresholds_": numbers("t"),
        "y_thresholds_": numbers("t"),
        "X_min_": number,
        "X_max_": number,
        "increasing_": flag,
    },
    "kernel_approximation.Nystroem": {
        "components_": numbers("k", "c", kinds="fiu"),
        "component_indices_": numbers("k", kinds="iu"),
        "normalization_": numbers("k", "k"),
        "_n_features_out": length_of("k"),
    },
    "kernel_approximation.RBFSampler": {
        "random_weights_": numbers("c", "k"),
        "random_offset_": numbers("k"),
        "_gamma": number,
        "_n_features_out": length_of("k"),
    },
    "linear_model.LogisticRegression": {**_LINEAR, "n_iter_": numbers("i", kinds="iu")},
    "linear_model.LogisticRegressionCV": _LINEAR,
    "linear_model.SGDOneClassSVM": {
        "coef_": numbers("c"),
        "offset_": numbers("one"),
        "t_": number,
        "n_iter_": count,
    },
    "mixture.BayesianGaussianMixture": {
        **_MIXTURE,
        "weight_concentration_prior_": number,
        "weight_concentration_": either(numbers("k"), each(numbers("k"))),
        "mean_precision_prior_": number,
        "mean_precision_": numbers("k"),
        "mean_prior_": numbers("c"),
        "degrees_of_freedom_prior_": number,
        "degrees_of_freedom_": either(numbers("k"), number),
        "covariance_prior_": either(numbers("c", "c"), numbers("c"), number),
    },
    "mixture.GaussianMixture": _MIXTURE,
    "neighbors.KernelDensity": {"bandwidth_": number, "tree_": neighbour_tree},
    "neighbors.LocalOutlierFactor": {
        **_NEIGHBOURS,
        "n_neighbors_": length_of("k"),
        "_distances_fit_X_": numbers("n", "k"),
        "_lrd": numbers("n"),
        "negative_outlier_factor_": numbers("n"),
        "offset_": number,
    },
    "neighbors.NearestNeighbors": _NEIGHBOURS,
    "pipeline.Pipeline": {},
    "preprocessing.Binarizer": {},
    "preprocessing.FunctionTransformer": {},
    "preprocessing.KernelCenterer": {"K_fit_rows_": numbers("n"), "K_fit_all_": number},
    "preprocessing.LabelBinarizer": {
        "classes_": vector,
        "y_type_": text,
        "sparse_input_": flag,
    },
    "preprocessing.LabelEncoder": {"classes_": vector},
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
    "preprocessing.PowerTransformer": {"lambdas_": numbers("c"), "_scaler": estimator},
    "preprocessing.QuantileTransformer": {
        "quantiles_": numbers("q", "c"),
        "references_": numbers("q"),
        "n_quantiles_": length_of("q"),
    },
    "preprocessing.RobustScaler": {**_SCALE, "center_": maybe(numbers("c"))},
    "preprocessing.StandardScaler": {
        **_SCALE,
        "mean_": maybe(numbers("c")),
        "var_": maybe(numbers("c")),
    },
    "svm.OneClassSVM": {
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
        "_gamma": number,
        "_sparse": flag,
        "_effective_probability": flag,
        "_num_iter": numbers("one", kinds="iu"),
        "n_iter_": count,
        "fit_status_": count,
        "shape_fit_": each(count),
    },
    "tree.DecisionTreeClassifier": _TREE,
    "tree.DecisionTreeRegressor": _TREE,
    "tree.ExtraTreeClassifier": _TREE,
    "tree.ExtraTreeRegressor": _TREE,
}


def check_fitted(kind: type, attributes: Mapping[str, Any]) -> None:
    """Refuse attributes of an estimator that `fit` cannot have left, for a class of `FITTED`."""
    name = f"{kind.__module__.split('.')[1]}.{kind.__name__}"
    for about, relation in RELATIONS.items():
        if name in about.split():
            relation(attributes)
    seen: Sides = {"none": 0, "one": 1, "two": 2}
    if "n_features_in_" in attributes:
        seen["c"] = n_columns(attributes)
    for attribute in attributes:
        require(
            inspect.getattr_static(kind, attribute, None) is None,
            f"{attribute} of {kind.__name__} is one of the class",
        )
    of_any = {"n_features_in_": length_of("c"), "feature_names_in_": numbers("c", kinds="OU")}
    for attribute, fits in (of_any | FITTED[name]).items():
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
    # metrics that need no more than rows; others are distances already, or a function
    by_name = set().union(*slow("sklearn.neighbors").VALID_METRICS.values())
    by_name -= {"precomputed", "pyfunc"}
    require(isinstance(metric, str) and metric in by_name, "a metric is not one by its name")
    known: dict[str, Fits] = {
        "p": number,
        "w": maybe(doubles("c")),
        "V": either(doubles("c"), doubles("c", "c")),
        "VI": doubles("c", "c"),
        "missing_values": number,
    }
    for name, value in (options or {}).items():
        require(
            name in known and known[name](value, {"c": columns}),
            f"the option {name!r} of a metric is not one of these columns",
        )


def _check_density(attributes: Mapping[str, Any]) -> None:
    if "tree_" in attributes:
        tree = attributes["tree_"]
        require(
            neighbour_tree(tree, {}) and tree.data.shape[1] == n_columns(attributes),
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
            and _is_array(some, "iu")
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
        number(value, {}) for value in (options or {}).values()
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


def _check_one_hot(attributes: Mapping[str, Any]) -> None:
    """Refuse codes of categories that would be written beyond their columns."""
    if "categories_" not in attributes:
        return
    categories, dropped = attributes["categories_"], attributes["_drop_idx_after_grouping"]
    if dropped is None:
        dropped = [None] * len(categories)
    widths = [len(c) - (d is not None) for c, d in zip(categories, dropped, strict=True)]
    require(
        not attributes["_infrequent_enabled"]
        and attributes["_n_features_outs"] == widths
        and all(d is None or 0 <= d < len(c) for c, d in zip(categories, dropped, strict=True))
        and all(_are_rising(some) for some in categories),
        "categories are not those of their columns, or rare ones are joined",
    )
    require(len(categories) == n_columns(attributes), "categories are not those of their columns")


def _are_rising(categories: NDArray[Any]) -> bool:
    """Return whether bisection finds every category; objects are not looked for so.

    A gap is a category too, NaN: a search takes it for the largest.
    """
    if categories.dtype == object:
        return True
    last = categories[-1:]
    present = categories[:-1] if bool((last != last).any()) else categories
    return bool((present == present).all() and (present[:-1] < present[1:]).all())


#: Refuse attributes of some classes that do not belong together.
RELATIONS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "decomposition.KernelPCA kernel_approximation.Nystroem": _check_kernel,
    "ensemble.ExtraTreesClassifier ensemble.ExtraTreesRegressor ensemble.IsolationForest "
    "ensemble.RandomForestClassifier ensemble.RandomForestRegressor": _check_trees,
    "neighbors.KernelDensity": _check_density,
    "neighbors.LocalOutlierFactor neighbors.NearestNeighbors": _check_neighbours,
    "preprocessing.FunctionTransformer": _check_function,
    "preprocessing.OneHotEncoder": _check_one_hot,
    "svm.OneClassSVM": _check_machine,
    "tree.DecisionTreeClassifier tree.DecisionTreeRegressor tree.ExtraTreeClassifier "
    "tree.ExtraTreeRegressor": _check_own_tree,
}
