"""Advice of the library in the words of the command line.

Errors and warnings name settings as Python has them: ``decimal=','``. Whoever came by the
command line is told flags: ``--decimal ','``.
"""

import re

#: Settings that are flags of the same name.
SAME = (
    *("anomaly", "context", "decimal", "delimiter", "drift", "fusion", "gaps", "group", "id"),
    *("ignore", "label", "members", "normal", "scale", "time", "tune"),
)
#: Settings that are flags of another name; these words mean nothing else.
OTHER = {"false_alarm_rate": "--false-alarms", "n_jobs": "--threads", "random_state": "--seed"}
#: Words for those who come with arrays, and those for the command line.
PHRASES = {
    "FusedDetector.save wrote": "`ocfuse fit` wrote",
    'Give tune=Search(grid={"eta": [...]}) with what it has, or tune=None.': (
        "Use another --fusion, or leave --tune out."
    ),
    "give fit a context, such as its progress, and at least 2 runs.": (
        "give its progress by --context, and at least 2 runs, or say --no-course."
    ),
    "encoder=FeatureEncoder(categories=[...])": "--category COLUMN",
    "calibrate without groups": "leave --group out",
    " runs or more, or calibrate on fresh ones.": " runs or more.",
    "such as (10, 30)": "such as 10,30",
    "with y = +1": "in a label column (--label)",
    "with y = -1": "in a label column (--label)",
    "keep_going=True": "--keep-going",
    " (copied_rows_)": "",
    " (trimmed_rows_)": "",
    "allow a longer timeout": "allow more by --timeout",
    "of every run, or of none": "of every run; or use --no-progress",
}
SETTING = re.compile(rf"(?<![\w.'\"-])({'|'.join((*SAME, *OTHER))})=(?=['\"\d])")
WORD = re.compile(rf"(?<![\w.'\"-])({'|'.join(OTHER)})\b")


def in_flags(text: str) -> str:
    """Return a message with flags in place of settings of Python."""
    for words, other in PHRASES.items():
        text = text.replace(words, other)
    text = SETTING.sub(lambda found: f"{_flag(found[1])} ", text)
    return WORD.sub(lambda found: _flag(found[1]), text)


def _flag(name: str) -> str:
    return OTHER.get(name, f"--{name}")
