"""Load the ten UCI sets of the paper, and what is known about each.

Normal classes, encoding and gaps are those that the row counts of the paper
and its columns for LOF and isolation forest speak for.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray
from ocfuse.datasets.dataset import Dataset, DatasetInfo, signs
from ocfuse.datasets.formats import content_sha256, numbers, read_text, require_content
from ocfuse.datasets.store import StoredFile
from ocfuse.exceptions import DatasetError, unknown_name
from ocfuse.system.packages import slow

Rows = tuple[FloatArray, list[str]]

ARCHIVE = "https://archive.ics.uci.edu"
#: Imputation of sets with gaps.
MEDIAN = "gaps are NaN; fill them by the medians of the training normals"


@dataclass(frozen=True, kw_only=True)
class UciSet:
    """A set of the UCI archive: what it is, and the format of its files.

    Parameters
    ----------
    paper_id, name, title : str
        D1 to D10; our name; the archive's name.
    creators, doi : str
        For the citation.
    uci_id : int
        Number in the archive.
    archive, member : str
        Zip file there, and the file in it that holds the rows.
    sha256 : str
        Checksum of the content.
    normal_class : str
        Class that counts as normal.
    n_rows, n_normals : int
        Number of rows, and of normal rows.
    feature_names : tuple of str
        Columns, without the class.
    delimiter : str or None
        What separates values in the archive's file; None for white space.
    has_id : bool
        Whether each of its rows starts with a number of its own, which is dropped.
    label_first : bool
        Whether the class comes before the values there.
    classes : mapping
        Words for its codes of the classes; others stay as they are.
    answers : mapping
        Numbers for words among the values.
    gap : float
        What a gap becomes.
    encoding, imputation, notes : str
        Texts of the registry.
    """

    paper_id: str
    name: str
    title: str
    creators: str
    doi: str
    uci_id: int
    archive: str
    member: str
    sha256: str
    normal_class: str
    n_rows: int
    n_normals: int
    feature_names: tuple[str, ...]
    delimiter: str | None = ","
    has_id: bool = False
    label_first: bool = False
    classes: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    gap: float = np.nan
    encoding: str = "numbers as they are"
    imputation: str = "no gaps"
    notes: str = ""

    @property
    def csv_name(self) -> str:
        """Name of the table with a header line, in a folder of the user's."""
        return f"{self.paper_id}_{self.name}.csv"

    @property
    def url(self) -> str:
        """Address of the zip file."""
        return f"{ARCHIVE}/static/public/{self.uci_id}/{self.archive}"

    @property
    def info(self) -> DatasetInfo:
        """Entry of the registry."""
        return DatasetInfo(
            name=f"uci/{self.name}",
            title=self.title,
            kind="table",
            source=f"{ARCHIVE}/dataset/{self.uci_id}",
            licence="CC BY 4.0",
            citation=f"{self.creators}. {self.title}. UCI Machine Learning Repository. "
            f"https://doi.org/{self.doi}",
            normal_class=self.normal_class,
            n_rows=self.n_rows,
            n_normals=self.n_normals,
            n_features=len(self.feature_names),
            encoding=self.encoding,
            imputation=self.imputation,
            paper_id=self.paper_id,
            sha256=self.sha256,
            notes=self.notes,
        )


_ALL = (
    UciSet(
        paper_id="D1",
        name="banknotes",
        title="Banknote Authentication",
        creators="Lohweg, V. (2012)",
        doi="10.24432/C55P57",
        uci_id=267,
        archive="banknote+authentication.zip",
        member="data_banknote_authentication.txt",
        sha256="935c78bcdb0ffa90245729633dd5ad3ef6978c1f59980a9c084085764231827b",
        normal_class="0",
        n_rows=1372,
        n_normals=762,
        feature_names=("variance", "skewness", "curtosis", "entropy"),
        notes="24 rows are duplicates.",
    ),
    UciSet(
        paper_id="D2",
        name="ionosphere",
        title="Ionosphere",
        creators="Sigillito, V., Wing, S., Hutton, L. and Baker, K. (1989)",
        doi="10.24432/C5W01B",
        uci_id=52,
        archive="ionosphere.zip",
        member="ionosphere.data",
        sha256="60d9c47763b39cd104f13ed62794d6fb53df15253f5706d2d0bd2df503e87514",
        normal_class="good",
        n_rows=351,
        n_normals=225,
        feature_names=tuple(f"V{i}" for i in range(1, 35)),
        classes={"g": "good", "b": "bad"},
        notes="The second column is constant. 1 row is a duplicate.",
    ),
    UciSet(
        paper_id="D3",
        name="voting",
        title="Congressional Voting Records",
        creators="UCI (1987)",
        doi="10.24432/C5C01P",
        uci_id=105,
        archive="congressional+voting+records.zip",
        member="house-votes-84.data",
        sha256="e4bade24ae9da2d5efb4441a02ba79e77b3eb8f4f62303caf7cf377d030a283c",
        normal_class="democrat",
        n_rows=435,
        n_normals=267,
        feature_names=(
            "handicapped_infants",
            "water_project_cost_sharing",
            "adoption_of_the_budget_resolution",
            "physician_fee_freeze",
            "el_salvador_aid",
            "religious_groups_in_schools",
            "anti_satellite_test_ban",
            "aid_to_nicaraguan_contras",
            "mx_missile",
            "immigration",
            "synfuels_corporation_cutback",
            "education_spending",
            "superfund_right_to_sue",
            "crime",
            "duty_free_exports",
            "export_administration_act_south_africa",
        ),
        label_first=True,
        answers={"y": "1", "n": "0"},
        gap=0.5,
        encoding="y = 1, n = 0, no position = 0.5",
        imputation="none: no position is a third answer",
        notes="392 answers are 'no position'. 93 rows are duplicates.",
    ),
    UciSet(
        paper_id="D4",
        name="glass",
        title="Glass Identification",
        creators="German, B. (1987)",
        doi="10.24432/C5WW2P",
        uci_id=42,
        archive="glass+identification.zip",
        member="glass.data",
        sha256="2a6d40d2940d0578a7331d860b977468da7c258324ed4c1ad3e24cacb186eb3b",
        normal_class="building_windows_non_float_processed",
        n_rows=214,
        n_normals=76,
        feature_names=("RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"),
        has_id=True,
        classes={
            "1": "building_windows_float_processed",
            "2": "building_windows_non_float_processed",
            "3": "vehicle_windows_float_processed",
            "5": "containers",
            "6": "tableware",
            "7": "headlamps",
        },
        notes="The figures of the paper on this set cannot be reproduced: do not calibrate on it. "
        "1 row is a duplicate.",
    ),
    UciSet(
        paper_id="D5",
        name="iris",
        title="Iris",
        creators="Fisher, R. A. (1936)",
        doi="10.24432/C56C76",
        uci_id=53,
        archive="iris.zip",
        member="iris.data",
        sha256="596ffd580471ca4d4880f8e439c7281f3b50d8249a5960353cb200b1490f63a0",
        normal_class="Iris-virginica",
        n_rows=150,
        n_normals=50,
        feature_names=("sepal_length", "sepal_width", "petal_length", "petal_width"),
        notes="The paper does not name the species; virginica fits its LOF and isolation forest "
        "columns. The copy of scikit-learn differs in two setosa rows (35 and 38): it is not used. "
        "3 rows are duplicates.",
    ),
    UciSet(
        paper_id="D6",
        name="breastw",
        title="Breast Cancer Wisconsin (Original)",
        creators="Wolberg, W. (1990)",
        doi="10.24432/C5HP4Z",
        uci_id=15,
        archive="breast+cancer+wisconsin+original.zip",
        member="breast-cancer-wisconsin.data",
        sha256="88ce7293957b34f73318bd4bb2057e62cae10c9e1245c52054b934b79ff0250e",
        normal_class="benign",
        n_rows=699,
        n_normals=458,
        feature_names=(
            "clump_thickness",
            "cell_size_uniformity",
            "cell_shape_uniformity",
            "marginal_adhesion",
            "single_epithelial_cell_size",
            "bare_nuclei",
            "bland_chromatin",
            "normal_nucleoli",
            "mitoses",
        ),
        has_id=True,
        classes={"2": "benign", "4": "malignant"},
        imputation=MEDIAN,
        notes="16 gaps. 236 rows are duplicates.",
    ),
    UciSet(
        paper_id="D7",
        name="wine",
        title="Wine",
        creators="Aeberhard, S. and Forina, M. (1992)",
        doi="10.24432/C5PC7J",
        uci_id=109,
        archive="wine.zip",
        member="wine.data",
        sha256="036047f034b6fc1304f665dc7aa385bd5f940c7d676771857b690da13c3d16a7",
        normal_class="2",
        n_rows=178,
        n_normals=71,
        feature_names=(
            "alcohol",
            "malic_acid",
            "ash",
            "alcalinity_of_ash",
            "magnesium",
            "total_phenols",
            "flavanoids",
            "nonflavanoid_phenols",
            "proanthocyanins",
            "color_intensity",
            "hue",
            "od280_od315",
            "proline",
        ),
        label_first=True,
        notes="The copy of scikit-learn has the same rows and is used where no file is here.",
    ),
    UciSet(
        paper_id="D8",
        name="australian",
        title="Statlog (Australian Credit Approval)",
        creators="Quinlan, R. (1987)",
        doi="10.24432/C59012",
        uci_id=143,
        archive="statlog+australian+credit+approval.zip",
        member="australian.dat",
        sha256="de026a3f05958e3e2d050bdd4b63e25bd5671b11d71291b310de2d9b732ecc86",
        normal_class="0",
        n_rows=690,
        n_normals=383,
        feature_names=tuple(f"A{i}" for i in range(1, 15)),
        delimiter=None,
        encoding="numbers as they are, nominal codes too",
    ),
    UciSet(
        paper_id="D9",
        name="haberman",
        title="Haberman's Survival",
        creators="Haberman, S. (1976)",
        doi="10.24432/C5XK51",
        uci_id=43,
        archive="haberman+s+survival.zip",
        member="haberman.data",
        sha256="654cc0e592be4c9924991ead83c3f0b6cee7732635c1f4efc74726299d1c5388",
        normal_class="survived_5_years_or_longer",
        n_rows=306,
        n_normals=225,
        feature_names=("age", "operation_year", "positive_axillary_nodes"),
        classes={"1": "survived_5_years_or_longer", "2": "died_within_5_years"},
        notes="23 rows are duplicates in their values; 6 of these points have both classes.",
    ),
    UciSet(
        paper_id="D10",
        name="hepatitis",
        title="Hepatitis",
        creators="UCI (1983)",
        doi="10.24432/C5Q59J",
        uci_id=46,
        archive="hepatitis.zip",
        member="hepatitis.data",
        sha256="6f08cce9a16d312b65515262963d1de1e065486d39ff31aec8fa3f41a6336931",
        normal_class="live",
        n_rows=155,
        n_normals=123,
        feature_names=(
            "age",
            "sex",
            "steroid",
            "antivirals",
            "fatigue",
            "malaise",
            "anorexia",
            "liver_big",
            "liver_firm",
            "spleen_palpable",
            "spiders",
            "ascites",
            "varices",
            "bilirubin",
            "alk_phosphate",
            "sgot",
            "albumin",
            "protime",
            "histology",
        ),
        label_first=True,
        classes={"1": "die", "2": "live"},
        imputation=MEDIAN,
        notes="167 gaps.",
    ),
)

#: By our name.
UCI_SETS = {uci_set.name: uci_set for uci_set in _ALL}


def load_uci(name: str) -> Dataset:
    """Load one of the ten UCI sets of the paper.

    The file is read from the folder in the environment variable OCFUSE_DATA
    (``uci/D1_banknotes.csv``, or the file of the archive) or from the cache; if it is in neither,
    it is downloaded from the UCI archive. Its content is always verified.

    Parameters
    ----------
    name : str
        Name such as "banknotes", or number in the paper such as "D1".

    Returns
    -------
    Dataset
        Rows as implied by the counts in the paper. Gaps are NaN, except in "voting", where no
        position is 0.5.

    Examples
    --------
    >>> from ocfuse.datasets import load_uci
    >>> load_uci("wine")
    <Dataset uci/wine: 178 rows (71 normal), 13 features>
    """
    uci_set = find_uci(name)
    X, labels = _rows(uci_set)
    X = np.where(np.isnan(X), uci_set.gap, X)
    classes: NDArray[np.str_] = np.array(labels)
    y = signs(classes == uci_set.normal_class)
    return Dataset(uci_set.info.name, X, y, classes, uci_set.feature_names, uci_set.info)


def uci_infos() -> list[DatasetInfo]:
    """Return the entries of the registry."""
    return [uci_set.info for uci_set in UCI_SETS.values()]


def find_uci(name: str) -> UciSet:
    """Return a set by its name or its number in the paper."""
    found = UCI_SETS.get(uci_name(name) or "")
    if found is None:
        numbered = [uci_set.paper_id for uci_set in UCI_SETS.values()]
        hint = f"The paper numbers them {numbered[0]} to {numbered[-1]}."
        raise unknown_name("name of a UCI set", name, [*UCI_SETS, *numbered], hint)
    return found


def uci_name(name: str) -> str | None:
    """Return our name of a set that is given by name or number; None if it is neither."""
    key = str(name).casefold().removeprefix("uci/")
    by_number = {uci_set.paper_id.casefold(): known for known, uci_set in UCI_SETS.items()}
    return key if key in UCI_SETS else by_number.get(key)


def locate_uci(name: str) -> str | None:
    """Return where the set is: a path, "scikit-learn", or None."""
    uci_set = find_uci(name)
    path = _stored(uci_set).locate()
    if path is None:
        return "scikit-learn" if uci_set.name == "wine" else None
    return str(path)


def fetch_uci(name: str) -> str:
    """Have the set here, verified, and return where."""
    _rows(find_uci(name))
    return str(locate_uci(name))


def read_uci(uci_set: UciSet, path: Path) -> Rows:
    """Return values, with NaN for gaps, and classes of a file; verify that they are the right."""
    if path.suffix == ".csv":
        values, labels = _with_header(uci_set, path)
    else:
        values, labels = _as_archived(uci_set, path)
    answered = [[uci_set.answers.get(value, value) for value in row] for row in values]
    X = numbers(answered, uci_set.feature_names, str(path))
    return _verified(uci_set, X, labels, str(path))


def _rows(uci_set: UciSet) -> Rows:
    stored = _stored(uci_set)
    # its copy in scikit-learn has the rows of the archive, in order; that of iris has not
    if stored.locate() is None and uci_set.name == "wine":
        X, targets = slow("sklearn.datasets").load_wine(return_X_y=True)
        labels = [str(target + 1) for target in targets]
        return _verified(uci_set, X, labels, "scikit-learn's copy")
    return read_uci(uci_set, stored.fetch(lambda path: read_uci(uci_set, path)))


def _stored(uci_set: UciSet) -> StoredFile:
    names = (uci_set.csv_name, uci_set.member, uci_set.archive)
    return StoredFile(uci_set.info.name, "uci", names, uci_set.url, uci_set.info.source)


def _verified(uci_set: UciSet, X: FloatArray, labels: list[str], origin: str) -> Rows:
    require_content(uci_set.info, content_sha256([(X, labels)]), origin)
    return X, labels


def _with_header(uci_set: UciSet, path: Path) -> tuple[list[list[str]], list[str]]:
    """Return values and classes of a table whose header names our columns."""
    rows = list(csv.reader(read_text(path, path.name).splitlines()))
    expected = [*uci_set.feature_names, "label"]
    if not rows or rows[0] != expected:
        raise DatasetError(
            f"{path} must start with the line {','.join(expected)}. "
            f"Got {','.join(rows[0]) if rows else 'an empty file'}."
        )
    _require_width(rows[1:], len(expected), path)
    return [row[:-1] for row in rows[1:]], [row[-1] for row in rows[1:]]


def _as_archived(uci_set: UciSet, path: Path) -> tuple[list[list[str]], list[str]]:
    """Return values and classes of a file as the archive writes it."""
    lines = read_text(path, uci_set.member).splitlines()
    split = [line.split(uci_set.delimiter) for line in lines if line.strip()]
    rows = [[value.strip() for value in row] for row in split]
    first = 1 if uci_set.has_id else 0
    _require_width(rows, first + len(uci_set.feature_names) + 1, path)
    rows = [row[first:] for row in rows]
    if uci_set.label_first:
        rows = [[*row[1:], row[0]] for row in rows]
    return [row[:-1] for row in rows], [uci_set.classes.get(row[-1], row[-1]) for row in rows]


def _require_width(rows: list[list[str]], width: int, path: Path) -> None:
    if not rows:
        raise DatasetError(f"{path} must hold rows. Got an empty file.")
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise DatasetError(
                f"Each row of {path} must have {width} values. Got {len(row)} in row {number}."
            )
