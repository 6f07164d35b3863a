"""Fusions by name, and the surface of the package."""

import inspect

import numpy as np
import pytest
from numpydoc.validate import validate
from sklearn.base import BaseEstimator, clone

import ocfuse.fusion
from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.fusion import LpFusion, SumRule, TrustFusion, make_fusion
from ocfuse.fusion.base import BaseFusion
from ocfuse.fusion.stacking import StackedFusion
from tests.fusion.cases import ALL, scores

NAMES = [
    "sum", "product", "max", "min", "median", "vote", "trimmed-mean", "aom",
    "competence", "lp", "least-squares", "local-lp", "labelled", "cascade", "stacking",
    "single-best",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_a_fusion_that_works(name):
    Z, y, X = scores()
    fused = make_fusion(name).fit(Z, y, X).fuse(Z, X)
    assert fused[y > 0].mean() > fused[y < 0].mean()


def test_names_make_different_classes():
    assert len({type(make_fusion(name)) for name in NAMES}) == len(NAMES)


def test_the_mean_is_the_sum_on_the_scale_of_one_member():
    Z, y, X = scores()
    mean, total = (make_fusion(name).fit(Z, y, X).fuse(Z, X) for name in ("mean", "sum"))
    np.testing.assert_array_equal(mean, total)
    np.testing.assert_allclose(mean, Z.mean(axis=1))


def test_default():
    fusion = make_fusion()
    assert isinstance(fusion, TrustFusion)


def test_objects_are_returned_as_they_are():
    fusion = LpFusion(p=3)
    assert make_fusion(fusion) is fusion


class FirstMember(BaseFusion):
    """The least that a fusion of one's own must have."""

    def _fit(self, Z, y, X, c):
        pass

    def _fuse(self, Z, X):
        return Z[:, 0].copy()


def test_own_fusions_have_the_whole_contract_from_the_base_class():
    Z, y, X = scores()
    own = FirstMember()
    assert make_fusion(own) is own
    base, C = own.fit(Z, y).contributions(Z)
    np.testing.assert_allclose(base + C.sum(axis=1), Z[:, 0])
    assert not own.needs_anomalies
    assert own.weights(X).shape == Z.shape
    assert np.isnan(own.local_p(X)).all()


def test_a_look_alike_is_sent_to_the_base_class():
    class Duck:
        def fit(self, Z, y=None, X=None, sample_weight=None):
            return self

        def fuse(self, Z, X=None):
            return Z[:, 0]

        def weights(self, X):
            return np.ones((len(X), 1))

    message = r'Derive .* from ocfuse\.fusion\.base\.BaseFusion; the page "extending"'
    with pytest.raises(InvalidTypeError, match=message):
        make_fusion(Duck())


def test_unknown_names_get_the_list():
    with pytest.raises(
        InvalidInputError, match=r"'sum', 'mean', 'product'.*'single-best'.*Got 'average'"
    ):
        make_fusion("average")


@pytest.mark.parametrize("spec", [SumRule, 3, object()])
def test_what_is_no_fusion_is_refused(spec):
    with pytest.raises(InvalidTypeError, match="name or a fusion object"):
        make_fusion(spec)


def test_surface():
    names = ocfuse.fusion.__all__
    assert len(names) == len(set(names)) <= 17
    assert names == sorted(names)
    public = [getattr(ocfuse.fusion, name) for name in names]
    classes = {value for value in public if inspect.isclass(value)}
    assert {type(fusion) for fusion in ALL} - classes == {StackedFusion}
    assert all(issubclass(value, BaseEstimator) for value in classes)


@pytest.mark.parametrize("fusion", ALL, ids=lambda fusion: type(fusion).__name__)
def test_constructors_are_small_and_documented(fusion):
    parameters = inspect.signature(type(fusion)).parameters
    assert len(parameters) <= 8
    assert repr(clone(fusion).get_params()) == repr(fusion.get_params())
    kind = type(fusion)
    errors = validate(f"{kind.__module__}.{kind.__name__}")["errors"]
    assert [m for code, m in errors if code in {"GL08", "PR01", "PR02", "PR03", "PR07"}] == []


@pytest.mark.parametrize("name", ["fit", "fuse", "weights", "contributions", "local_p"])
def test_the_contract_is_documented(name):
    errors = validate(f"ocfuse.fusion.base.BaseFusion.{name}")["errors"]
    wrong = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03"}
    assert [message for code, message in errors if code in wrong] == []
    assert hasattr(BaseFusion, name)
