"""The documentation of the service is true: examples of it, and what it does not foresee."""

import warnings
from contextlib import suppress
from unittest import SkipTest

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from ocfuse.serve.app import create_app
from ocfuse.serve.settings import Settings
from tests.serve.asking import ASKED, ask

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

OPEN_PATHS = {"/healthz", "/readyz"}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def open_service(service):
    return door(service)


@pytest.fixture(scope="module")
def guarded(model_files):
    service = create_app(Settings(model_files, token=ASKED))
    yield door(service)
    service.close()


def door(service):
    """Return a service that goes on when a client thinks that it has ended."""

    async def app(scope, receive, send):
        if scope["type"] != "lifespan":
            return await service(scope, receive, send)
        for word in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{word}.complete"})

    return app


few = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(GenerationMode), ids=lambda kind: kind.value)
def test_answers_are_those_that_are_documented(open_service, kind):
    """Of all routes, for requests as documented and for others."""
    seen = tried(open_service, {}, kind, 5)
    assert {path for path, _ in seen} >= {"/v1/score", "/v1/explain", "/v1/model", "/v1/events"}
    assert not {status for _, status in seen} & {401, 403, 421, 500}


@pytest.mark.slow
def test_answers_with_and_without_the_token(guarded):
    right = {"Authorization": f"Bearer {ASKED}"}
    seen = tried(guarded, right, GenerationMode.POSITIVE, 3)
    assert 200 in {status for _, status in seen}
    assert 401 not in {status for _, status in seen}
    for wrong in ({}, {"Authorization": "Bearer wrong"}):
        seen = tried(guarded, wrong, GenerationMode.POSITIVE, 2, right)
        assert {status for path, status in seen if path not in OPEN_PATHS} == {401}


def tried(app, headers, kind, examples, to_load=None):
    """Try all operations; return paths and statuses."""
    host = {"Host": "localhost"}
    loaded = host | (headers if to_load is None else to_load)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=loaded)
    seen = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        with suppress(Unsatisfiable, SkipTest):  # there is no other request without arguments

            @given(case=operation.as_strategy(generation_mode=kind))
            @settings(few, max_examples=examples)
            def check(case):
                answer = case.call_and_validate(headers=host | headers, checks=CHECKS)
                assert "Traceback" not in answer.text
                seen.add((case.path, answer.status_code))

            check()
    return seen


def test_every_operation_needs_the_token(guarded):
    document = ask(guarded, "/openapi.json", headers={"Authorization": f"Bearer {ASKED}"}).json()
    for path, operations in document["paths"].items():
        for method in operations:
            answer = ask(guarded, path.replace("{number}", "1"), method=method.upper())
            assert (answer.status_code == 401) == (path not in OPEN_PATHS), path


def test_examples_are_documented(open_service):
    document = ask(open_service, "/openapi.json").json()
    body = document["paths"]["/v1/score"]["post"]["requestBody"]["content"]
    assert set(body) >= {"application/json", "text/csv", "application/vnd.apache.arrow.stream"}
    assert body["application/json"]["examples"]
    answer = document["paths"]["/v1/score"]["post"]["responses"]["200"]
    name = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert "example" in document["components"]["schemas"][name]
