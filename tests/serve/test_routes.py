"""Scores, explanations, models, health and metrics."""

import asyncio
import json
import logging
import threading

import numpy as np
import pyarrow as pa
import pytest

from ocfuse import load
from ocfuse.serve import Retention
from ocfuse.serve.samples import Sample
from ocfuse.serve.telemetry import JsonLines
from tests.cli.cases import with_anomalies
from tests.serve.asking import ask, client_of, refusal, rows
from tests.serve.conftest import sensors
from tests.serve.test_decoding import arrow

CSV = {"Content-Type": "text/csv; charset=utf-8"}
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def direct(model_files):
    """Return new rows and what the model says of them."""
    frame = with_anomalies()
    return frame, load(model_files["plant"]).score(frame)


def column(answer, name):
    assert answer.status_code == 200, answer.text
    return [result[name] for result in answer.json()["results"]]


@pytest.mark.parametrize("kind", ["json", "csv", "arrow"])
def test_scores_are_those_of_the_model(service, direct, kind):
    frame, expected = direct
    if kind == "json":
        content = frame.to_dict("records")
        answer = ask(service, "/v1/score", {"rows": content})
    elif kind == "csv":
        answer = ask(service, "/v1/score", frame.to_csv(index=False), headers=CSV)
    else:
        body = arrow(pa.Table.from_pandas(frame, preserve_index=False))
        answer = ask(service, "/v1/score", body, headers=ARROW)
    np.testing.assert_allclose(column(answer, "score"), expected["score"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(column(answer, "p_value"), expected["p_value"])
    assert column(answer, "is_anomaly") == expected["is_anomaly"].tolist()
    assert answer.json()["model"] == "plant"
    assert answer.json()["notes"] == []


@pytest.mark.parametrize("content", [None, [], [{"no": 1}], "no rows"])
def test_a_plain_address_is_answered_as_one_that_takes_all_steps_of_the_framework(
    service, direct, content
):
    body = {"rows": direct[0].to_dict("records")[:3] if content is None else content}
    queries = ("", "?model=plant", "?other=1", "?model=nobody", "?other=1&model=nobody")
    plain, named, routed, unknown, routed_unknown = (
        ask(service, f"/v1/score{query}", body) for query in queries
    )
    assert plain.status_code == named.status_code == routed.status_code
    assert plain.json() == named.json() == routed.json()
    assert plain.headers.keys() == routed.headers.keys()
    assert (unknown.status_code, unknown.json()) == (404, routed_unknown.json())


def test_single_rows_at_the_same_time_share_blocks(make_service, direct):
    frame, expected = direct
    service = make_service()
    content = frame.to_dict("records")[:60]

    async def asked():
        async with client_of(service) as client:
            tasks = [client.post("/v1/score", json={"rows": [row]}) for row in content]
            return await asyncio.gather(*tasks)

    answers = asyncio.run(asked())
    found = [column(answer, "score")[0] for answer in answers]
    np.testing.assert_allclose(found, expected["score"][:60], rtol=0, atol=1e-10)
    told = ask(service, "/metrics").text
    blocks = float(told.split('ocfuse_batch_rows_count{model="plant"} ')[1].split()[0])
    assert blocks < len(content) / 4
    assert f'ocfuse_rows_total{{model="plant",way="request"}} {len(content)}.0' in told


def test_models_by_name(service, model_files):
    X = np.random.default_rng(3).normal(size=(4, 3))
    answer = ask(service, "/v1/score?model=array", {"rows": X.tolist()})
    expected = load(model_files["array"]).score_samples(X)
    np.testing.assert_allclose(column(answer, "score"), expected, rtol=0, atol=1e-10)
    assert refusal(ask(service, "/v1/score?model=no", {"rows": []}), 404) == "unknown_model"


def test_runs_are_scored_from_their_beginning(service, model_files):
    run = sensors("new", 99).drop(columns="file")
    run.loc[40:50, "current"] += 5
    answer = ask(service, "/v1/score?model=runs", {"rows": run.to_dict("records")})
    expected = load(model_files["runs"]).score(run)
    assert column(answer, "score")[:4] == [None] * 4
    np.testing.assert_allclose(column(answer, "score")[4:], expected["score"][4:], atol=1e-10)
    assert any(column(answer, "is_anomaly")[40:50])
    refused = ask(service, "/v1/score?model=runs", {"rows": [[1, 2]]})
    assert refusal(refused, 422) == "unusable_rows"


def test_no_rows_are_no_error(service):
    for name in ("plant", "array", "runs"):
        for path in ("score", "explain"):
            answer = ask(service, f"/v1/{path}?model={name}", {"rows": []})
            assert answer.json()["results"] == []


def test_what_is_odd_is_noted(service):
    odd = [row | {"other": 1, "mode": "new", "part": 3} for row in rows(2)]
    notes = " ".join(ask(service, "/v1/score", {"rows": odd}).json()["notes"])
    assert "other" in notes
    assert "new values, which make their rows unusual" in notes


@pytest.mark.parametrize(
    "change",
    [{"pressure": "high"}, {"pressure": True}, {"pressure": 1e999}],
)
def test_rows_that_do_not_fit_are_refused(service, change):
    body = json.dumps({"rows": [row | change for row in rows(1)]}).replace("Infinity", "1e999")
    for path in ("score", "explain"):
        answer = ask(service, f"/v1/{path}", body)
        assert refusal(answer, 422) == "unusable_rows"
        assert "pressure" in answer.json()["error"]["message"]


def test_a_gap_is_judged_by_the_other_columns_and_noted(service):
    gap = [row | {"pressure": None} for row in rows(1)]
    for path in ("score", "explain"):
        answer = ask(service, f"/v1/{path}", {"rows": gap}).json()
        assert answer["results"][0]["is_anomaly"] is False
        assert "pressure: no value" in answer["notes"][0]
        assert "judged by the other columns" in answer["notes"][0]


def test_explanations_add_up(service, model_files):
    frame = with_anomalies().iloc[[16, 17]]
    answer = ask(service, "/v1/explain", frame.to_csv(index=False), headers=CSV)
    expected = load(model_files["plant"]).explain(frame)
    for i, result in enumerate(answer.json()["results"]):
        assert result["score"] == pytest.approx(expected.score[i], abs=1e-9)
        found = {member["name"]: member["contribution"] for member in result["members"]}
        for j, name in enumerate(expected.member_names):
            assert found[name] == pytest.approx(expected.contributions[i, j], abs=1e-6)
        assert {feature["name"] for feature in result["features"]} == set(expected.feature_names)
        total = sum(feature["cost"] for feature in result["features"])
        assert result["reference_score"] - total == pytest.approx(result["score"], abs=1e-6)
        assert result["reason"] == expected.reason(i)
    first = answer.json()["results"][1]["features"][0]
    assert (first["name"], first["value"], first["is_unusual"]) == ("temperature", 60, True)
    assert first["usual"]["low"] < first["usual"]["high"] < 60
    assert "anomaly" in answer.json()["results"][1]["words"]


def test_explanation_of_a_run(service):
    run = sensors("new", 99).drop(columns="file").to_dict("records")
    answer = ask(service, "/v1/explain?model=runs&at=60", {"rows": run})
    (result,) = answer.json()["results"]
    scores = ask(service, "/v1/score?model=runs", {"rows": run}).json()["results"]
    assert result["score"] == pytest.approx(scores[60]["score"], abs=1e-9)
    assert refusal(ask(service, "/v1/explain?at=9", {"rows": rows(2)}), 422) == "bad_argument"


def test_models_are_described(service):
    found = ask(service, "/v1/model").json()
    assert [column["name"] for column in found["columns"]] == ["pressure", "temperature", "mode"]
    assert found["columns"][2]["categories"] == ["off", "on"]
    assert found["kind"] == "rows"
    assert found["card"]["rows"] == 300
    listed = ask(service, "/v1/models").json()["models"]
    assert [model["model"] for model in listed] == ["plant", "array", "runs"]
    assert listed[2]["kind"] == "runs"


def test_errors_have_one_form(service, make_service, monkeypatch, caplog):
    assert refusal(ask(service, "/nothing"), 404) == "not_found"
    assert refusal(ask(service, "/v1/score"), 405) == "wrong_method"
    assert refusal(ask(service, "/v1/score", b"x", headers={"Content-Type": "a/b"}), 415)
    assert refusal(ask(service, "/v1/score", b"x", headers={"Content-Encoding": "gzip"}), 415)
    assert refusal(ask(service, "/v1/explain?at=x", {"rows": []}), 422) == "bad_argument"
    broken = make_service()
    secret = "a value of a row"

    def fail(cells):
        raise RuntimeError(secret)

    monkeypatch.setattr(broken.registry.get("plant").batcher, "_score", fail)
    with caplog.at_level(logging.INFO):
        answer = ask(broken, "/v1/score", {"rows": rows(1)})
    assert refusal(answer, 500) == "internal"
    assert secret not in answer.text
    lines = [
        json.loads(JsonLines().format(record)) for record in caplog.records if _is_ours(record)
    ]
    (told,) = [line for line in lines if line["event"] == "fault"]
    assert told["error"] == "RuntimeError"
    assert told["request"] == answer.headers["x-request-id"]
    assert secret not in json.dumps(lines)
    assert any("test_routes.py" in frame for frame in told["where"])


def _is_ours(record):
    return record.name.startswith("ocfuse")


def test_logs_hold_no_values(service, caplog):
    odd = [row | {"mode": "a-secret-mode", "a-secret-name": 1} for row in rows(1)]
    with caplog.at_level(logging.DEBUG):
        ask(service, "/v1/score", {"rows": odd})
        ask(service, "/v1/score", {"rows": [row | {"pressure": "a-secret"} for row in rows(1)]})
        ask(service, "/v1/score?model=a-secret", {"rows": odd})
        ask(service, "/a-secret", {"rows": odd})
    lines = [
        json.loads(JsonLines().format(record)) for record in caplog.records if _is_ours(record)
    ]
    assert [line["status"] for line in lines] == [200, 422, 404, 404]
    assert [line["route"] for line in lines] == ["/v1/score"] * 3 + ["unknown"]
    assert "secret" not in json.dumps(lines)


def test_events_that_cannot_be_written_are_told(make_service, tmp_path):
    service = make_service(events=tmp_path / "events.db", keep=Retention(events=7))
    assert service.events.keep.events == 7
    assert b"ocfuse_unwritten_events 0.0" in ask(service, "/metrics").content
    service.events._database.connection.execute("PRAGMA max_page_count = 1")
    for time in range(500):
        service.events.begin(Sample("plant", f"line-{time}", 0, float(time), -1.0, 0.0))
        if service.events.trouble is not None:
            break
    assert ask(service, "/readyz").json() == {"status": "ready", "events": "waiting"}
    waiting = service.events.n_unwritten
    assert waiting > 0
    assert f"ocfuse_unwritten_events {waiting}.0".encode() in ask(service, "/metrics").content
    service.events._database.connection.execute("PRAGMA max_page_count = 1000000")


def test_health(make_service):
    service = make_service()
    assert ask(service, "/healthz").json() == {"status": "ok"}
    assert ask(service, "/readyz").json() == {"status": "ready", "events": "written"}
    asyncio.run(service.drain())
    assert refusal(ask(service, "/readyz"), 503) == "not_ready"
    assert ask(service, "/healthz").status_code == 200


def test_rows_of_requests_are_shown_if_asked(make_service):
    service = make_service(publish_scores=True)
    ask(service, "/v1/score", {"rows": rows(3)})
    assert service.live.sources == [("plant", "requests")]
    assert make_service().live.sources == []


def test_too_little_memory_is_the_fault_of_one_request(make_service, monkeypatch):
    service = make_service()
    batcher = service.registry.get("plant").batcher
    score, large = batcher._score, 1e6

    def scored(block):
        if any(cells[0] == large for cells in block):
            raise MemoryError("cannot allocate")
        return score(block)

    monkeypatch.setattr(batcher, "_score", scored)
    (row,) = rows(1)

    async def asked():
        async with client_of(service) as client:
            bodies = [{"rows": [row | {"pressure": p}]} for p in (0.1, large, 0.2)]
            return await asyncio.gather(*(client.post("/v1/score", json=b) for b in bodies))

    first, failed, last = asyncio.run(asked())
    assert (first.status_code, last.status_code) == (200, 200)
    assert refusal(failed, 500) == "internal"
    assert "allocate" not in failed.text
    assert ask(service, "/v1/score", {"rows": [row]}).status_code == 200


def test_usual_rows_do_not_wait_for_long_works(make_service):
    """A load or an explanation takes its time; rows are scored meanwhile."""
    service = make_service(threads=2)

    async def asked():
        release = threading.Event()
        for _ in range(4):
            asyncio.get_running_loop().run_in_executor(service.workers.loading, release.wait, 20)
        async with client_of(service) as client:
            try:
                post = client.post("/v1/score", json={"rows": rows(1)})
                return await asyncio.wait_for(post, 10)
            finally:
                release.set()

    assert asyncio.run(asked()).status_code == 200


@pytest.mark.parametrize("model", ["plant", "array", "runs"])
def test_half_a_character_is_refused_everywhere(service, model):
    half = "\ud800"
    for path in ("score", "explain"):
        for body in (
            {"rows": [{"pressure": half}]},
            {"rows": [{half: 1.0}]},
            {"rows": [[half]]},
            [[1.0, 2.0, half]],
            {half: []},
        ):
            content = json.dumps(body)
            answer = ask(service, f"/v1/{path}?model={model}", content)
            assert refusal(answer, 422) == "broken_text"
    for path in (
        *("/v1/model?model=%ED%A0%80", "/v1/%ED%A0%80", "/v1/events?stream=%ED%A0%80"),
        *("/v1/events.csv?model=%ED%A0%80", "/v1/events/%ED%A0%80/thumbnail", "/static/%ED%A0%80"),
    ):
        assert ask(service, path).status_code < 500
    for body in (b"pressure,\xed\xa0\x80\n1,2\n", b"pressure\n\xed\xa0\x80\n"):
        answer = ask(service, "/v1/score", body, headers={"Content-Type": "text/csv"})
        assert 400 <= answer.status_code < 500


def test_refusals_are_short(service):
    answer = ask(service, "/v1/score", {"rows": [{"x" * 100_000: 1}]})
    assert refusal(answer, 422) == "unusable_rows"
    assert len(answer.text) < 3000


def test_messages_of_others_quote_nothing():
    """asyncio tells what an error says, which may be a value of a row."""
    for text in (
        "Task exception was never retrieved\nfuture: <Task exception=ValueError('a-secret')>",
        "Exception in callback told('a-secret')",
    ):
        record = logging.LogRecord("asyncio", logging.ERROR, "", 0, text, (), None)
        line = json.loads(JsonLines().format(record))
        assert "secret" not in str(line)
        assert line["event"] == text.partition("\n")[0].partition("(")[0]
