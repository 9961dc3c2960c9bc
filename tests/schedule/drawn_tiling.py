"""Tilings drawn at random: small blocks, so that small products have several tiles and steps."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import tvm
from tvm.tirx import IntImm, PrimFunc

from mfmadsl.model import Intrinsic, architecture
from mfmadsl.schedule import Tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.choice import candidates
from mfmadsl.schedule.matrix_core.tiling.legal import check_tiling
from mfmadsl.schedule.matrix_core.tiling.resources import natural_k_pack
from mfmadsl.schedule.product.prepare import prepared
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products

_TRIES = 200


def drawn_tiling(generator: np.random.Generator, function: PrimFunc, arch: str) -> Tiling | None:
    """A legal tiling of a product, if it has an instruction; ScheduleError if it is no product."""
    product = sum_of_products(product_nest(prepared(function)))
    types = [str(factor.source.dtype) for factor in (product.first, product.second)]
    extents = [axis.dom.extent for axis in product.axes("k")]
    known = all(isinstance(extent, IntImm) for extent in extents)
    depth = prod(int(extent) for extent in extents) if known else None
    size = max(int(tvm.DataType(dtype).bits) // 8 for dtype in types)
    found = candidates(types[0], types[1], arch)
    for _ in range(_TRIES if found else 0):
        intrinsic = found[int(generator.integers(len(found)))]
        tiling = _tried(generator, intrinsic, size)
        steps = None if depth is None else -(-depth // tiling.k_step)
        try:
            check_tiling(tiling, intrinsic, architecture(arch), (size, size), steps)
        except ScheduleError:
            continue
        return tiling
    return None


def _tried(generator: np.random.Generator, intrinsic: Intrinsic, size: int) -> Tiling:
    """A tiling that may be legal."""

    def one_of(*choices: Any) -> Any:
        return choices[int(generator.integers(len(choices)))]

    k_pack = one_of(1, 1, natural_k_pack(intrinsic))
    least = max(2 * k_pack * intrinsic.k, 16 // size)
    split_k, k_waves = one_of(1, 1, 1, 2, 3), one_of(1, 1, 1, 2, 4)
    return Tiling(
        block=(one_of(16, 32, 32, 48, 80, 96), one_of(16, 32, 32, 48, 80, 96)),
        k_step=least * one_of(1, 1, 2) * k_waves,
        waves=(one_of(1, 1, 2), one_of(1, 1, 2)),
        instruction=intrinsic.name,
        k_pack=k_pack,
        swizzle=one_of(True, True, False),
        stages=one_of(1, 1, 2, 2, 3, 4),
        split_k=split_k,
        persistent=one_of(False, False, True),
        group=one_of(1, 2, 8),
        k_waves=k_waves,
    )
