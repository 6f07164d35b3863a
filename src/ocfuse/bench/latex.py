"""Text for LaTeX."""

import re

#: What LaTeX takes for a command, and what its fonts may lack.
SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "†": r"$^\dagger$",
    "²": r"\textsuperscript{2}",
    "\n": " ",
}
_PATTERN = re.compile("|".join(map(re.escape, SPECIAL)))
_MINUS = re.compile(r"^-(?=\d)")


def escape(text: str) -> str:
    r"""Return text as LaTeX shows it, a leading minus as a minus.

    Parameters
    ----------
    text : str
        Plain text.

    Returns
    -------
    str
        LaTeX.

    Examples
    --------
    >>> from ocfuse.bench.latex import escape
    >>> print(escape("R&D_1: 5 % ± 1"))
    R\&D\_1: 5 \% $\pm$ 1
    """
    escaped = _PATTERN.sub(lambda match: SPECIAL[match.group()], text)
    return _MINUS.sub("$-$", escaped)
