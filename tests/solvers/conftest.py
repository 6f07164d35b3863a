"""The two switches that most solver tests run through."""

import pytest


@pytest.fixture(params=[False, True], ids=["signed", "nonneg"])
def nonneg(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["mixed", "pure"])
def pure(request):
    return request.param
