"""The documentation of the service is true: examples of it, and what it does not foresee."""

import warnings

import pytest
from hypothesis import HealthCheck, Phase, settings

from ocfuse.serve.app import create_app
from ocfuse.serve.settings import Limits, Settings
from tests.serve.asking import ASKED, ask

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis

#: Requests of each operation.
EXAMPLES = 12


def made(model_files, token):
    return create_app(Settings(model_files, token=token, limits=Limits(seconds=10)))


@pytest.fixture(scope="module")
def open_service(model_files):
    service = made(model_files, None)
    yield service
    service.close()


@pytest.fixture(scope="module")
def guarded(model_files):
    service = made(model_files, ASKED)
    yield service
    service.close()


@pytest.fixture
def open_schema(open_service):
    return schemathesis.openapi.from_asgi(
        "/openapi.json", open_service, base_url="http://localhost"
    )


schema = schemathesis.pytest.from_fixture("open_schema")
few = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schema.parametrize()
@few
def test_answers_are_those_that_are_documented(case):
    case.call_and_validate(headers={"Host": "localhost"})


def test_every_operation_needs_the_token(guarded):
    document = ask(guarded, "/openapi.json", headers={"Authorization": f"Bearer {ASKED}"}).json()
    open_paths = {"/healthz", "/readyz"}
    for path, operations in document["paths"].items():
        for method in operations:
            answer = ask(guarded, path.replace("{number}", "1"), method=method.upper())
            assert (answer.status_code == 401) == (path not in open_paths), path


def test_examples_are_documented(open_service):
    document = ask(open_service, "/openapi.json").json()
    body = document["paths"]["/v1/score"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "text/csv", "application/vnd.apache.arrow.stream"}
    assert body["application/json"]["examples"]
    assert "example" in str(document["paths"]["/v1/score"]["post"]["responses"]["200"])
