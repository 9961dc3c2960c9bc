"""Micro-kernels, executed as Intel's manual says.

The instructions are written from the pseudo code of the Software Developer's Manual, volume 2:
VPDPBUSD, TDPBSSD and TDPBF16PS. They know nothing of what `check` takes a step for: registers are
arrays of bytes, filled as the layouts say, and the steps name them.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mfmadsl.language import microkernels
from mfmadsl.model import TILE_ROWS, Microkernel, VectorOperand

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
KERNELS = [m for m in microkernels().values() if m.call.startswith("llvm.x86")]


def vpdpbusd(dst: Bytes, src1: Bytes, src2: Bytes) -> Bytes:
    """Of each doubleword: four unsigned bytes of SRC1 times four signed ones of SRC2, added."""
    sums = dst.view(np.int32).copy()
    for i in range(len(sums)):
        for byte in range(4):
            unsigned, signed = int(src1[4 * i + byte]), int(src2.view(np.int8)[4 * i + byte])
            sums[i] += unsigned * signed
    return sums.view(np.uint8)


def tdpbssd(dst: Bytes, src1: Bytes, src2: Bytes) -> Bytes:
    """For each row m, each k of 16 doublewords of it, each n: a dot product of four bytes."""
    left, right = src1.view(np.int8).reshape(16, 16, 4), src2.view(np.int8).reshape(16, 16, 4)
    sums = dst.view(np.int32).reshape(16, 16).copy()
    for m in range(16):
        for k in range(16):
            for n in range(16):
                for byte in range(4):
                    sums[m, n] += int(left[m, k, byte]) * int(right[k, n, byte])
    return sums.view(np.uint8).reshape(16, 64)


def tdpbf16ps(dst: Bytes, src1: Bytes, src2: Bytes) -> Bytes:
    """Of pairs of bfloat16: the odd ones and the even ones, each added to the sum in float32."""
    left = src1.view(ml_dtypes.bfloat16).reshape(16, 32).astype(np.float32)
    right = src2.view(ml_dtypes.bfloat16).reshape(16, 32).astype(np.float32)
    sums = dst.view(np.float32).reshape(16, 16).copy()
    for m in range(16):
        for k in range(16):
            for n in range(16):
                sums[m, n] += left[m, 2 * k] * right[k, 2 * n]
                sums[m, n] += left[m, 2 * k + 1] * right[k, 2 * n + 1]
    return sums.view(np.uint8).reshape(16, 64)


INSTRUCTIONS = {"vpdpbusd": vpdpbusd, "tdpbssd": tdpbssd, "tdpbf16ps": tdpbf16ps}


def dtype(operand: VectorOperand) -> Any:
    return getattr(ml_dtypes, operand.type.dtype, operand.type.dtype)


def held(kernel: Microkernel, operand: VectorOperand, tile: np.ndarray[Any, Any]) -> Bytes:
    """The machine's registers, as bytes, with the elements where the layout says."""
    width = kernel.bits // operand.type.bits
    registers = np.zeros((operand.registers, width), dtype(operand))
    for (row, column), value in np.ndenumerate(tile):
        register, element = operand.layout.slot(row, column)
        for copy in range(width // operand.elements):
            registers[register, copy * operand.elements + element] = value
    return registers.view(np.uint8)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda m: m.name)
def test_the_steps_compute_the_product_by_intels_pseudo_code(kernel: Microkernel) -> None:
    shapes = {"a": (kernel.m, kernel.k), "b": (kernel.k, kernel.n), "c": (kernel.m, kernel.n)}
    periods = {"a": 251, "b": 127, "c": 1009}  # prime, so that no two positions near are alike
    if kernel.a.type.name == "bfloat16":
        periods = {"a": 13, "b": 11, "c": 101}  # sums of few bits are exact
    tiles = {
        name: (np.arange(shape[0] * shape[1]) % periods[name] - (kernel.a.type.name != "uint8"
            or name != "a") * (periods[name] // 2)).reshape(shape)
        for name, shape in shapes.items()
    }  # fmt: skip
    if kernel.a.type.name == "int8":
        tiles["a"] = tiles["a"] % 127 - 63
    registers = {o.name: held(kernel, o, tiles[o.name]) for o in kernel.operands.values()}
    execute = next(f for name, f in INSTRUCTIONS.items() if name in kernel.call)
    height = TILE_ROWS if kernel.tiles else 1
    for step in kernel.steps:
        rows = {name: slice(x * height, (x + 1) * height) for name, x in step._asdict().items()}
        c, a, b = (registers[name][rows[name]] for name in "cab")
        if kernel.tiles:
            registers["c"][rows["c"]] = execute(c, a, b)
        else:
            registers["c"][rows["c"]] = execute(c[0].copy(), a[0].copy(), b[0].copy())
    sums = registers["c"].view(dtype(kernel.c))
    right = tiles["c"] + tiles["a"] @ tiles["b"]
    for (row, column), value in np.ndenumerate(right):
        assert sums[kernel.c.layout.slot(row, column)] == value
