"""StreamDetector: one by one as in chunks, bad input as declared, resumed to the bit."""

import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import ocfuse
from ocfuse import FusedDetector
from ocfuse.detectors import KNN
from ocfuse.exceptions import (
    DriftWarning,
    FewSamplesWarning,
    InvalidInputError,
    InvalidTypeError,
    OcfuseWarning,
    SuspectInputWarning,
)
from ocfuse.fusion import CompetenceFusion
from ocfuse.scores import join_lowest
from ocfuse.streaming import Course, StreamDetector, blocks, run_score
from ocfuse.streaming.fit import StreamTraining, learn_view
from ocfuse.streaming.windows import run_slices
from tests.streaming.cases import MEMBERS, fitted, learned, normal, quick

NAN = np.nan
WARM_UP = 11


@pytest.fixture(scope="module")
def stream():
    return fitted(time=np.arange(400.0))


def assert_same(one, other):
    """Members multiply matrices, so that the last bits of a score depend on its batch."""
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def fresh(stream):
    return stream.reset()


class TestScores:
    def test_one_by_one_equals_chunks_equals_the_run(self, stream):
        X, time = normal(90, 1), np.arange(90.0)
        X[20:24] = NAN
        X[40:60, 1] = NAN
        time[70:] += 50
        one = [fresh(stream).score_one(X[0], time[0])]
        one += [stream.score_one(x, t) for x, t in zip(X[1:], time[1:], strict=True)]
        fresh(stream)
        cuts = [0, 1, 30, 31, 75, 90]
        chunks = [stream.score_chunk(X[a:b], time[a:b]) for a, b in pairwise(cuts)]
        whole = stream.score_run(X, time)
        assert_same(one, whole)
        assert_same(np.concatenate(chunks), whole)

    def test_what_the_last_score_was_made_of_is_remembered(self, stream):
        X, time = normal(40, 1), np.arange(40.0)
        assert fresh(stream).state_.features is None
        scores = stream.score_chunk(X, time)
        features = stream.state_.features
        assert features.shape == (1, len(stream.feature_names_))
        assert_same(stream.detector_.score_samples(features), scores[-1:])
        assert np.isnan(stream.score_one(X[0], 3.0))  # too late to count
        assert stream.state_.features is None

    def test_no_score_while_windows_fill(self, stream):
        scores = stream.score_run(normal(40, 2))
        assert np.isnan(scores[:WARM_UP]).all()
        assert not np.isnan(scores[WARM_UP:]).any()

    def test_faults_are_found_and_normals_pass(self, stream):
        X = normal(400, 3)
        assert (stream.score_run(X) < stream.offset_).mean() < 0.08
        X[200:, 1] += 8
        scores = stream.score_run(X)
        assert (scores[205:] < stream.offset_).all()
        assert run_score(scores) == np.nanmin(scores)

    def test_the_past_is_not_changed_by_the_future(self, stream):
        X = normal(60, 4)
        assert_same(stream.score_run(X)[:40], stream.score_run(X[:40]))

    def test_a_recorded_run_does_not_touch_the_stream(self, stream):
        fresh(stream).score_chunk(normal(20, 5))
        before = stream.state_.samples.copy()
        stream.score_run(normal(30, 6))
        np.testing.assert_array_equal(stream.state_.samples, before)

    def test_memory_is_bounded(self, stream):
        fresh(stream).score_chunk(normal(300, 7))
        assert stream.state_.samples.shape == (WARM_UP, 3)

    def test_samples_themselves_without_windows(self):
        X = normal(200, 0)
        plain = learned(quick(windows=()), X)
        assert plain.feature_names_ == ["x0", "x1", "x2"]
        np.testing.assert_array_equal(plain.score_run(X[:5]), plain.detector_.score_samples(X[:5]))

    def test_context_reaches_the_fusion(self):
        context = np.tile(np.linspace(0, 1, 50), 8)
        stream = fitted(context=context, fusion=CompetenceFusion(context_weight=1.0))
        X = normal(30, 8)
        one, other = (
            stream.score_run(X, context=context[:30]),
            stream.score_run(X, context=0.9 + 0 * context[:30]),
        )
        assert not np.array_equal(one[WARM_UP:], other[WARM_UP:])
        assert fresh(stream).detector_.context_scale_ is not None
        scores = [stream.score_one(x, context=c) for x, c in zip(X, context, strict=False)]
        assert_same(scores, one)
        with pytest.raises(InvalidInputError, match="context"):
            stream.score_run(X)


class TestBadInput:
    def test_a_burst_of_gaps_is_bridged(self, stream):
        X = normal(60, 9)
        X[30:32] = NAN
        scores = stream.score_run(X)
        assert not np.isnan(scores[WARM_UP:]).any()

    @pytest.mark.parametrize("value", [np.inf, -1e308, 1e200])
    def test_no_number_is_an_error(self, stream, value):
        X, gap = normal(60, 9), normal(60, 9)
        X[30, 1], gap[30, 1] = value, NAN
        live = [fresh(stream).score_one(X[0]), *(stream.score_one(x) for x in X[1:])]
        assert_same(live, stream.score_run(gap))
        assert np.isfinite(stream.score_run(np.where(np.isfinite(gap), X, 1e100))[-1])

    def test_a_missing_channel_counts_as_typical(self, stream):
        X = normal(80, 10)
        X[20:, 1] = NAN
        scores = fresh(stream).score_chunk(X)
        assert not np.isnan(scores[WARM_UP:]).any()
        assert (scores[40:] < stream.offset_).mean() < 0.2
        assert stream.state_.counts["missing"] > 40
        X[60:, 0] += 10  # the others are still watched
        assert (stream.score_run(X)[66:] < stream.offset_).all()

    def test_no_score_with_most_channels_missing(self, stream):
        X = normal(60, 11)
        X[20:, :2] = NAN
        scores = fresh(stream).score_chunk(X)
        assert np.isnan(scores[35:]).all()
        assert stream.state_.counts["unscored"] >= WARM_UP + 25

    def test_it_recovers_when_channels_come_back(self, stream):
        X = normal(80, 12)
        X[20:40] = NAN
        scores = stream.score_run(X)
        clean = stream.score_run(normal(80, 12))
        assert_same(scores[52:], clean[52:])

    def test_repeated_and_late_samples_are_ignored(self, stream):
        X, time = normal(40, 13), np.arange(40.0)
        clean = stream.score_run(X, time)
        rows = np.r_[0:20, 19, 5, 20:40]
        scores = fresh(stream).score_chunk(X[rows], time[rows])
        assert np.isnan(scores[20:22]).all()
        assert_same(np.delete(scores, [20, 21]), clean)
        assert stream.state_.counts["repeated"] == 1
        assert stream.state_.counts["late"] == 1

    def test_windows_start_again_after_a_gap(self, stream):
        X, time = normal(60, 14), np.arange(60.0)
        time[30:] += 5.5
        scores = fresh(stream).score_chunk(X, time)
        assert np.isnan(scores[30 : 30 + WARM_UP]).all()
        assert_same(scores[30:], stream.score_run(X[30:], time[30:]))
        assert stream.state_.counts["gap"] == 1

    def test_dates_are_times(self, stream):
        X = normal(40, 15)
        dates = np.datetime64("2026-11-16T10:00:00") + np.arange(40).astype("timedelta64[s]")
        expected = stream.score_run(X, np.arange(40.0))
        for times in (dates, dates.tolist(), pd.DatetimeIndex(dates), list(pd.to_datetime(dates))):
            np.testing.assert_array_equal(stream.score_run(X, times), expected)

    @pytest.mark.parametrize(
        ("X", "message"),
        [(np.zeros((4, 2)), "3 channels"), (np.zeros(3), "shape"), ([["a", "b", "c"]], "numbers")],
    )
    def test_unusable_samples_are_refused(self, stream, X, message):
        with pytest.raises(InvalidInputError, match=message):
            stream.score_chunk(X)

    def test_what_is_refused_does_not_move_the_stream(self, stream):
        fresh(stream).score_chunk(normal(30, 22))
        before = stream.state_.samples.copy()
        for given in ({"context": [0.5]}, {"time": [1.0, 2.0]}, {"time": ["soon"]}):
            with pytest.raises(InvalidInputError):
                stream.score_chunk(np.zeros((1, 3)), **given)
        np.testing.assert_array_equal(stream.state_.samples, before)
        assert stream.state_.counts["seen"] == 30

    @pytest.mark.parametrize("given", [{"y": [1]}, {"context": [1]}, {"time": [1]}, {"runs": [1]}])
    def test_a_fit_that_fails_leaves_the_detector_as_it_was(self, given):
        stream = fitted()
        before = stream.score_run(normal(30, 23))
        with pytest.raises(InvalidInputError):
            stream.fit(normal(60, 1), **given)
        np.testing.assert_array_equal(stream.score_run(normal(30, 23)), before)

    @pytest.mark.parametrize("bad", [NAN, np.inf])
    def test_times_to_learn_from_must_be_finite(self, bad):
        time = np.arange(400.0)
        time[7] = bad
        with pytest.raises(InvalidInputError, match="finite"):
            fitted(time=time)

    @pytest.mark.parametrize(
        "params",
        [
            {"half_life": 0},
            {"drift": "up"},
            {"max_gap": 0.5},
            {"max_gap": "5"},
            {"windows": (2,)},
            {"windows": None},
            {"windows": 10},
            {"windows": "10"},
            {"max_rows": 0},
            {"course": "yes"},
            {"n_blocks": "4"},
        ],
    )
    def test_unusable_parameters_are_refused(self, params):
        with pytest.raises(InvalidInputError, match=next(iter(params))):
            fitted(**params)

    def test_a_detector_is_more_than_its_members(self):
        with pytest.raises(InvalidTypeError, match=r'FusedDetector\("light"\). Got .light'):
            StreamDetector("light").fit(normal(400, 0))

    @pytest.mark.filterwarnings("ignore:These channels drift")
    @pytest.mark.parametrize("n", [12, 30, 40, 56])
    def test_a_short_run_is_told_how_long_it_must_be(self, n):
        with pytest.raises(InvalidInputError, match=r"windows of 12.*about 68 samples"):
            fitted(n=n)

    def test_so_long_is_enough(self):
        assert np.isfinite(fitted(n=68).offset_)

    def test_the_newest_sample_first_is_refused(self):
        with pytest.raises(InvalidInputError, match=r"falls in 399 of 399 steps.*Sort each run"):
            fitted(time=np.arange(400.0)[::-1])

    def test_times_of_low_resolution_are_told(self):
        times = np.arange(400.0) // 4
        with pytest.warns(SuspectInputWarning, match="300 of 400 training samples.*300 repeat"):
            stream = fitted(time=times, windows=(5,))
        assert stream.training_counts_ == {
            "seen": 400,
            "repeated": 300,
            "late": 0,
            "clock": 0,
            "gap": 0,
            "new_clock": 0,
        }

    def test_a_few_late_samples_are_no_news(self):
        time = np.arange(400.0)
        time[[100, 200]] = 7.0
        assert fitted(time=time).training_counts_["late"] == 2

    def test_a_dead_channel_is_named(self):
        X = normal(100, 0)
        X[:, 2] = NAN
        with pytest.raises(InvalidInputError, match="x2"):
            StreamDetector(windows=(5,)).fit(X)


class TestClock:
    """No clock silences a stream; one by one as in chunks, and over a checkpoint, to the bit."""

    def times(self):
        """Every trouble: glitches, a jump that is true, a clock set back, late samples, NaN."""
        time = np.arange(200.0)
        time[30] = 1e9
        time[45] = NAN
        time[50:] += 1e7
        time[80:] -= 5e6
        time[[110, 112]] = -np.inf, 7.0
        time[130] = time[129]
        return time

    @pytest.mark.parametrize("bad", [1e9, np.inf, -np.inf, NAN])
    def test_one_bad_time_costs_one_sample(self, stream, bad):
        X, time = normal(100, 31), np.arange(100.0)
        time[30] = bad
        scores = fresh(stream).score_chunk(X, time)
        assert_same(scores[31 + WARM_UP :], stream.score_run(X, np.arange(100.0))[31 + WARM_UP :])
        assert np.flatnonzero(np.isnan(scores)).tolist() == [*range(WARM_UP), 30]
        assert stream.state_.counts["clock"] == 1

    def test_a_clock_set_back_is_taken(self, stream):
        X, time = normal(100, 32), np.r_[1000.0:1050, 0.0:50]
        scores = fresh(stream).score_chunk(X, time)
        assert np.isnan(scores[50 : 54 + WARM_UP]).all()
        assert_same(scores[54:], stream.score_run(X[54:], time[54:]))
        counts = stream.state_.counts
        assert (counts["late"], counts["new_clock"], counts["clock"]) == (4, 1, 0)

    def test_a_long_pause_is_believed(self, stream):
        X, time = normal(60, 33), np.arange(60.0)
        time[30:] += 1e8
        scores = fresh(stream).score_chunk(X, time)
        assert_same(scores[31:], stream.score_run(X[31:], time[31:]))
        assert (stream.state_.counts["clock"], stream.state_.counts["gap"]) == (1, 1)

    @pytest.mark.parametrize("cuts", [range(201), [0, 30, 31, 50, 51, 83, 200], [0, 82, 200]])
    def test_chunks_agree(self, stream, cuts):
        X, time = normal(200, 34), self.times()
        whole = stream.score_run(X, time)
        state = fresh(stream).state_
        parts = [stream.score_chunk(X[a:b], time[a:b]) for a, b in pairwise(cuts)]
        assert_same(np.concatenate(parts), whole)
        counts, silent = state.counts, state.silent
        fresh(stream).score_chunk(X, time)
        assert (stream.state_.counts, stream.state_.silent) == (counts, silent)
        np.testing.assert_array_equal(stream.state_.samples, state.samples)

    @pytest.mark.slow
    @pytest.mark.parametrize("cut", [31, 51, 82, 83, 84, 111])
    def test_a_checkpoint_amid_trouble(self, stream, cut, tmp_path):
        X, time = normal(200, 34), self.times()
        fresh(stream).score_chunk(X[:cut], time[:cut])
        stream.checkpoint(tmp_path / "state")
        uninterrupted = stream.score_chunk(X[cut:], time[cut:])
        fresh(stream).resume(tmp_path / "state")
        np.testing.assert_array_equal(stream.score_chunk(X[cut:], time[cut:]), uninterrupted)

    def test_silence_is_told(self, stream):
        X = normal(40, 35)
        fresh(stream)
        assert stream.status() == "unscored"
        stream.score_chunk(X)
        assert (stream.state_.silent, stream.status()) == (0, "normal")
        for time in np.full(7, np.inf):
            stream.score_one(X[0], time)
        assert (stream.state_.silent, stream.status()) == (7, "unscored")
        assert np.isfinite(stream.state_.score)
        assert fresh(stream).score_chunk(np.vstack([X, X + 30]))[-1] == stream.state_.score
        assert stream.status() == "alarm"


class TestRecordedRuns:
    def runs(self):
        X = np.vstack([normal(60, 36), normal(40, 37) + 30])
        return X, np.repeat(["a", "b"], [60, 40])

    def test_each_run_begins_anew(self, stream):
        X, runs = self.runs()
        scores = stream.score_samples(X, runs)
        assert_same(scores, np.r_[stream.score_run(X[:60]), stream.score_run(X[60:])])

    def test_threshold_prediction_and_p_value_agree(self, stream):
        X, runs = self.runs()
        scores = stream.score_samples(X, runs)
        known = ~np.isnan(scores)
        offset = stream.offset_
        for rate in (0.02, 0.2):
            stream.set_threshold(rate)
            assert_same(stream.decision_function(X, runs), scores - stream.offset_)
            alarm = stream.predict(X, runs) == -1
            assert not alarm[~known].any()
            assert alarm[60 + WARM_UP :].all()
            p = stream.p_values(X, runs)
            np.testing.assert_array_equal(np.isnan(p), ~known)
            np.testing.assert_array_equal(p[known] <= rate, alarm[known])
        stream.set_threshold(offset=offset)
        assert stream.offset_ == offset

    def test_explanations_name_windows_and_samples(self, stream):
        X = normal(60, 38)
        X[40:, 1] += 8
        found = stream.explain(X, [30, 50])
        assert_same(found.score, stream.score_run(X)[[30, 50]])
        assert found.feature_names == stream.feature_names_
        assert found.feature_names[int(np.argmax(found.attributions[1]))].startswith("x1")
        assert set(found.nearest_rows.ravel().tolist()) <= set(range(WARM_UP, 400))
        assert len(stream.explain(X, np.arange(60) == 30)) == 1
        with pytest.raises(InvalidInputError, match="Sample 3 has none"):
            stream.explain(X, [30, 3])

    def test_its_scores_can_be_joined_with_others(self, stream):
        scores = stream.score_run(normal(60, 40))
        joined = join_lowest([scores, np.full(60, 9.0)], [stream.training_scores_, [8.0, 10.0]])
        assert np.isfinite(joined).all()
        assert (joined[:WARM_UP] == 0).all()


class TestLearning:
    def test_runs_are_held_out_where_there_are_enough(self):
        runs = np.repeat(np.arange(5), 80)
        detector = FusedDetector(MEMBERS, false_alarm_rate=0.2, random_state=0)
        stream = StreamDetector(detector, windows=(5,))
        stream.fit(normal(400, 0), np.ones(400), runs=runs)
        kept = np.isfinite(stream.training_scores_)
        assert kept.sum() == 5 * 76
        fold = np.empty(380, dtype=int)
        fold[stream.detector_.training_rows_] = stream.detector_.pool_.fold_
        assert all(len(set(fold[runs[kept] == run])) == 1 for run in range(5))

    def test_few_runs_are_cut_into_blocks(self, stream):
        fold = np.empty(389, dtype=int)
        fold[stream.detector_.training_rows_] = stream.detector_.pool_.fold_
        assert (np.diff(fold) != 0).sum() == 3

    def test_training_and_streaming_see_the_same_features(self, stream):
        X = normal(400, 0)
        rows = stream.features(X, time=np.arange(400.0))
        assert_same(
            stream.detector_.score_samples(rows[WARM_UP:]),
            stream.score_run(X, np.arange(400.0))[WARM_UP:],
        )

    def test_fresh_normals_calibrate(self, stream):
        other = fitted()
        with pytest.warns(FewSamplesWarning, match="1 run tells nothing.*the rest of this run"):
            other.calibrate(normal(600, 16))
        assert other.offset_ != stream.offset_
        assert (other.score_run(normal(600, 17)) < other.offset_).mean() < 0.06

    def test_runs_count_alike_where_they_calibrate(self):
        stream = fitted(false_alarm_rate=0.2)
        runs = np.repeat(np.arange(6), 100)
        stream.calibrate(normal(600, 16), runs=runs)
        assert stream.detector_.n_groups_ == 6
        with pytest.warns(FewSamplesWarning, match=r"^6 runs are too few[^g]*$"):  # no "groups"
            stream.set_threshold(0.01)

    def test_few_runs_promise_little(self):
        X, runs = normal(300, 0), np.repeat([0, 1, 2], 100)
        with pytest.warns(FewSamplesWarning, match="3 runs.*the rest of these runs"):
            quick().fit(X, runs=runs)
        with pytest.warns(FewSamplesWarning, match="1 run tells nothing.*the rest of this run"):
            quick().fit(X)

    def test_of_many_samples_some_are_learned(self):
        y = np.ones(400)
        y[[101, 102, 103]] = -1
        stream = learned(quick(max_rows=150), normal(400, 0), y)
        taken = stream.training_rows_
        assert {101, 102, 103} <= set(taken.tolist())
        # one of every three that have full windows
        assert set(np.bincount((np.setdiff1d(taken, [101, 102, 103]) - 4) // 3)) <= {0, 1}
        assert 132 <= len(taken) <= 135
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(stream.training_scores_)), taken)
        again = learned(quick(max_rows=150), normal(400, 0), y)
        np.testing.assert_array_equal(again.training_rows_, taken)

    @pytest.mark.slow
    @pytest.mark.parametrize("n_runs", [1, 4])
    def test_a_cycle_is_learned_in_every_phase(self, n_runs):
        """Every 20th sample of a machine whose cycle takes 20 is always in the same phase."""

        def machine(seed, n=1004):
            phase = np.arange(n) * np.pi / 10
            noise = 0.05 * np.random.default_rng(seed).normal(size=(n, 2))
            return np.column_stack([np.sin(phase), np.cos(phase)]) + noise

        detector = FusedDetector([("knn", KNN(3))], false_alarm_rate=0.2, random_state=0)
        stream = StreamDetector(detector, windows=(5,), max_rows=50 * n_runs)
        X = np.vstack([machine(seed) for seed in range(n_runs)])
        learned(stream, X, np.ones(len(X)), np.repeat(np.arange(n_runs), 1004))
        assert len(stream.training_rows_) == 50 * n_runs
        assert (stream.predict(machine(100)) == -1).mean() < 0.35

    @pytest.mark.parametrize("purge", [0, 11])
    def test_neighbours_of_a_block_are_not_learned_while_it_is_held_out(self, purge):
        """The same as by hand; without a purge, a walk would find its neighbours."""
        X = np.cumsum(np.random.default_rng(0).normal(size=(400, 1)), axis=0)
        knn = FusedDetector([("knn", KNN(1))], fusion="sum", negatives=None, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OcfuseWarning)
            stream = StreamDetector(knn, windows=(12,)).fit(X, np.ones(400))
            rows = stream.features(X)[WARM_UP:]
            groups = blocks(400, 4, purge).take(np.arange(WARM_UP, 400))
            expected = clone(knn).fit(rows, np.ones(len(rows)), groups).training_scores_
        is_same = np.array_equal(stream.training_scores_[WARM_UP:], expected)
        assert is_same == (purge == 11)

    def test_names_come_from_a_data_frame(self):
        frame = pd.DataFrame(normal(120, 0), columns=["a", "b", "c"])
        stream = learned(quick(), frame)
        assert stream.feature_names_[:2] == ["a level 5", "b level 5"]

    def test_parameters_can_be_cloned(self):
        params = clone(StreamDetector(windows=(7,), half_life=9)).get_params()
        assert (params["windows"], params["half_life"]) == ((7,), 9)


class TestDrift:
    def drifting(self, n, seed):
        X = normal(n, seed)
        X[:, 0] += np.arange(n) / 40
        return X

    def test_it_is_reported(self):
        with pytest.warns(DriftWarning, match="x0"):
            stream = learned(quick(), self.drifting(400, 0))
        assert stream.drift_ratio_[0] > 0.3 > stream.drift_ratio_[1:].max()

    @pytest.mark.slow
    @pytest.mark.parametrize("drift", ["drop", "follow"])
    def test_it_can_be_dealt_with(self, drift):
        X = self.drifting(900, 0)
        rates = []
        for how in ("keep", drift):
            stream = quick(drift=how, half_life=60)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DriftWarning)
                learned(stream, X[:400], np.ones(400))
            rates.append((stream.score_run(X)[400:] < stream.offset_).mean())
        assert rates[0] > 0.3 > 0.1 > rates[1]
        X[600:, 0] += 20  # a jump of the drifting channel is seen only where it is followed
        found = (stream.score_run(X)[600:620] < stream.offset_).mean()
        assert found > 0.9 if drift == "follow" else found < 0.2
        one = [stream.score_one(x) for x in X[:50]]
        assert_same(one, stream.score_run(X[:50]))

    def test_several_runs_that_drift_alike_are_no_news(self):
        X = np.vstack([self.drifting(200, seed) for seed in range(4)])
        detector = FusedDetector(MEMBERS, false_alarm_rate=0.2, random_state=0)
        stream = StreamDetector(detector, windows=(5,)).fit(X, runs=np.repeat(np.arange(4), 200))
        assert (stream.drift_ratio_ < 0.3).all()

    @pytest.mark.parametrize("wander", [0.0, 4.0])
    def test_phases_are_kept_and_wandering_levels_dropped(self, wander):
        rng = np.random.default_rng(0)
        X = np.vstack([normal(200, seed) for seed in range(6)]).reshape(6, 200, 3)
        X[:, 100:, :2] += 20  # a phase of every run
        X[:, :, 1] += wander * rng.normal(size=(6, 1))
        detector = FusedDetector(MEMBERS, false_alarm_rate=0.2, random_state=0)
        stream = StreamDetector(detector, windows=(5,), drift="drop")
        stream.fit(X.reshape(-1, 3), runs=np.repeat(np.arange(6), 200))
        assert stream.watched_ == (["x0", "x2"] if wander else ["x0", "x1", "x2"])

    def test_nothing_left_to_watch_is_refused(self):
        X = normal(200, 0) + np.arange(200)[:, np.newaxis]
        with pytest.raises(InvalidInputError, match="All channels drift"):
            StreamDetector(windows=(5,), drift="drop").fit(X)

    @pytest.mark.slow
    def test_a_channel_that_wandered_off_is_told_once(self, stream):
        fresh(stream).score_chunk(normal(400, 18))
        assert stream.drifted() == []
        X = normal(1000, 19)
        X[:, 2] += 5 * X[:, 2].std()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for x in X[:400]:
                stream.score_one(x)
        assert [("x2" in str(w.message), w.category) for w in told] == [(True, DriftWarning)]
        assert stream.drifted() == stream.state_.drifted == ["x2"]
        stream.score_chunk(X[400:])
        stream.score_chunk(normal(1000, 20))
        assert (stream.drifted(), stream.state_.drifted) == ([], ["x2"])

    @pytest.mark.slow
    def test_a_stationary_stream_raises_no_drift_alarm(self, stream):
        fresh(stream).score_chunk(normal(5000, 39))
        assert stream.state_.drifted == []

    def test_recorded_runs_warn_of_nothing(self, stream):
        stream.score_run(normal(1000, 19) + 30)


class TestCourse:
    """A task whose level depends on the progress; the fault is a usual level at a wrong time."""

    @staticmethod
    def task(seed, n_runs):
        rng = np.random.default_rng(seed)
        progress = np.tile(np.linspace(0, 1, 100), n_runs)
        X = rng.normal(size=(len(progress), 2)) + 10 * (progress > 0.5)[:, np.newaxis]
        return X, progress, np.repeat(np.arange(n_runs), 100)

    @staticmethod
    @cache
    def learned(n_knots):
        """Learn once for all tests, with a course of so many knots, or None."""
        detector = FusedDetector(MEMBERS, false_alarm_rate=0.15, random_state=0)
        course = None if n_knots is None else Course(n_knots)
        stream = StreamDetector(detector, windows=(3,), course=course)
        X, progress, runs = TestCourse.task(0, 8)
        return stream.fit(X, np.ones(len(X)), runs, context=progress)

    def fitted(self, course):
        """Return a fitted detector at the beginning of a stream."""
        return self.learned(None if course is None else course.n_knots).reset()

    @pytest.mark.slow
    def test_a_usual_reading_in_the_wrong_phase_is_found(self):
        X, progress, runs = self.task(1, 3)
        X[20:40] += 10
        found = []
        for course in (None, Course()):
            stream = self.fitted(course)
            alarm = stream.predict(X, runs, context=progress) == -1
            assert alarm[100:].mean() < 0.15
            found.append(alarm[22:40].mean())
        assert found[1] == 1.0 > 0.5 > found[0]

    @pytest.mark.slow
    def test_live_as_recorded_and_saved(self, tmp_path):
        stream = self.fitted(Course(11))
        X, progress, _ = self.task(2, 1)
        whole = stream.score_run(X, context=progress)
        stream.save(tmp_path / "model.ocf")
        for other in (stream, ocfuse.load(tmp_path / "model.ocf")):
            live = [other.score_one(x, context=p) for x, p in zip(X, progress, strict=True)]
            assert_same(live, whole)

    def test_training_runs_are_not_part_of_their_own_course(self):
        """With 8 runs a run would be 1/8 of its own course, and 1/8 nearer to it."""
        X, progress, runs = self.task(0, 4)
        data = StreamTraining(X, ["a", "b"], run_slices(runs, 400), None, progress[:, np.newaxis])
        _, samples, _ = learn_view(StreamDetector(course=Course(101)), data)
        fresh_runs = Course(101).fit(X, progress).transform(*self.task(5, 4)[:2])
        assert samples.std() == pytest.approx(fresh_runs.std(), rel=0.2)

    @pytest.mark.slow
    @pytest.mark.parametrize("course", [None, Course()])
    def test_an_unknown_context_costs_its_sample(self, course):
        stream = self.fitted(course)
        X, progress, _ = self.task(3, 1)
        clean = stream.score_run(X, context=progress)
        gaps = progress.copy()
        gaps[[20, 21]] = NAN, (np.inf if course is None else -1e308)
        scores = stream.score_run(X, context=gaps)
        lost = (
            [20, 21] if course is None else [20, 21, 22]
        )  # windows of which less than half is left
        assert np.flatnonzero(np.isnan(scores)).tolist() == [0, 1, *lost]
        assert_same(scores[25:], clean[25:])
        live = [stream.score_one(x, context=p) for x, p in zip(X, gaps, strict=True)]
        assert_same(live, scores)

    @pytest.mark.slow
    @pytest.mark.parametrize("course", [None, Course()])
    def test_no_answer_is_an_unknown_context(self, course):
        stream = self.fitted(course)
        X, progress, _ = self.task(3, 1)
        gaps = np.where(np.arange(100) == 20, NAN, progress)
        expected = stream.score_run(X, context=gaps)
        answers = [None if np.isnan(p) else p for p in gaps]
        assert_same(stream.score_run(X, context=answers), expected)
        live = [stream.score_one(x, context=p) for x, p in zip(X, answers, strict=True)]
        assert_same(live, expected)
        with pytest.raises(InvalidInputError, match="Pass context"):
            stream.score_chunk(X)
        with pytest.raises(InvalidInputError, match="real numbers"):
            stream.score_chunk(X[:2], context=[0.5, "soon"])

    @pytest.mark.slow
    @pytest.mark.parametrize("course", [None, Course()])
    def test_progress_in_other_units_is_told_once(self, course):
        stream = self.fitted(course)
        X, progress, _ = self.task(3, 1)
        with pytest.warns(SuspectInputWarning, match="0 to 1 in training, and is") as told:
            stream.score_run(X, context=100 * progress)
        assert len(told) == 1
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for x, p in zip(X, 100 * progress, strict=True):
                stream.score_one(x, context=p)
        assert [w.category for w in told].count(SuspectInputWarning) == 1
        stream.reset().score_run(X, context=1.5 * progress)  # a task that takes longer

    @pytest.mark.parametrize("given", [{"runs": None}, {"context": None}, {"context": "two"}])
    def test_it_needs_runs_and_one_context(self, given):
        X, progress, runs = self.task(0, 4)
        if given.get("context") == "two":
            given = {"context": np.column_stack([progress, progress])}
        with pytest.raises(InvalidInputError, match="course"):
            StreamDetector(course=Course()).fit(X, **{"runs": runs, "context": progress} | given)


class TestPersistence:
    def test_a_checkpoint_resumes_to_the_bit(self, stream, tmp_path):
        X, time = normal(80, 20), np.arange(80.0)
        fresh(stream).score_chunk(X[:37], time[:37])
        stream.checkpoint(tmp_path / "state")
        uninterrupted = stream.score_chunk(X[37:], time[37:])
        stream.score_chunk(X[:5], 100 + time[:5])
        stream.resume(tmp_path / "state")
        np.testing.assert_array_equal(stream.score_chunk(X[37:], time[37:]), uninterrupted)
        assert stream.state_.counts["seen"] == 80

    def test_a_saved_model_goes_on_to_the_bit(self, stream, tmp_path):
        X = normal(60, 21)
        fresh(stream).score_chunk(X[:30])
        stream.save(tmp_path / "model.ocf")
        loaded = ocfuse.load(tmp_path / "model.ocf")
        np.testing.assert_array_equal(loaded.score_chunk(X[30:]), stream.score_chunk(X[30:]))

    def test_a_checkpoint_of_another_stream_is_refused(self, stream, tmp_path):
        other = fitted(windows=(5,))
        other.checkpoint(tmp_path / "state")
        with pytest.raises(InvalidInputError, match="no checkpoint"):
            stream.resume(tmp_path / "state")

    @pytest.mark.parametrize(
        "params", [{"half_life": 50}, {"max_gap": 7.0}, {"time": 1000 * np.arange(400.0)}]
    )
    def test_a_checkpoint_of_another_model_is_refused(self, stream, params, tmp_path):
        other = fitted(**{"time": np.arange(400.0)} | params)
        assert other.state_.samples.shape == stream.state_.samples.shape
        other.checkpoint(tmp_path / "state")
        with pytest.raises(InvalidInputError, match="no checkpoint of a stream of this model"):
            stream.resume(tmp_path / "state")

    def test_a_loaded_model_takes_the_checkpoint_of_the_first(self, stream, tmp_path):
        stream.save(tmp_path / "model.ocf")
        fresh(stream).score_chunk(normal(30, 24))
        stream.checkpoint(tmp_path / "state")
        loaded = ocfuse.load(tmp_path / "model.ocf").reset().resume(tmp_path / "state")
        assert loaded.state_.counts["seen"] == 30
