"""Run atheris, a fuzzer that follows which lines are reached, at the door of tables.

``python -m benchmarks.hardening.fuzz_csv CORPUS [CORPUS ...]``, with the options of libFuzzer, such
as ``-max_total_time=300``. What is found goes to the first folder; bytes that break a promise are
written to a file `crash-...`, which belongs to tests/hardening/csv once the fault is mended.
"""

import sys

import atheris

with atheris.instrument_imports(include=["ocfuse.tables", "benchmarks.hardening.csv_door"]):
    from benchmarks.hardening.csv_door import knock


def knock_once(content: bytes) -> None:
    knock(content)


if __name__ == "__main__":
    atheris.Setup(sys.argv, knock_once)
    atheris.Fuzz()
