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
from .vectors import (
    TILE_SHAPES,
    fill_vectors,
    load_tile,
    multiply_tiles,
    release_tiles,
    repeated,
    set_tile_shapes,
    store_tile,
    tile_shapes,
)

__all__ = [
    "TILE_SHAPES",
    "Index",
    "Operand",
    "Pair",
    "Place",
    "Slot",
    "dense",
    "fill",
    "fill_vectors",
    "load",
    "load_tile",
    "multiply_tiles",
    "named",
    "register",
    "release_tiles",
    "repeated",
    "scaled",
    "scaled_matmul",
    "set_tile_shapes",
    "sparse",
    "sparse_matmul",
    "store",
    "store_tile",
    "tensor_intrins",
    "tile_shapes",
]
