"""Tables that nobody means to train on, and that get trained on all the same."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
from hypothesis import strategies as st

HUGE, TINY, DENORMAL = 1e300, 1e-300, 5e-324
SPECIAL = (0.0, -0.0, 1.0, -1.0, HUGE, -HUGE, TINY, DENORMAL, 1e18, 1.7e308, 1e-13)


def _normal(rng, n, m):
    return rng.normal(size=(n, m))


def _mostly_duplicates(rng, n, m):
    return rng.normal(size=(2, m))[rng.integers(2, size=n)]


def _outlier(rng, n, m):
    X = rng.normal(size=(n, m))
    X[-1:] = 1e18
    return X


def _special(rng, n, m):
    return rng.choice(SPECIAL, size=(n, m))


def _one_column_constant(rng, n, m):
    X = rng.normal(size=(n, m))
    X[:, :1] = 7.0
    return X


FORMS = {
    "normal": _normal,
    "constant": lambda rng, n, m: np.full((n, m), 3.5),
    "zero": lambda rng, n, m: np.where(rng.random((n, m)) < 0.5, 0.0, -0.0),
    "duplicates": _mostly_duplicates,
    "outlier": _outlier,
    "special": _special,
    "one constant": _one_column_constant,
    "huge": lambda rng, n, m: rng.normal(size=(n, m)) * HUGE,
    "at the limit": lambda rng, n, m: rng.choice([-1.7e308, 1.7e308], size=(n, m)),
    "tiny": lambda rng, n, m: rng.normal(size=(n, m)) * TINY,
    "denormal": lambda rng, n, m: DENORMAL * rng.integers(0, 5, size=(n, m)),
    "far from zero": lambda rng, n, m: 1e15 + rng.normal(size=(n, m)),
    "whole numbers": lambda rng, n, m: rng.integers(-5, 5, size=(n, m)),
    "line": lambda rng, n, m: np.outer(np.arange(n), np.ones(m)),
    "scales": lambda rng, n, m: rng.normal(size=(n, m)) * 10.0 ** rng.integers(-200, 200, size=m),
}
HOLES = {
    "none": None,
    "nan": np.nan,
    "inf": np.inf,
    "minus inf": -np.inf,
}
TYPES = ("f8", "f4", "f2", ">f8", "g", "i8", "i1", "u8", "?", "O", "c16", "U8", "M8[s]")
LAYOUTS = {
    "as it is": lambda X: X,
    "Fortran": np.asfortranarray,
    "every other": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1][::-1],
    "transposed": lambda X: np.ascontiguousarray(X.T).T,
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X),
}
SHAPES = (
    (0, 3),
    (1, 3),
    (2, 2),
    (3, 1),
    (5, 4),
    (12, 1),
    (12, 3),
    (30, 2),
    (30, 6),
    (6, 100),
    (8, 0),
)


@st.composite
def arrays(draw, shapes=SHAPES):
    """Return an array, or a list or frame of its values."""
    n, m = draw(st.sampled_from(shapes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = FORMS[draw(st.sampled_from(sorted(FORMS)))](rng, n, m)
    kind = draw(st.sampled_from(("f8", "f8", "f8", *TYPES)))
    hole = HOLES[draw(st.sampled_from(("none", "none", "none", *HOLES)))]
    if hole is not None and X.size:
        X = X.astype(float)
        X[rng.random(X.shape) < 0.1] = hole
    with np.errstate(all="ignore"):
        X = X.astype(kind)
    X = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](X)
    if isinstance(X, np.ndarray) and draw(st.booleans()):
        X = X.view()
        X.flags.writeable = False
    return X


@st.composite
def frames(draw):
    """Return a data frame with columns of many kinds."""
    n = draw(st.sampled_from((1, 3, 12, 30)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    text = rng.choice(["a", "b", "", "c d"], size=n)
    columns = {
        "number": rng.normal(size=n),
        "whole": rng.integers(5, size=n),
        "flag": rng.random(n) < 0.5,
        "text": text,
        "category": pd.Categorical(text),
        "unused category": pd.Categorical(text, categories=["a", "b", "", "c d", "never"]),
        "nullable": pd.array(rng.integers(5, size=n), dtype="Int64"),
        "gaps": pd.array([None, *[1.5] * (n - 1)], dtype="Float64"),
        "text with gaps": [None, *text[1:]],
        "all gaps": [np.nan] * n,
        "dates": pd.date_range("2024-01-01", periods=n),
        "objects": [date(2024, 1, 1)] * n,
        "decimals": [Decimal("1.5")] * n,
        "mixed": [1, *["x"] * (n - 1)],
        "numbers as text": [str(v) for v in rng.normal(size=n)],
        "lists": [[1]] * n,
        "constant": [1.0] * n,
    }
    common = ("number", "whole", "flag", "text", "category", "unused category", "nullable")
    names = draw(
        st.lists(st.sampled_from((*common * 3, *columns)), min_size=1, max_size=5, unique=True)
    )
    frame = pd.concat([pd.Series(columns[name], name=name) for name in names], axis=1)
    return frame
