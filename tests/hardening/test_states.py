"""Forged states of every estimator that a file may name, some of those that `make fuzz` tries."""

from benchmarks.hardening.states import bad, tried

N_FORGERIES = 100


def test_forged_states_are_refused_or_harmless():
    found = tried(0, N_FORGERIES)
    assert not bad(found)
    assert len(found) == N_FORGERIES
    assert {"refused", "loaded, scores", "loaded, cannot score"} == {one["ended"] for one in found}
