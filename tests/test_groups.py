"""Groups: labels become numbers, and what is no label per row is refused."""

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError, InvalidTypeError
from ocfuse.groups import Groups, check_groups


def test_labels_become_numbers():
    np.testing.assert_array_equal(check_groups(["b", "a", "b"], 3).label, [1, 0, 1])


def test_groups_stay_as_they_are():
    groups = Groups(np.array([4, 4, 7]), name="run")
    assert check_groups(groups, 3) is groups


@pytest.mark.parametrize("groups", [[1, 2], Groups(np.array([1, 2]))])
def test_one_label_per_row(groups):
    with pytest.raises(InvalidInputError, match=r"shape \(3,\). Got shape \(2,\)"):
        check_groups(groups, 3)


def test_labels_of_several_kinds_are_refused():
    with pytest.raises(InvalidTypeError, match="Got a mixture"):
        check_groups(np.array(["a", 1, None], dtype=object), 3)


def test_a_threshold_counts_groups_unless_they_are_folds():
    label = np.array([0, 0, 1])
    np.testing.assert_array_equal(Groups(label).counted, label)
    assert Groups(label, are_folds=True).counted is None
