"""A product whose tiles are those of a micro-kernel, as a schedule, as machine code, as numbers."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import s_tir, te

from mfmadsl.host.cpu import cpu_target
from mfmadsl.language import microkernels
from mfmadsl.model import Cpu, Microkernel
from mfmadsl.schedule import load_intrinsic

TILES = (2, 3, 5)
"""Tiles along i, j and k."""

_FIRST = re.compile(r"\.LBB\d+_\d+:")
_STACK = re.compile(r"\(%rsp\).*mm\d+")  # with an index it is an edge of A, which lies there
_STORE = re.compile(r"\s+v?mov\w+\s+%[xyz]mm\d+, .*\(")


def scheduled(kernel: Microkernel, tiles: tuple[int, int, int] = TILES) -> tvm.IRModule:
    """C = A x B with packed operands, tensorized; the sums are a buffer of one tile."""
    module = load_intrinsic(kernel)
    m, n, k = (x * y for x, y in zip(tiles, (kernel.m, kernel.n, kernel.k), strict=True))
    a = te.placeholder((m, k), module.A_DTYPE, name="A")
    b = te.placeholder((k, n), module.B_DTYPE, name="B")
    r = te.reduce_axis((0, k), name="k")

    def widened(x: Any) -> Any:
        return x if x.dtype == module.OUT_DTYPE else x.astype(module.OUT_DTYPE)

    def element(i: Any, j: Any) -> Any:
        return te.sum(widened(a[i, r]) * widened(b[r, j]), axis=r)

    c = te.compute((m, n), element, name="C")
    sch = s_tir.Schedule(te.create_prim_func([a, b, c]))
    block = sch.get_sblock("C")
    for read in (0, 1):
        sch.cache_read(block, read, "global")
    stored = sch.cache_write(block, 0, "global")
    sch.transform_layout(block, ("read", 0), module.index_map_A)
    sch.transform_layout(block, ("read", 1), module.index_map_B)
    sch.transform_layout(block, ("write", 0), module.index_map_C)
    i, j, depth = sch.get_loops(block)
    rows, row = sch.split(i, [None, kernel.m])
    columns, column = sch.split(j, [None, kernel.n])
    steps, step = sch.split(depth, [None, kernel.k])
    sch.reorder(rows, columns, steps, row, column, step)
    sch.reverse_compute_at(stored, columns)
    zeroed = sch.decompose_reduction(block, steps)
    sch.tensorize(sch.get_loops(zeroed)[-2], module.FILL)
    sch.tensorize(row, module.COMPUTE)
    return sch.mod


@cache
def built(name: str, tiles: tuple[int, int, int] = TILES) -> Any:
    """The product of a micro-kernel of the library, for a CPU with its features and no others."""
    kernel = microkernels()[name]
    return built_for(kernel, tiles)


def built_for(kernel: Microkernel, tiles: tuple[int, int, int] = TILES) -> Any:
    return tvm.compile(scheduled(kernel, tiles), target=cpu_target(Cpu("x86-64", kernel.features)))


def assembly(executable: Any) -> str:
    return str(executable.mod.inspect_source("asm"))


def computed(kernel: Microkernel, executable: Any) -> tuple[np.ndarray, np.ndarray]:
    """What this CPU computes of numbers that name their positions, and what is right."""
    m, n, k = (x * y for x, y in zip(TILES, (kernel.m, kernel.n, kernel.k), strict=True))
    a, b = np.arange(m * k).reshape(m, k), np.arange(k * n).reshape(k, n)
    if kernel.a.type.kind == "integer":  # the period is prime, so that rows and columns differ
        a, b = a % 251, b % 251 - 125
    a, b = a.astype(dtype(kernel.a.type.dtype)), b.astype(dtype(kernel.b.type.dtype))
    c = tvm.runtime.tensor(np.full((m, n), 7, kernel.c.type.dtype))
    executable(tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    exact = np.int64 if kernel.a.type.kind == "integer" else np.float64
    return c.numpy(), a.astype(exact) @ b.astype(exact)


def dtype(name: str) -> Any:
    return getattr(ml_dtypes, name, name)


def loops(text: str, mnemonic: str) -> list[list[str]]:
    """The innermost loops of assembly that have the instruction: blocks that jump to themselves."""
    found = []
    labels = list(_FIRST.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    for label, end in zip(labels, ends, strict=True):
        lines = text[label.end() : end].splitlines()
        name = label.group().rstrip(":")
        jumps = [at for at, line in enumerate(lines) if re.search(rf"\sj\w+\s+{name}$", line)]
        body = lines[: jumps[0] + 1] if jumps else []
        if any(mnemonic in line for line in body):
            found.append(body)
    return found


def stores(body: list[str]) -> list[str]:
    """What a loop stores from vector registers, or brings them from the stack."""
    return [line for line in body if _STORE.match(line) or _STACK.search(line)]
