"""What a load may cost: seconds and bytes, in proportion to the file.

Bytes are counted before they are allocated. What is counted is an upper bound of what
Python and NumPy take, within a small factor; a file that `save` wrote stays far below.
"""

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

#: What any file may take, whatever its size.
FEWEST_BYTES, FEWEST_SECONDS = 2**28, 30.0
#: And beyond that for every byte, and every million bytes, of the file.
BYTES_PER_BYTE, SECONDS_PER_MEGABYTE = 12, 1.0
#: Nested lists and dictionaries of a description.
DEEPEST = 1000
#: What Python takes for a dictionary, a list and a value of JSON, and for a letter.
DICT_BYTES, LIST_BYTES, VALUE_BYTES, LETTER_BYTES = 304, 136, 64, 4
#: Bytes of a description that are looked at together.
AT_ONCE = 2**20
QUOTE = ord('"')
#: What every sign adds to the depth.
STEPS = np.zeros(256, dtype=np.int64)
STEPS[list(b"[{")], STEPS[list(b"]}")] = 1, -1


class Budget:
    """Seconds and bytes that are left.

    Parameters
    ----------
    size : int
        Bytes of the file.
    """

    def __init__(self, size: int) -> None:
        self._n_bytes = FEWEST_BYTES + BYTES_PER_BYTE * size
        # of this thread: what others do meanwhile is not the file's fault
        self._end = time.thread_time() + FEWEST_SECONDS + SECONDS_PER_MEGABYTE * size / 1e6

    def spend(self, n_bytes: int) -> None:
        """Count bytes that are about to be allocated."""
        self._n_bytes -= n_bytes
        if self._n_bytes < 0:
            raise ValueError("it would take far more memory than it has bytes")

    def check_time(self) -> None:
        """Refuse to go on where more time went than the file is worth."""
        if time.thread_time() > self._end:
            raise ValueError("it takes far too long for a file of its size")

    def spend_json(self, text: bytes) -> None:
        """Count what a text of JSON becomes, and refuse one that is nested too deep."""
        self.spend(LETTER_BYTES * len(text))
        depth = 0
        for bare in _without_text(text):
            n_dicts, n_lists, n_commas = (int((bare == sign).sum()) for sign in b"{[,")
            self.spend(DICT_BYTES * n_dicts + LIST_BYTES * n_lists + VALUE_BYTES * n_commas)
            levels = STEPS[bare].cumsum() + depth
            if levels.size:
                depth = int(levels[-1])
            if levels.max(initial=0) > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} deep")


def _without_text(json: bytes) -> Iterator[NDArray[np.uint8]]:
    """Yield what stands outside of the strings of JSON, a piece at a time."""
    signs = json.replace(b"\\\\", b"").replace(b'\\"', b"")
    n_quotes = 0
    for begin in range(0, len(signs), AT_ONCE):
        piece = np.frombuffer(signs[begin : begin + AT_ONCE], dtype=np.uint8)
        quotes = (piece == QUOTE).cumsum() + n_quotes
        yield piece[quotes % 2 == 0]
        n_quotes = int(quotes[-1])
