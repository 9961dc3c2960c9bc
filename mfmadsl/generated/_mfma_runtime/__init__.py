"""What the modules beside this folder share: pairs of any layout, and how they are registered.

A pair is the description of a tile's work and its implementation by one wave: a TensorIntrin's.

Written by `mfmadsl compile` beside the modules that it generates, which import it.
"""

from .dense import dense
from .memory import fill, load, store
from .operand import Index, Operand, Place, Slot
from .registration import Pair, named, register, tensor_intrins
from .scaled import scaled, scaled_matmul
from .sparse import sparse, sparse_matmul

__all__ = [
    "Index",
    "Operand",
    "Pair",
    "Place",
    "Slot",
    "dense",
    "fill",
    "load",
    "named",
    "register",
    "scaled",
    "scaled_matmul",
    "sparse",
    "sparse_matmul",
    "store",
    "tensor_intrins",
]
