"""Former models stay beside the new one."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ocfuse.persistence import keep_former


@given(st.lists(st.integers(0, 4), max_size=8))
def test_the_last_models_are_there_and_no_more(kept):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pump.ocf"
        expected = {}
        for version, n in enumerate(kept):
            if path.exists() and n:
                former = [path.read_text(), *(expected.get(i) for i in range(1, n))]
                expected |= {i: text for i, text in enumerate(former, 1) if text is not None}
            keep_former(path, n)
            path.write_text(str(version))
        found = {int(file.suffix[1:]): file.read_text() for file in path.parent.glob("*.ocf.*")}
        assert found == expected
        assert {file.name for file in path.parent.iterdir()} <= {
            "pump.ocf", *(f"pump.ocf.{i}" for i in range(1, 5))
        }  # fmt: skip
