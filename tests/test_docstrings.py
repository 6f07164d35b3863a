"""Docstrings of the names in `__all__` document every parameter and field.

That of a package says in three sentences what it is for and what it must not know. The form
of all docstrings is checked by `numpydoc lint` in `make check`.
"""

import ast
import dataclasses
import inspect
import re
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate
from sklearn.base import BaseEstimator

import ocfuse
import ocfuse.compare
import ocfuse.metrics
import ocfuse.mlflow
import ocfuse.plot
import ocfuse.vision.trials
from tests.test_public_names import PACKAGES

ROOT = Path(ocfuse.__file__).parent
FOLDERS = sorted(path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("__init__.py"))
#: Public modules that no package gathers.
MODULES = [ocfuse.compare, ocfuse.metrics, ocfuse.mlflow, ocfuse.plot, ocfuse.vision.trials]
OBJECTS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in [*PACKAGES, *MODULES]
    for name in module.__all__
    if not name.startswith("_")
}
FUNCTIONS = [name for name, value in OBJECTS.items() if inspect.isfunction(value)]
ESTIMATORS = [
    name
    for name, value in OBJECTS.items()
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]
RECORDS = [name for name, value in OBJECTS.items() if dataclasses.is_dataclass(value)]

#: Undocumented, unknown or misplaced parameters, without type or description;
#: a return value that is not described.
SIGNATURE = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_documents_its_signature(name):
    errors = validate(name)["errors"]
    assert [message for code, message in errors if code in SIGNATURE] == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator_documents_its_parameters(name):
    document = NumpyDocString(inspect.getdoc(OBJECTS[name]))
    documented = [
        part.strip() for entry in document["Parameters"] for part in entry.name.split(",")
    ]
    assert documented == [
        parameter
        for parameter in inspect.signature(OBJECTS[name].__init__).parameters
        if parameter not in ("self", "args", "kwargs")
    ]


@pytest.mark.parametrize("name", RECORDS)
def test_record_documents_its_fields(name):
    document = NumpyDocString(inspect.getdoc(OBJECTS[name]))
    entries = document["Attributes"] or document["Parameters"]
    documented = [part.strip() for entry in entries for part in entry.name.split(",")]
    assert documented == [field.name for field in dataclasses.fields(OBJECTS[name])]


@pytest.mark.parametrize("folder", FOLDERS)
def test_package_says_what_it_is_for_and_must_not_know(folder):
    text = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
    document = " ".join((ast.get_docstring(ast.parse(text)) or "").split())
    sentences = re.findall(r"\.(?= |$)", document)
    assert len(sentences) == 3
    assert "must not" in document
