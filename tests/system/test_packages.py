import pytest

from ocfuse.exceptions import MissingPackageError
from ocfuse.system.packages import needed, slow


def test_a_package_that_is_there():
    assert needed("json.decoder", "to read").JSONDecoder


def test_a_package_that_is_missing_names_its_extra():
    with pytest.raises(MissingPackageError) as raised:
        needed("no_such_package.part", "to draw", extra="video")
    assert str(raised.value) == (
        "no_such_package is needed to draw. Install it with: pip install 'ocfuse[video]'"
    )


def test_a_package_that_takes_long_is_imported_when_asked_for():
    assert slow("json.decoder").JSONDecoder
