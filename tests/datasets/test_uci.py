"""The ten UCI sets: values, the archive's own formats, and where files come from."""

import csv
import dataclasses
import hashlib
import re
import socket

import numpy as np
import pytest
from sklearn.datasets import load_iris

from ocfuse.datasets import find, load_uci, locate, uci
from ocfuse.datasets.formats import content_sha256
from ocfuse.datasets.uci import UCI_SETS
from ocfuse.exceptions import DatasetError, DatasetUnavailableError, InvalidInputError
from tests.datasets.conftest import archive_text, zipped

NAMES = list(UCI_SETS)

#: SHA-256 and line ends of the archive's own files, as public projects that download them
#: state it. The file of "breastw" has numbers of its own in each row, which no copy here has.
ARCHIVED = {
    "banknotes": ("d0539aaed2139ba7a587b3e34fb345ce503ff7d5d33dbf9912d8e195ce425cb9", "\r\n", ""),
    "ionosphere": (
        "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd",
        "\n",
        "\n",
    ),
    "voting": ("c87c14110a5ba91d4a1e313ec7392824458152bf071fa5f5452340488337936e", "\n", "\n"),
    "glass": ("dd67373f4baf2807345df02cbfef2093d342e61ad0d82a4fb79af43ef8ce449d", "\n", "\n"),
    "iris": ("6f608b71a7317216319b4d27b4d9bc84e6abd734eda7872b71a458569e2656c0", "\n", "\n\n"),
    "wine": ("6be6b1203f3d51df0b553a70e57b8a723cd405683958204f96d23d7cd6aea659", "\n", "\n"),
    "australian": (
        "3abe5af151afa50b999a9ba21cbc884e80d80a4050b716cf88b34a2e6ecb731c",
        "\n",
        "\n",
    ),
    "haberman": ("b4b7a32586a5668f9f4d6dc8be9d1bc8cd4822523affb1f6b5bfc350681ef3e2", "\n", "\n"),
    "hepatitis": ("9971f9d18abb4fc9dd6749eefb0f864b36fa7bdd59f54188c0b148a5c28214bc", "\n", "\n"),
}


@pytest.mark.parametrize("name", NAMES)
def test_set_is_what_its_entry_says(data, name):
    dataset, info = load_uci(name), find(name)
    assert dataset.about == info
    assert dataset.X.shape == (info.n_rows, info.n_features)
    assert dataset.X.dtype == np.float64
    assert len(dataset.feature_names) == info.n_features
    assert set(dataset.y.tolist()) == {1, -1}
    assert (dataset.y == 1).sum() == info.n_normals
    np.testing.assert_array_equal(dataset.y == 1, dataset.labels == info.normal_class)
    assert np.isnan(dataset.X).any() == (info.imputation.startswith("gaps are NaN"))


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_file(data, name):
    dataset = load_uci(name)
    answers = {"y": "1", "n": "0", "": "0.5" if name == "voting" else "nan"}
    with open(data / "uci" / UCI_SETS[name].csv_name, newline="") as file:
        rows = list(csv.reader(file))
    expected = [[float(answers.get(value, value)) for value in row[:-1]] for row in rows[1:]]
    np.testing.assert_array_equal(dataset.X, expected)
    assert rows[0] == [*dataset.feature_names, "label"]


def test_gaps(data):
    gaps = {name: int(np.isnan(load_uci(name).X).sum()) for name in ("breastw", "hepatitis")}
    assert gaps == {"breastw": 16, "hepatitis": 167}


@pytest.mark.parametrize("name", NAMES)
def test_archived_form_has_the_same_content(data, folder, name):
    uci_set = UCI_SETS[name]
    (folder / "uci" / uci_set.member).write_text(archive_text(data, name) + "\n\n")
    again = load_uci(name)
    assert locate(name) == str(folder / "uci" / uci_set.member)
    (folder / "uci" / uci_set.archive).write_bytes(
        zipped({"Index": "x", f"sub/{uci_set.member}": archive_text(data, name)})
    )
    (folder / "uci" / uci_set.member).unlink()
    zipped_again = load_uci(name)
    np.testing.assert_array_equal(again.X, zipped_again.X)
    np.testing.assert_array_equal(again.y, zipped_again.y)


@pytest.mark.parametrize("name", ARCHIVED)
def test_archived_form_is_the_archives_file_to_the_byte(data, name):
    sha256, line_end, file_end = ARCHIVED[name]
    text = archive_text(data, name).replace("\n", line_end) + file_end
    assert hashlib.sha256(text.encode()).hexdigest() == sha256


#: A few rows as the archive writes them, and what they mean.
SAMPLES = {
    "banknotes": (
        "3.6216,8.6661,-2.8073,-0.44699,0\r\n-1.5,2,0.1,1e-1,1\r\n",
        [[3.6216, 8.6661, -2.8073, -0.44699], [-1.5, 2, 0.1, 0.1]],
        ["0", "1"],
    ),
    "ionosphere": (
        ",".join(["1", "0"] * 17) + ",g\n" + ",".join(["0.5"] * 34) + ",b\n",
        [[1, 0] * 17, [0.5] * 34],
        ["good", "bad"],
    ),
    "voting": (
        "republican,n,y,?" + ",y" * 13 + "\ndemocrat" + ",n" * 16 + "\n",
        [[0, 1, np.nan, *[1] * 13], [0] * 16],
        ["republican", "democrat"],
    ),
    "glass": (
        "1,1.52101,13.64,4.49,1.10,71.78,0.06,8.75,0.00,0.00,1\n"
        "71,1.5,13,3.5,1,72,.5,8,0,0.1,2\n214,1,2,3,4,5,6,7,8,9,7",
        [
            [1.52101, 13.64, 4.49, 1.1, 71.78, 0.06, 8.75, 0, 0],
            [1.5, 13, 3.5, 1, 72, 0.5, 8, 0, 0.1],
            list(range(1, 10)),
        ],
        [
            "building_windows_float_processed",
            "building_windows_non_float_processed",
            "headlamps",
        ],
    ),
    "iris": (
        "5.1,3.5,1.4,0.2,Iris-setosa\n6,3,4.8,1.8,Iris-virginica\n\n",
        [[5.1, 3.5, 1.4, 0.2], [6, 3, 4.8, 1.8]],
        ["Iris-setosa", "Iris-virginica"],
    ),
    "breastw": (
        "1000025,5,1,1,1,2,1,3,1,1,2\n1057013,8,4,5,1,2,?,7,3,1,4\n",
        [[5, 1, 1, 1, 2, 1, 3, 1, 1], [8, 4, 5, 1, 2, np.nan, 7, 3, 1]],
        ["benign", "malignant"],
    ),
    "wine": (
        "1,14.23,1.71,2.43,15.6,127,2.8,3.06,.28,2.29,5.64,1.04,3.92,1065\n",
        [[14.23, 1.71, 2.43, 15.6, 127, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065]],
        ["1"],
    ),
    "australian": (
        "1 22.08 11.46 2 4 4 1.585 0 0 0 1 2 100 1213 0\n"
        "0 29.58 1.75 1 4 4 1.25 0 0 0 1 2 280 1 1 \n",
        [
            [1, 22.08, 11.46, 2, 4, 4, 1.585, 0, 0, 0, 1, 2, 100, 1213],
            [0, 29.58, 1.75, 1, 4, 4, 1.25, 0, 0, 0, 1, 2, 280, 1],
        ],
        ["0", "1"],
    ),
    "haberman": (
        "30,64,1,1\n34,59,0,2\n",
        [[30, 64, 1], [34, 59, 0]],
        ["survived_5_years_or_longer", "died_within_5_years"],
    ),
    "hepatitis": (
        "2,30,2,1,2,2,2,2,1,2,2,2,2,2,1.00,85,18,4.0,?,1\n"
        "1,51,1,1,2,1,2,1,2,2,1,1,2,2,?,?,?,?,?,1\n",
        [
            [30, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 1, 85, 18, 4, np.nan, 1],
            [51, 1, 1, 2, 1, 2, 1, 2, 2, 1, 1, 2, 2, *[np.nan] * 5, 1],
        ],
        ["live", "die"],
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_archived_format(tmp_path, name):
    text, values, labels = SAMPLES[name]
    sha256 = content_sha256([(np.array(values, dtype=float), labels)])
    sample = dataclasses.replace(UCI_SETS[name], sha256=sha256)
    path = tmp_path / sample.member
    path.write_bytes(text.encode())
    X, read_labels = uci.read_uci(sample, path)
    np.testing.assert_array_equal(X, values)
    assert read_labels == labels


@pytest.mark.parametrize("given", ["wine", "D7", "d7", "uci/wine", "WINE"])
def test_names(given):
    assert load_uci(given).name == "uci/wine"


@pytest.mark.parametrize(
    ("given", "close"),
    [
        ("banknote", "banknotes"),
        ("irsi", "iris"),
        ("D11", "'D1' .*D1 to D10"),
        ("D99", "D1 to D10"),
        ("wein", "wine"),
        ("xyzzy", "banknotes, ionosphere"),
    ],
)
def test_unknown_name_suggests_close_ones(given, close):
    with pytest.raises(InvalidInputError, match=rf"Got '{given}'.*{close}"):
        load_uci(given)


def test_wine_comes_from_scikit_learn_if_no_file_is_here(data, folder, monkeypatch):
    assert locate("wine") == "scikit-learn"
    copy = load_uci("wine")
    monkeypatch.setenv("OCFUSE_DATA", str(data))
    np.testing.assert_array_equal(copy.X, load_uci("wine").X)


def test_iris_of_scikit_learn_is_another_set(data):
    X, target = load_iris(return_X_y=True)
    differ = np.flatnonzero((load_uci("iris").X != X).any(axis=1))
    assert differ.tolist() == [34, 37]
    assert target[differ].tolist() == [0, 0]


def test_download_is_verified_cached_and_read_offline(data, folder, server, monkeypatch):
    uci_set = _served(server, monkeypatch, "iris")
    server.body = zipped({uci_set.member: archive_text(data, "iris")})
    assert locate("iris") is None
    np.testing.assert_array_equal(load_uci("iris").X[0], [5.1, 3.5, 1.4, 0.2])
    assert locate("iris") == str(folder.parent / "cache" / "uci" / "iris.zip")
    load_uci("iris")
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind", ["changed value", "changed order", "missing row", "web page"])
def test_wrong_download_is_refused(data, folder, server, monkeypatch, kind):
    uci_set = _served(server, monkeypatch, "iris")
    lines = archive_text(data, "iris").split("\n")
    wrong = {
        "changed value": ["5.2,3.5,1.4,0.2,Iris-setosa", *lines[1:]],
        "changed order": [*lines[1:], lines[0]],
        "missing row": lines[1:],
        "web page": ["<html>", "Please log in", "</html>"],
    }[kind]
    server.body = zipped({uci_set.member: "\n".join(wrong)})
    reason = "must have 5 values. Got 1" if kind == "web page" else uci_set.sha256
    with pytest.raises(DatasetError, match=rf"sent was removed.*{reason}"):
        load_uci("iris")
    assert list((folder.parent / "cache" / "uci").iterdir()) == []


def test_offline_error_says_how_to_supply_the_file(folder, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.setattr("ocfuse.datasets.uci.ARCHIVE", address)
        with pytest.raises(DatasetUnavailableError) as caught:
            load_uci("glass")
    message = str(caught.value)
    assert "uci/glass is not here" in message
    assert f"{address}/static/public/42/glass+identification.zip cannot be reached" in message
    assert f"put it at {folder / 'uci' / 'glass+identification.zip'}" in message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("D9_haberman.csv", "", "empty file"),
        ("D9_haberman.csv", "a,b\n1,2\n", "must start with the line age,operation_year"),
        (
            "D9_haberman.csv",
            "age,operation_year,positive_axillary_nodes,label\n1,2,3\n",
            "must have 4 values. Got 3 in row 1",
        ),
        ("haberman.data", "", "Got an empty file"),
        ("haberman.data", "30,64,one,1\n", "'positive_axillary_nodes' .* Got 'one' in row 1"),
        ("haberman.data", "30,64,1,1\n", "Expected content with SHA-256 .* Got [0-9a-f]{64}"),
        ("haberman+s+survival.zip", "PK broken \xff", "nor a whole zip archive"),
    ],
)
def test_bad_file(folder, name, text, message):
    (folder / "uci" / name).write_text(text, encoding="latin-1")
    with pytest.raises(DatasetError, match=message):
        load_uci("haberman")


def test_damaged_archive(folder):
    content = bytearray(zipped({"haberman.data": "30,64,1,1\n" * 9}))
    content[50] ^= 255  # in the rows: the checksum of the archive tells
    (folder / "uci" / "haberman+s+survival.zip").write_bytes(content)
    with pytest.raises(DatasetError, match=r"haberman\+s\+survival.zip cannot be read: Bad CRC"):
        load_uci("haberman")


@pytest.mark.parametrize("name", NAMES)
def test_notes_count_the_duplicates(data, name):
    dataset = load_uci(name)
    count = len(dataset.X) - len(np.unique(np.nan_to_num(dataset.X, nan=-1e9), axis=0))
    counted = re.search(r"(\d+) rows? (?:is a|are) duplicate", dataset.about.notes)
    assert int(counted[1] if counted else 0) == count


def test_archive_without_the_member(folder):
    (folder / "uci" / "haberman+s+survival.zip").write_bytes(zipped({"other.data": "1"}))
    with pytest.raises(DatasetError, match=r"must hold the file haberman.data. It holds other"):
        load_uci("haberman")


def _served(server, monkeypatch, name):
    """Let a set come from the test's server."""
    address = server.url("").rstrip("/")
    monkeypatch.setattr("ocfuse.datasets.uci.ARCHIVE", address)
    return UCI_SETS[name]
