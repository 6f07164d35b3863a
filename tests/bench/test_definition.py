"""Keys: code counts, comments and docstrings do not."""

import numpy as np

from ocfuse.lab.paper import runner
from ocfuse.lab.paper.runner import (
    PACKAGE,
    code_digest,
    data_digest,
    definition_key,
    package_sources,
)

CODE = '"""Words."""\n\n\ndef f(x):\n    """Add one."""\n    return x + 1  # why\n'


def digest_of(tmp_path, text):
    path = tmp_path / "code.py"
    path.write_text(text)
    runner._source.cache_clear()
    return code_digest([path])


def test_words_do_not_count_but_code_does(tmp_path):
    before = digest_of(tmp_path, CODE)
    assert digest_of(tmp_path, CODE.replace("Add one", "Add 1").replace("why", "how")) == before
    assert digest_of(tmp_path, CODE.replace("x + 1", "x + 2")) != before


def test_order_of_files_does_not_count(tmp_path):
    for name in ("a.py", "b.cpp"):
        (tmp_path / name).write_text(f"x = '{name}'")
    paths = [tmp_path / "a.py", tmp_path / "b.cpp"]
    assert code_digest(paths) == code_digest(paths[::-1])
    assert code_digest(paths) != code_digest(paths[:1])


def test_parts_of_a_key_do_not_run_together():
    assert definition_key("ab", "c") != definition_key("a", "bc")


def test_package_has_what_scores_and_not_what_tells():
    names = {path.relative_to(PACKAGE).as_posix() for path in package_sources()}
    assert {"fusion/local.py", "detectors/kpca.py", "metrics.py"} <= names
    assert not any(name.startswith(("bench/", "cli/", "datasets/", "stats/")) for name in names)
    assert any(name.endswith(".cpp") for name in names)
    some = package_sources(["detectors", "metrics.py"])
    assert {path.relative_to(PACKAGE).parts[0] for path in some} == {"detectors", "metrics.py"}


def test_digest_of_data_is_that_of_the_values():
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, 1, -1])
    assert data_digest(X, y) == data_digest(np.asfortranarray(X), np.repeat(y, 2)[::2])
    assert data_digest(X, y) != data_digest(X, -y)
    assert data_digest(X, y) != data_digest(X[::-1], y)
