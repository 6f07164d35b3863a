"""Learning on a cluster: the model of one machine, also if a worker is ended."""

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from ocfuse import load
from ocfuse.detectors import GMM, KNN, KPCA, LOF, Compressed, OneClassGP, Whitened
from ocfuse.detectors.base import MANY_ROWS
from ocfuse.detectors.pool import make_pool
from ocfuse.distributed import fit, sample
from ocfuse.exceptions import ClusterError, InvalidTypeError, MemberError
from ocfuse.system.progress import show_progress
from tests.cli.cases import plant
from tests.distributed.cases import Allergic, Mortal, Waiting, grouped, make_model, write


def assert_same(model, other):
    rows = plant(100, 9)[model.schema_.features]
    for attribute in ("training_scores_", "normal_scores_", "offset_"):
        np.testing.assert_allclose(
            getattr(model.detector_, attribute),
            getattr(other.detector_, attribute),
            rtol=0,
            atol=1e-9,
        )
    np.testing.assert_allclose(
        model.score(rows)["score"], other.score(rows)["score"], rtol=0, atol=1e-9
    )


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")
@pytest.mark.parametrize(
    ("group", "members", "fusion", "threads"),
    [
        (None, "default", None, None),
        # solved for: what differs in the last bits of scores is not small any more
        ("run", "light", "lp", 1),
        (None, "light", "lp", 1),
    ],
)
def test_same_as_on_one_machine(client, tmp_path, group, members, fusion, threads):
    data = write(grouped(), tmp_path / "rows", 4)
    ignore = ("file", "when") if group else ("file", "when", "run")
    made = [make_model(members, group=group, ignore=ignore) for _ in range(2)]
    for model in made:
        model.detector.set_params(tune="pseudo-negatives", fusion=fusion)
    fit(made[0], data, client=client, rows=250, seed=2)
    rows = sample(data, 250, client=client, seed=2, group=group, ignore=ignore)
    with threadpool_limits(threads):
        made[1].fit(rows)
    assert_same(*made)
    assert made[0].detector_.search_.best_params_ == made[1].detector_.search_.best_params_


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")
def test_a_worker_that_is_ended_is_no_error(client, folder, tmp_path):
    before = client.run(lambda: None).keys()
    mortal = Mortal(str(tmp_path / "dead"))
    members = [*make_pool("light"), ("mortal", mortal), ("other", OneClassSVM(nu=0.1))]
    ignore = ("file", "part", "when")
    made = [make_model(members, ignore=ignore) for _ in range(2)]
    fit(made[0], folder, client=client, rows=200)
    assert (tmp_path / "dead").exists()
    client.wait_for_workers(2, timeout=120)
    assert client.run(lambda: None).keys() != before
    made[1].fit(sample(folder, 200, client=client, ignore=ignore))
    assert_same(*made)


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")
def test_who_interrupts_takes_back_what_is_not_done(client, folder, tmp_path, monkeypatch):
    gate = tmp_path / "gate"
    waiting = [(f"waiting{i}", Waiting(str(gate))) for i in range(5)]
    members = [("quick", IsolationForest(n_estimators=5, random_state=0)), *waiting]
    cancel, taken_back = client.cancel, []
    monkeypatch.setattr(client, "cancel", lambda some: cancel(taken_back.extend(some) or some))

    def interrupt(stage, member, done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), show_progress(interrupt):
        fit(make_model(members, ignore=("file", "part")), folder, client=client, rows=100)
    gate.touch()
    assert 1 <= len(taken_back) <= 5  # those that were begun by then
    assert {future.status for future in taken_back} == {"cancelled"}


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")
def test_a_member_that_cannot_be_sent_is_an_error(client, folder):
    class Locked(OneClassSVM):
        def fit(self, X, y=None):
            return super().fit(X)

        def __reduce__(self):
            raise TypeError("cannot pickle a lock")

    model = make_model([("locked", Locked(nu=0.1))], ignore=("file", "part"))
    with pytest.raises(InvalidTypeError, match=r"cannot be sent to a worker: .*a lock.*Expected"):
        fit(model, folder, client=client, rows=100)


def test_members_elsewhere_give_what_they_give_here(client, folder, tmp_path):
    members = [
        ("kpca", KPCA(landmarks=60)),
        ("gp", OneClassGP(landmarks=60)),
        ("knn", KNN(3)),
        ("lof", LOF(5)),
        ("gmm", GMM(1)),
        ("gmm3", GMM(3)),
        ("ckpca", Compressed(KPCA(landmarks=60))),
        ("cknn", Compressed(KNN(1))),
        ("wknn", Whitened(KNN(2, max_samples=500))),
    ]
    ignore = ("file", "part", "when")
    made = [make_model(members, ignore=ignore) for _ in range(2)]
    rows = sample(folder, 2100, client=client, ignore=ignore)
    assert len(rows) > MANY_ROWS
    fit(made[0], folder, client=client, rows=2100)
    made[1].fit(rows)
    assert_same(*made)
    for model in made:
        fitted = dict(model.detector_.pool_.members_)
        assert fitted["kpca"].method_ == fitted["ckpca"].detector_.method_ == "landmarks"
        # one set of rows, and one of each view, for all who look at them
        assert fitted["knn"].reference_ is fitted["lof"].reference_ is fitted["gmm"].reference_
        assert fitted["knn"].reference_ is fitted["cknn"].reference_
        views = fitted["knn"].reference_.views
        assert fitted["cknn"].detector_.reference_ is views["Compression"]
    assert_same(load(made[0].save(tmp_path / "m.ocf")), made[1])


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")
@pytest.mark.usefixtures("impatient")
def test_a_member_that_ends_every_worker_is_an_error(client, folder, tmp_path):
    bad = Allergic(str(tmp_path / "diary"), limit=-np.inf)
    model = make_model([("bad", bad)], ignore=("file", "part"))
    with pytest.raises(ClusterError, match="task of the fit ended every worker"):
        fit(model, folder, client=client, rows=100)
    assert (tmp_path / "diary").read_text() == "x"


@pytest.mark.filterwarnings("ignore::ocfuse.exceptions.FewSamplesWarning")
def test_errors_of_members_name_them(client, folder):
    with pytest.raises(MemberError, match="'bad' failed"):
        fit(
            make_model([("bad", OneClassSVM(nu=7))], ignore=("file", "part")),
            folder,
            client=client,
            rows=100,
        )
    with pytest.raises(InvalidTypeError, match="TableDetector"):
        fit(make_model().detector, folder, client=client)
