"""The figures of `make check` count what they say, and fail where one is beyond its limit."""

import textwrap

import pytest

from supply import figures

FILES = {
    "__init__.py": '"""Root."""\n\nfrom pack.a import A\n',
    "a.py": """
        from typing import TypeVar

        from pack.part import helper
        from pack.sub import names

        T = TypeVar("T")
        ONE = 1
        _TWO: int = 2
        THREE, FOUR = 3, 4
        lower = 5
        FloatArray = list


        class A:
            INNER = 6
    """,
    "part.py": "from pack.sub.names import A as helper\n",
    "sub/__init__.py": "",
    "sub/a.py": "",
    "sub/names.py": "class A: ...\n",
}


@pytest.fixture
def modules(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return figures.read_modules(tmp_path / "pack")


def test_counts(modules):
    found = {figure.name: figure for figure in figures.figures(modules)}
    assert found["files"].value == len(FILES)
    assert found["source lines"].value == sum(
        len(textwrap.dedent(text).splitlines()) for text in FILES.values()
    )
    # of a package's own module, and of modules in other folders, nothing is said
    assert found["modules with a single importer, a sibling"].where == ("pack.part",)
    assert found["module names used twice"].where == ("a",)
    assert found["class names used twice"].where == ("A",)
    assert found["module constants, pairs too"].value == 4
    assert found["definitions of FloatArray"].where == ("pack.a",)
    assert found["files of cli"].value == 0


@pytest.mark.parametrize(("value", "code", "mark"), [(3, 0, ""), (4, 1, " too many a b")])
def test_a_figure_beyond_its_limit_fails(value, code, mark, monkeypatch, capsys):
    figure = figures.Figure("things", value, 3, ("a", "b"))
    monkeypatch.setattr(figures, "figures", lambda modules: [figure])
    assert figures.main() == code
    assert capsys.readouterr().out == f"{'things':42} {value:7,} (at most 3){mark}\n"
