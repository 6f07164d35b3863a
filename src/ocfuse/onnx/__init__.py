"""Models without Python: the whole chain of a detector as one ONNX file.

`export` writes what `ocfuse.ensemble.score` computes, from the cells of a row to its score, label
and p-value, as a graph of standard operators in double precision. Any runtime of ONNX runs it, in
C++, C#, Java, Rust or a page, without ocfuse. What cannot be written is refused by name.
"""

from ocfuse.onnx.export import export

__all__ = ["export"]
