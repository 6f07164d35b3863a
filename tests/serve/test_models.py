"""Model files that change while the service runs."""

import asyncio
import gc
import operator
import shutil
import sys
import weakref

import pytest

from ocfuse import load
from ocfuse.exceptions import ModelFileError
from ocfuse.persistence import read_header
from ocfuse.persistence.trial import try_load
from ocfuse.serve import models
from ocfuse.serve.scoring import RowScorer, RunScorer
from tests.serve import harm
from tests.serve.asking import ask, client_of, rows


@pytest.fixture(scope="session")
def other_file(model_files, tmp_path_factory):
    """Return a model of the same rows with another threshold."""
    model = load(model_files["plant"])
    model.detector_.set_threshold(0.2)
    return model.save(tmp_path_factory.mktemp("other") / "other.ocf")


@pytest.fixture
def changing(make_service, model_files, tmp_path):
    """Return a service and its file, which a test may change."""
    path = tmp_path / "plant.ocf"
    shutil.copy(model_files["plant"], path)
    return make_service(models={"plant": path}), path


@pytest.fixture(autouse=True)
def _tried_here(request, monkeypatch):
    """Let files be tried without a process of their own, which takes a second or two."""
    if "in_a_process" not in request.fixturenames:
        monkeypatch.setattr(models, "try_load", lambda path, use, stop: read_header(path).sha256)


@pytest.fixture
def in_a_process():
    """Let files be tried as a service does."""


def replace(path, source):
    """Replace a file at once, as `save` does."""
    new = path.with_suffix(".new")
    shutil.copy(source, new)
    new.replace(path)


def version(service):
    return ask(service, "/v1/model").json()["version"]


def test_a_changed_file_is_loaded(changing, other_file):
    service, path = changing
    first = version(service)
    assert asyncio.run(service.registry.reload()) == []
    replace(path, other_file)
    assert asyncio.run(service.registry.reload()) == ["plant"]
    assert version(service) != first
    told = ask(service, "/v1/score", {"rows": rows()}).json()
    assert told["threshold"] == load(other_file).detector_.offset_
    assert asyncio.run(service.registry.reload()) == []


def test_a_touched_file_is_not_loaded_again(changing):
    service, path = changing
    served = service.registry.get()
    path.touch()
    assert asyncio.run(service.registry.reload()) == []
    assert service.registry.get() is served


@pytest.mark.parametrize("content", [b"", b"nonsense", b"ocfuse model\n{}\n", None, "cut"])
def test_a_bad_file_leaves_the_model_as_it_is(changing, other_file, content):
    service, path = changing
    first = version(service)
    if content is None:
        path.unlink()
    elif content == "cut":
        path.write_bytes(other_file.read_bytes()[:-100])
    else:
        path.write_bytes(content)
    assert asyncio.run(service.registry.reload()) == []
    told = ask(service, "/v1/model").json()
    assert told["version"] == first
    assert told["newer_file_failed"]
    assert ask(service, "/v1/score", {"rows": rows()}).status_code == 200
    assert ask(service, "/readyz").status_code == 200
    assert 'outcome="failed"} 1.0' in ask(service, "/metrics").text
    replace(path, other_file)
    assert asyncio.run(service.registry.reload()) == ["plant"]
    assert not ask(service, "/v1/model").json()["newer_file_failed"]


@pytest.mark.slow
def test_no_request_is_dropped_while_models_change(changing, model_files, other_file):
    service, path = changing
    offsets = {load(file).detector_.offset_ for file in (model_files["plant"], other_file)}
    seen, counts, tasks = set(), [0] * 8, []

    async def clients():
        done = asyncio.Event()

        async def ask_on(client, number):
            while not done.is_set():
                answer = await client.post("/v1/score", json={"rows": rows(1)})
                assert answer.status_code == 200, answer.text
                told = answer.json()
                seen.add((told["version"], told["threshold"]))
                counts[number] += 1

        async def answered():
            """Wait until every client has had two more answers."""
            enough = [count + 2 for count in counts]
            while any(map(operator.lt, counts, enough)):
                await asyncio.sleep(0.01)
                assert not any(task.done() for task in tasks)

        async with client_of(service) as client:
            tasks.extend(asyncio.create_task(ask_on(client, i)) for i in range(8))
            for source in (other_file, model_files["plant"], other_file):
                await answered()
                replace(path, source)
                assert await service.registry.reload() == ["plant"]
            await answered()
            done.set()
            await asyncio.gather(*tasks)

    asyncio.run(clients())
    assert min(counts) >= 8
    # a version always comes with its own threshold
    assert len(seen) == 2
    assert {offset for _, offset in seen} == offsets


def test_the_old_model_is_let_go(changing, other_file):
    service, path = changing
    old = weakref.ref(service.registry.get().scorer)
    ask(service, "/v1/score", {"rows": rows()})
    replace(path, other_file)
    asyncio.run(service.registry.reload())
    gc.collect()
    assert old() is None


def test_a_service_does_not_start_without_its_models(make_service, tmp_path, model_files):
    (tmp_path / "bad.ocf").write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match="not an ocfuse model"):
        make_service(models={"bad": tmp_path / "bad.ocf"})
    with pytest.raises(FileNotFoundError):
        make_service(models={"none": tmp_path / "none.ocf"})


def test_a_file_that_is_replaced_while_it_is_loaded(changing, model_files, other_file, monkeypatch):
    """Version and content are of the same file, and the last one is served."""
    service, path = changing
    replace(path, other_file)

    def slowly(found):
        model = load(found)
        if model.detector_.offset_ == load(other_file).detector_.offset_:
            monkeypatch.setattr(models, "load", load)
            replace(path, model_files["plant"])
        return model

    monkeypatch.setattr(models, "load", slowly)
    asyncio.run(service.registry.reload())
    asyncio.run(service.registry.reload())
    served = service.registry.get()
    assert served.version == read_header(path).sha256[:16]
    assert served.scorer.threshold == load(path).detector_.offset_


def test_a_load_that_fails_for_want_of_memory_is_tried_again(changing, other_file, monkeypatch):
    service, path = changing

    def fail(found):
        raise MemoryError

    replace(path, other_file)
    monkeypatch.setattr(models, "load", fail)
    assert asyncio.run(service.registry.reload()) == []
    assert ask(service, "/v1/model").json()["newer_file_failed"]
    assert ask(service, "/v1/score", {"rows": rows()}).status_code == 200
    monkeypatch.setattr(models, "load", load)
    assert asyncio.run(service.registry.reload()) == ["plant"]


@pytest.mark.parametrize("name", ["plant", "array", "runs"])
def test_every_kind_of_model_is_tried_with_a_row(model_files, name, monkeypatch):
    found = []
    for scorer, method in ((RowScorer, "score_cells"), (RunScorer, "score")):
        score = getattr(scorer, method)
        monkeypatch.setattr(
            scorer, method, lambda self, rows, score=score: found.append(score(self, rows))
        )
    models.score_a_row(load(model_files[name]))
    assert [len(scores) for scores in found] == [1]


@pytest.mark.slow
def test_files_are_tried_in_a_process_of_their_own(in_a_process, changing, other_file):
    service, path = changing
    replace(path, other_file)
    assert asyncio.run(service.registry.reload()) == ["plant"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("what", [harm.crash, harm.hang], ids=["crash", "hang"])
def test_a_model_that_would_kill_the_service_is_not_loaded(
    in_a_process, changing, other_file, monkeypatch, what
):
    """Python itself is made to do so in the trial: known ways of a file are closed."""
    service, path = changing
    first = version(service)
    monkeypatch.setattr(
        models,
        "try_load",
        lambda path, use, stop: try_load(path, what, seconds=1, patience=600, stop=stop),
    )
    replace(path, other_file)
    assert asyncio.run(service.registry.reload()) == []
    told = ask(service, "/v1/model").json()
    assert told["version"] == first
    assert told["newer_file_failed"]
    assert ask(service, "/v1/score", {"rows": rows()}).status_code == 200


def test_a_trial_ends_with_the_service(in_a_process, changing, other_file):
    service, path = changing
    replace(path, other_file)
    service.registry.close()
    assert asyncio.run(service.registry.reload()) == []
    assert service.registry.has_failed("plant")
