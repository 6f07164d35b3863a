"""scikit-learn is imported without packages that it hardly uses, and works as ever."""

import subprocess
import sys

import pytest

from ocfuse.cli import early

START = "import sys; from ocfuse.cli.early import HARDLY_USED, import_early; import_early(); "


def outcome(code):
    """Return what code prints in a Python of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_nothing_is_left_of_what_stood_in():
    code = START + (
        "import numpy, scipy; "
        "print(*[name in sys.modules for name in HARDLY_USED], "
        "*['stats' in vars(scipy), 'f2py' in vars(numpy), 'testing' in vars(numpy)])"
    )
    assert outcome(code) == ["False"] * 7


@pytest.mark.slow
def test_packages_are_themselves_when_they_are_used():
    code = START + (
        "import numpy, pandas, scipy, scipy.stats; "
        "from scipy.stats import rankdata; "
        "print(scipy.stats.rankdata is rankdata, sys.modules['scipy.stats'] is scipy.stats, "
        "hasattr(numpy.testing, 'assert_allclose'), type(scipy.stats) is type(sys), "
        "type(pandas) is type(sys))"
    )
    assert outcome(code) == ["True"] * 5


@pytest.mark.slow
def test_scikit_learn_finds_what_it_was_not_given():
    code = START + (
        "import pandas as pd; "
        "from sklearn.impute import SimpleImputer; "
        "X = pd.DataFrame({'a': [1.0, 2.0, 2.0, float('nan')]}); "
        "fitted = SimpleImputer(strategy='most_frequent').set_output(transform='pandas').fit(X); "
        "print(*fitted.feature_names_in_, *fitted.transform(X)['a'])"
    )
    assert outcome(code) == ["a", "1.0", "2.0", "2.0", "2.0"]


def test_what_is_asked_for_at_once_is_imported_at_once(monkeypatch, tmp_path):
    (tmp_path / "asked_at_once.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    stand_in = early._Later("asked_at_once")
    stand_in.step_in()
    assert sys.modules["asked_at_once"] is stand_in
    assert stand_in.answer == 42
    assert sys.modules["asked_at_once"] is not stand_in
    monkeypatch.delitem(sys.modules, "asked_at_once")


def test_an_import_that_fails_leaves_nothing_behind():
    code = (
        "import sys; sys.modules['sklearn.base'] = None\n"
        "from ocfuse.cli.early import HARDLY_USED, import_early\n"
        "try: import_early()\n"
        "except ImportError: print(*[name in sys.modules for name in HARDLY_USED])"
    )
    assert outcome(code) == ["False"] * 4


@pytest.mark.slow
def test_what_is_not_installed_is_not_stood_in_for():
    code = (
        "import sys; sys.modules['pandas'] = None; from ocfuse.cli.early import import_early; "
        "import_early(); import sklearn.base; print(sys.modules['pandas'])"
    )
    assert outcome(code) == ["None"]


def test_the_collector_works_again_afterwards_and_leaves_modules_alone():
    code = "import gc; " + START.replace("import_early()", "import_early('ocfuse.tables')")
    assert outcome(code + "print(gc.isenabled(), gc.get_freeze_count() > 10_000)") == ["True"] * 2


def test_an_import_that_fails_leaves_the_collector_at_work():
    code = (
        "import gc\nfrom ocfuse.cli.early import import_early\n"
        "try: import_early('no_such_module')\n"
        "except ImportError: print(gc.isenabled())"
    )
    assert outcome(code) == ["True"]
