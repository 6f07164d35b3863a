"""Extensions written from docs/extending.md, word by word, do what the page says of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

import ocfuse
from examples.own_detector import Parzen
from examples.own_evidence import WinnersFusion
from examples.own_fusion import SteadyFusion
from examples.own_generator import Stretch
from ocfuse import FusedDetector, load
from ocfuse.cli.app import run
from ocfuse.cli.runtime import COMMANDS
from ocfuse.cost import Cost
from ocfuse.detectors import KNN, KPCA, make_pool
from ocfuse.detectors.base import BaseDetector
from ocfuse.detectors.gram import distances_cost, neighbours_cost
from ocfuse.exceptions import InvalidInputError, MemberError, UntrustedTypeError
from ocfuse.fusion.base import BaseFusion
from ocfuse.negatives import Generator
from ocfuse.tables import open_source
from ocfuse.tables.open import BINARY
from ocfuse.tables.source import Source

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
X, SPECIES = load_iris(return_X_y=True)
NORMAL = X[SPECIES == 0]
NEW = X[[25, 60, 120]]


class Nearest(BaseDetector):
    """The two methods, and nothing else."""

    def _fit(self, gram):
        distances, numbers = gram.neighbours(3)
        assert not (numbers == np.arange(gram.n_rows)[:, None]).any()
        assert gram.squared_distances.shape == gram.kernel(0.5).shape == (gram.n_rows,) * 2
        self.unit_ = distances.mean() or 1.0
        assert len(gram.reference.X) == gram.n_rows

    def _score(self, query):
        assert query.squared_distances.shape == query.kernel(0.5).shape
        assert len(query.X) == query.n_rows
        return -query.neighbours(3)[0].mean(axis=1) / self.unit_


class Priced(Nearest):
    """Nearest with a parameter that is checked, a bound on the rows, and a cost."""

    def __init__(self, exponent=1.0, max_samples=None):
        self.exponent = exponent
        self.max_samples = max_samples

    def _check_parameters(self):
        super()._check_parameters()
        if self.exponent <= 0:
            raise InvalidInputError(f"exponent must be above 0. Got {self.exponent}.")

    def cost(self, shape):
        own = Cost(
            fit_work={"seconds": 1e-6 * shape.cells * shape.fits()},
            model_bytes={"bytes": 8 * shape.cells},
        )
        return own + distances_cost(shape) + neighbours_cost(shape, 3)


class Centre(BaseEstimator):
    """An estimator as scikit-learn has them."""

    def fit(self, X, y=None):
        self.centre_ = X.mean(axis=0)
        return self

    def decision_function(self, X):
        return -np.linalg.norm(X - self.centre_, axis=1)


class Lowest(BaseFusion):
    """The two methods, and nothing else."""

    def _fit(self, Z, y, X, c):
        assert set(y) <= {1, -1}
        assert X.shape == (len(Z), 0)
        assert c.min() > 0
        assert c.mean() == pytest.approx(1)
        assert self.reference_ == pytest.approx(np.average(Z[y > 0], axis=0, weights=c[y > 0]))
        self.labels_ = np.unique(y)

    def _fuse(self, Z, X):
        return Z.min(axis=1)


class BySide(BaseFusion):
    """Weights that depend on the row."""

    needs_X = True  # noqa: N815

    def _fit(self, Z, y, X, c):
        self.middle_ = np.median(X[:, 0])
        self.n_columns_ = X.shape[1]

    def _fuse(self, Z, X):
        return (self._weights(X) * Z).sum(axis=1)

    def _weights(self, X):
        d = self.n_members_
        first = np.where(X[:, 0] < self.middle_, 0.75, 0.25)
        return np.column_stack([first, *[(1 - first) / (d - 1)] * (d - 1)])


class Learner(BaseFusion):
    """Keeps what it is given beside rows."""

    def _fit(self, Z, y, X, c):
        raise AssertionError("fit calls _learn in place of _fit")

    def _learn(self, Z, y, X, c, evidence, groups):
        self.shape_ = None if evidence is None else np.shape(evidence.auc)
        self.votes_ = 0 if evidence is None else len(evidence.vote)
        self.sums_ = 0 if evidence is None else len(evidence.by_rank()) + len(evidence.by_value())
        self.has_groups_ = groups is not None

    def _fuse(self, Z, X):
        return Z.mean(axis=1)


class Outside(Generator):
    """Draws rows beyond the box of the normals."""

    def _draw(self, X, n, random):
        is_constant = np.ptp(X, axis=0) == 0
        side = random.choice([-1.0, 1.0], size=(n, X.shape[1]))
        drawn = X.mean(axis=0) + side * 1.5 * np.ptp(X, axis=0)
        return np.where(is_constant, X[0], drawn)


class LinesSource(Source):
    """A table of one JSON object per line."""

    def __init__(self, path, chunk_rows):
        self._path = path
        columns = list(pd.read_json(path, lines=True, nrows=1).columns)
        super().__init__(path.name, columns, "lines of JSON", chunk_rows)

    def frames(self):
        yield from pd.read_json(self._path, lines=True, chunksize=self.chunk_rows)


app = typer.Typer(add_completion=False)


@app.command()
def greet(name: str) -> None:
    typer.echo(f"hello {name}")


def fitted(members="light", **parameters):
    return FusedDetector(members, random_state=0, **parameters).fit(NORMAL)


def check_answers(detector):
    """Scores, decisions and explanations, as any detector gives them."""
    assert detector.predict(NEW).tolist() == [1, -1, -1]
    scores = detector.score_samples(NEW)
    alone = [detector.score_samples(row[None])[0] for row in NEW]
    np.testing.assert_allclose(scores, alone, atol=1e-10)
    found = detector.explain(NEW)
    np.testing.assert_allclose(found.base + found.contributions.sum(axis=1), scores)


def check_file(detector, path, names):
    """It loads with the names of its own classes, which the error lists, and not without."""
    detector.save(path)
    with pytest.raises(UntrustedTypeError) as refusal:
        load(path)
    assert all(name in str(refusal.value) for name in names)
    again = load(path, trusted=names)
    np.testing.assert_array_equal(again.score_samples(NEW), detector.score_samples(NEW))
    np.testing.assert_array_equal(again.weights(NEW), detector.weights(NEW))


def name_of(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


@pytest.mark.parametrize("member", [Nearest(), Priced(), Centre(), Parzen()])
def test_a_detector_is_a_member(member, tmp_path):
    detector = fitted([("mine", member), ("kpca", KPCA()), ("knn", KNN(5))])
    check_answers(detector)
    check_file(detector, tmp_path / "model.ocf", [name_of(type(member))])


def test_a_detector_gets_the_rest_for_nothing():
    alone = Nearest().fit(NORMAL)
    assert alone.predict(NEW).tolist() == [1, -1, -1]
    assert alone.false_alarm_rate == 0.05
    assert (alone.max_samples, len(alone.reference_.X)) == (None, len(NORMAL))
    # the offset rests on scores of rows that were not seen, which are lower
    assert alone.offset_ < np.quantile(alone.score_samples(NORMAL), 0.05)
    with pytest.raises(ValueError, match="features"):
        alone.score_samples(NEW[:, :2])


def test_a_detector_takes_and_checks_parameters():
    assert len(Priced(max_samples=20).fit(NORMAL).reference_.X) == 20
    with pytest.raises(InvalidInputError, match="exponent must be above 0"):
        Priced(exponent=0).fit(NORMAL)
    with pytest.raises(InvalidInputError, match="max_samples"):
        Priced(max_samples=0).fit(NORMAL)
    with pytest.raises(MemberError, match="exponent must be above 0"):
        fitted([("mine", Priced(exponent=0)), ("knn", KNN())])


def test_a_plan_counts_a_detector_with_a_cost_and_names_one_without():
    others = [("knn", KNN(5))]
    guessed = FusedDetector([("mine", Nearest()), *others]).plan((1000, 10))
    assert guessed.unknown == ("mine",)
    priced = FusedDetector([("mine", Priced()), *others]).plan((1000, 10))
    assert priced.unknown == ()
    work = 1e-6 * 1000 * 10
    assert priced.fit_seconds - guessed.fit_seconds >= work
    # the copy of the rows that is counted without a cost
    nothing = FusedDetector(others).plan((1000, 10))
    assert guessed.model_bytes - nothing.model_bytes >= 8 * 1000 * 10


@pytest.mark.parametrize("fusion", [Lowest(), BySide(), SteadyFusion()])
def test_a_fusion_fuses(fusion, tmp_path):
    detector = fitted(fusion=fusion)
    check_answers(detector)
    check_file(detector, tmp_path / "model.ocf", [name_of(type(fusion))])


def test_a_fusion_learns_from_pseudo_anomalies_or_from_normals_alone():
    assert fitted(fusion=Lowest()).fusion_.labels_.tolist() == [-1, 1]
    assert fitted(fusion=Lowest(), negatives=None).fusion_.labels_.tolist() == [1]


def test_weights_are_those_of_trust_or_of_the_row_or_equal():
    d = len(make_pool("light"))
    np.testing.assert_allclose(fitted(fusion=Lowest()).weights(NEW), 1 / d)
    steady = fitted(fusion=SteadyFusion())
    np.testing.assert_allclose(steady.weights(NEW), np.tile(steady.fusion_.w_, (3, 1)))
    by_side = fitted(fusion=BySide()).weights(NORMAL)
    assert set(by_side[:, 0]) == {0.25, 0.75}
    np.testing.assert_allclose(np.abs(by_side).sum(axis=1), 1)


def test_context_is_the_last_columns():
    context = np.arange(len(NORMAL), dtype=float)
    detector = FusedDetector("light", fusion=BySide(), random_state=0)
    detector.fit(NORMAL, context=context)
    assert detector.fusion_.n_context_ == 1
    assert detector.fusion_.n_columns_ == NORMAL.shape[1] + 1


@pytest.mark.parametrize("fusion", [WinnersFusion(), Learner()])
def test_a_fusion_learns_from_evidence(fusion, tmp_path):
    detector = fitted(fusion=fusion)
    check_answers(detector)
    check_file(detector, tmp_path / "model.ocf", [name_of(type(fusion))])


def test_evidence_has_a_row_for_each_member_and_a_vote_for_each_comparison():
    learned = fitted(fusion=Learner()).fusion_
    d = len(make_pool("light"))
    assert learned.shape_ == (d, learned.votes_)
    assert learned.votes_ > 1
    assert learned.sums_ == 2 * d
    assert not learned.has_groups_


def test_evidence_may_be_missing_and_groups_are_those_of_fit():
    detector = FusedDetector("light", fusion=Learner(), negatives=None, random_state=0)
    detector.fit(NORMAL, groups=np.arange(len(NORMAL)) // 2)
    assert detector.fusion_.has_groups_
    assert detector.fusion_.votes_ == 1  # rows seen against rows unseen
    alone = WinnersFusion().fit(np.random.default_rng(0).random((20, 3)))
    np.testing.assert_allclose(alone.w_, 1 / 3)
    assert Learner().fit(np.ones((5, 2))).shape_ is None


@pytest.mark.parametrize("generator", [Outside(), Stretch()])
def test_a_generator_is_a_comparison_of_its_own(generator, tmp_path):
    detector = fitted(negatives=["gauss", generator])
    labels = detector.fusion_.evidence_.labels
    assert labels[:2] == ["gauss", type(generator).__name__.lower()]
    check_answers(detector)
    check_file(detector, tmp_path / "model.ocf", [name_of(type(generator))])


@pytest.mark.parametrize("generator", [Outside(), Stretch()])
def test_a_generator_needs_to_know_no_category_and_keeps_constant_columns(generator):
    rng = np.random.default_rng(0)
    category = np.eye(3)[rng.integers(3, size=40)] / 0.47
    table = np.column_stack([rng.normal(size=(40, 2)), np.full(40, 0.3), category])
    drawn = generator.sample(table, 30, random_state=0, source=[0, 1, 2, 3, 3, 3])
    assert drawn.shape == (30, 6)
    assert (drawn[:, 2] == 0.3).all()
    assert {tuple(row) for row in drawn[:, 3:]} <= {tuple(row) for row in category}
    assert np.abs(drawn[:, :2]).max() > np.abs(table[:, :2]).max()


def test_rows_that_are_not_finite_are_refused():
    with pytest.raises(InvalidInputError, match="must draw finite rows"):
        Stretch(factor=np.nan).sample(NORMAL, 5, random_state=0)


def test_a_command_is_a_name_and_a_module(monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "greet", (__name__, "Say hello."))
    with pytest.raises(SystemExit) as ended:
        run(["greet", "you"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "hello you\n"
    with pytest.raises(SystemExit):
        run(["--help"])
    assert "Say hello." in capsys.readouterr().out


def test_a_format_is_a_source_and_an_ending(monkeypatch, tmp_path):
    monkeypatch.setitem(BINARY, ".lines", LinesSource)
    monkeypatch.setattr("ocfuse.tables.open.KNOWN", (".lines",))
    table = pd.DataFrame(NORMAL, columns=["a", "b", "c", "d"])
    path = tmp_path / "normal.lines"
    table.to_json(path, orient="records", lines=True)
    source = open_source(path, chunk_rows=20)
    assert source.columns == ["a", "b", "c", "d"]
    assert [len(chunk) for chunk in source.chunks()] == [20, 20, 10]
    pd.testing.assert_frame_equal(open_source(path).read(), table)
    folder = open_source(tmp_path).read()
    assert folder["file"].unique().tolist() == ["normal.lines"]


def test_the_page_names_files_that_are_there():
    root = Path(ocfuse.__file__).parent
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    words = " ".join(rows).split("`")[1::2]
    paths = [word for word in words if "/" in word and "<" not in word]
    assert len(paths) > 10
    assert [path for path in paths if not (root / path).exists()] == []
