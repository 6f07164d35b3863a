"""Models without Python: the whole chain of a detector as one ONNX file.

`export` writes what `ocfuse.ensemble.score` computes, from the cells of a row to its score, label
and p-value, as standard operators in double precision, and refuses by name what it cannot write.
Detectors and fusions must not know how they are written.
"""

from ocfuse.onnx.export import export

__all__ = ["export"]
