import numpy as np

from ocfuse.vision.fit import FamilyFusion


def scores(seed=0, n=200, shift=(3.0, 1.0, 0.0)):
    """Return normals and defects of two kinds; families see them less and less."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n, 3)) * [1, 10, 100]
    strange = (rng.normal(size=(n, 3)) - shift) * [1, 10, 100]
    return normal, strange, np.arange(n) % 2


def test_families_that_see_defects_are_trusted():
    normal, strange, kind = scores()
    fusion = FamilyFusion().fit(normal, strange, kind)
    assert fusion.weights_[0] > fusion.weights_[1] > fusion.weights_[2]
    assert np.isclose(fusion.weights_.sum(), 1)
    assert fusion.areas_.shape == (3, 2)


def test_families_that_hardly_differ_count_alike():
    normal, strange, kind = scores(shift=(3.0, 2.8, 0.5))
    weights = FamilyFusion().fit(normal, strange, kind).weights_
    assert np.isclose(weights[0], weights[1])
    assert weights[2] < 0.01


def test_the_scale_of_a_family_does_not_matter():
    normal, strange, kind = scores()
    factor = np.array([1e-3, 7.0, 1e4])
    plain = FamilyFusion().fit(normal, strange, kind)
    scaled = FamilyFusion().fit(*(x * factor for x in (normal, strange)), kind)
    assert np.allclose(plain.fuse(strange), scaled.fuse(strange * factor))


def test_blind_families_count_alike():
    normal, _, kind = scores()
    fusion = FamilyFusion().fit(normal, normal + 50, kind)  # defects look better
    assert np.allclose(fusion.weights_, 1 / 3)
