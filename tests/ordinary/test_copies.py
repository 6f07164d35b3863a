"""Copies of rows: a join that doubles them, a logger that repeats its last value."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from ocfuse import FusedDetector
from ocfuse.ensemble.copies import find_copies, merged_groups
from ocfuse.exceptions import CopiedRowsWarning, OcfuseWarning

pytestmark = pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")

MIXING = np.random.default_rng(7).normal(size=(4, 4))


def measurements(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 4)) @ MIXING


def counts(n, seed):
    return np.random.default_rng(seed).poisson(3, size=(n, 4)).astype(float)


def bits(n, seed):
    return (np.random.default_rng(seed).random((n, 10)) < 0.3).astype(float)


def halves(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 2)).round(1)


def a_number_and_flags(n, seed):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=n), rng.random((n, 3)) < 0.5])


def half_twice(X):
    return np.vstack([X, X[::2]])


def in_runs(X):
    return np.repeat(X, np.random.default_rng(1).geometric(0.4, size=len(X)), axis=0)


def nearly_twice(X):
    noise = np.random.default_rng(1).normal(size=X.shape)
    return np.vstack([X, X + 1e-9 * X.std(axis=0) * noise])


def rounded_to_single_precision(X):
    return np.vstack([X, X.astype(np.float32).astype(float)])


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OcfuseWarning)
        return FusedDetector("light", random_state=0, **options).fit(X)


def rate_of_false_alarms(draw, copied, n_draws=4, **options):
    rates = []
    for seed in range(n_draws):
        detector = fitted(copied(draw(150, seed)), **options)
        rates.append(np.mean(detector.predict(draw(1000, 100 + seed)) == -1))
    return np.mean(rates)


class TestRate:
    @pytest.mark.slow
    def test_a_table_that_is_there_several_times_is_learned_once(self):
        X, fresh = measurements(120, 0), measurements(300, 1)
        once = fitted(X)
        for times in (2, 3, 10):
            often = fitted(np.vstack([X] * times))
            np.testing.assert_array_equal(once.score_samples(fresh), often.score_samples(fresh))
            assert once.offset_ == often.offset_
            assert len(often.copied_rows_) == (times - 1) * 120

    @pytest.mark.slow
    def test_so_is_a_table_of_few_values(self):
        X, fresh = bits(120, 0), bits(300, 1)
        once = fitted(X)
        for times in (2, 3, 10):
            often = fitted(np.vstack([X] * times))
            np.testing.assert_array_equal(once.score_samples(fresh), often.score_samples(fresh))
            assert once.offset_ == often.offset_

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "copied", [half_twice, in_runs, nearly_twice, rounded_to_single_precision]
    )
    @pytest.mark.parametrize("draw", [measurements, a_number_and_flags])
    def test_the_stated_rate_holds_with_copies(self, draw, copied):
        assert rate_of_false_alarms(draw, copied) <= 0.075

    @pytest.mark.slow
    @pytest.mark.parametrize("copied", [half_twice, in_runs])
    def test_it_holds_with_copies_of_counts(self, copied):
        assert rate_of_false_alarms(counts, copied) <= 0.075

    @pytest.mark.slow
    def test_it_holds_with_copies_within_and_between_groups(self):
        """Sixty runs, of which half are there again under another name."""

        def draw(seed):
            rng = np.random.default_rng(seed)
            return np.repeat(rng.normal(size=(60, 3)), 4, axis=0) + 0.3 * rng.normal(size=(240, 3))

        rates = []
        for seed in range(6):
            X, groups = draw(seed), np.repeat(np.arange(60), 4)
            X, groups = np.vstack([X, X[:120]]), np.append(groups, 100 + groups[:120])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OcfuseWarning)
                detector = FusedDetector("light", random_state=0).fit(X, groups=groups)
            assert detector.n_groups_ == 60
            rates.append(np.mean(detector.predict(draw(100 + seed)) == -1))
        assert np.mean(rates) <= 0.075

    @pytest.mark.slow
    def test_calibration_counts_copies_once(self):
        X, fresh = measurements(150, 0), measurements(60, 1)
        first, second = fitted(X).calibrate(fresh), fitted(X)
        with pytest.warns(CopiedRowsWarning, match="67% of the 180 rows"):
            second.calibrate(np.vstack([fresh] * 3))
        assert first.offset_ == second.offset_


class TestTold:
    def test_copies_are_told_with_the_number_of_different_rows(self):
        X = measurements(100, 0)
        with pytest.warns(CopiedRowsWarning, match="33% of the 150 rows .* counts 100 different"):
            FusedDetector("light", random_state=0).fit(half_twice(X))

    def test_every_row_keeps_a_score(self):
        X = measurements(60, 0)
        detector = fitted(np.vstack([X, X]))
        np.testing.assert_array_equal(
            detector.training_scores_[:60], detector.training_scores_[60:]
        )
        assert len(np.intersect1d(detector.training_rows_, detector.copied_rows_)) == 0

    def test_of_copies_the_one_that_is_known_to_be_normal_is_kept(self):
        X = np.vstack([measurements(60, 0)] * 2)
        y = np.repeat([np.nan, 1.0], 60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OcfuseWarning)
            detector = FusedDetector("light", random_state=0).fit(X, y)
        np.testing.assert_array_equal(detector.copied_rows_, np.arange(60))

    def test_the_order_of_the_rows_does_not_matter(self):
        X, fresh = nearly_twice(measurements(60, 0)), measurements(50, 1)
        order = np.random.default_rng(2).permutation(len(X))
        np.testing.assert_array_equal(
            fitted(X).score_samples(fresh), fitted(X[order]).score_samples(fresh)
        )


class TestNature:
    @pytest.mark.parametrize("draw", [measurements, counts, bits, halves, a_number_and_flags])
    def test_rows_that_are_drawn_one_by_one_all_count(self, draw):
        """One in 500 may be so near to another, by chance, that it counts as a copy."""
        different = sum(len(np.unique(find_copies(draw(300, seed)))) for seed in range(5))
        assert different >= 0.998 * 5 * 300

    @pytest.mark.parametrize(
        "copied", [half_twice, in_runs, nearly_twice, rounded_to_single_precision]
    )
    @pytest.mark.parametrize("n_columns", [1, 2, 4, 30])
    def test_copies_of_measurements_are_found(self, copied, n_columns):
        X = np.random.default_rng(n_columns).normal(size=(200, n_columns))
        different = len(np.unique(find_copies(copied(X))))
        assert 199 <= different <= 203

    def test_a_narrow_mode_is_not_taken_for_copies(self):
        rng = np.random.default_rng(0)
        narrow, wide = rng.normal(0, 1e-5, size=(150, 4)), rng.normal(100, 10, size=(300, 4))
        assert len(np.unique(find_copies(np.vstack([narrow, wide])))) == 450

    def test_a_column_of_one_value_is_no_copy(self):
        assert len(np.unique(find_copies(np.ones((50, 3))))) == 50

    def test_a_state_that_many_groups_pass_through_does_not_make_them_one(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        X[::5] = 0.0  # the machine stands still
        groups = np.repeat(np.arange(20), 10)
        assert len(np.unique(merged_groups(find_copies(X), groups))) == 20


@pytest.mark.slow
def test_a_model_counts_copies_apart_from_labelled_anomalies(tmp_path, run_command):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(110, 3)), columns=list("abc")).assign(state="ok")
    table.loc[:9, "state"], table.loc[:9, "a"] = "defective", 9.0
    pd.concat([table, table]).to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.ocf"
    flags = ("--label", "state", "--members", "light", "--quiet")
    assert run_command("fit", tmp_path / "t.csv", "-o", model, *flags)[0] == 0
    known = json.loads(run_command("inspect", model, "--json")[1])
    counted = ("rows", "rows_learned", "rows_copied", "anomalies_labelled")
    assert [known[name] for name in counted] == [220, 100, 110, 10]
    text = run_command("inspect", model)[1]
    assert "220: 100 learned from as normal, 110 copies of others, 10 labelled anomalies" in text


def test_the_command_line_tells_of_copies_without_names_of_python(tmp_path, run_command):
    table = pd.DataFrame(measurements(60, 0), columns=list("abcd"))
    pd.concat([table, table]).to_csv(tmp_path / "t.csv", index=False)
    flags = ("-o", tmp_path / "m.ocf", "--members", "light")
    err = run_command("fit", tmp_path / "t.csv", *flags)[2]
    assert "50% of the 120 rows are copies of others. They are learned once" in err
