import pytest

from ocfuse.tables.dataframes import free_name


@pytest.mark.parametrize(
    ("taken", "expected"),
    [([], "row"), (["rows"], "row"), (["row"], "row_2"), (["row", "row_2"], "row_3")],
)
def test_free_names(taken, expected):
    assert free_name("row", taken) == expected
