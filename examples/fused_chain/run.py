"""Two products and what is between them in one kernel: F = exp(A x B * scale) x C.

    python examples/fused_chain/run.py [--arch gfx942]

A has 4096 x 64 elements of float16, B 64 x 4096 (stored by columns, as the keys of an attention),
C 4096 x 64; F is float32. The exponentials, 4096 x 4096 of them, never leave the registers: where
the first product leaves its sums is where the second one takes a factor.

The schedule is made of TVM's primitives, TensorIntrins that are generated of the instruction's
entry, and one annotation, `mfmadsl.pipeline`. The kernel is compared with NumPy in float64 at a
small size, and at the whole size its cost in the profiler's model with that of the two products
apart.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tvm import te, tirx
from tvm.s_tir import Schedule, TensorIntrin
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import Kernel

INTRINSIC = "mfma_f32_32x32x8_f16"
LANES = 64
WAVES, ROWS = 8, 32  # of a workgroup, and of each wave
STEP = 128  # columns of the first product, and so much K of the second one, in each turn
SCALE = 1 / 8


@dataclass(frozen=True)
class Size:
    """A is m x k, B is k x n, C is n x p, and F is m x p."""

    m: int
    k: int
    n: int
    p: int

    def arrays(self, seed: int = 0) -> list[Any]:
        """A, B by columns, C, and room for F."""
        generator = np.random.default_rng(seed)
        shapes = (self.m, self.k), (self.n, self.k), (self.n, self.p)
        given = [generator.standard_normal(shape).astype(np.float16) for shape in shapes]
        return [*given, np.zeros((self.m, self.p), np.float32)]

    def __str__(self) -> str:
        return f"{self.m} x {self.k} x {self.n} x {self.p}"


SMALL, WHOLE = Size(256, 64, 256, 64), Size(4096, 64, 4096, 64)


def exponential(x: Any) -> Any:
    """exp(x * SCALE) as float16: 2 to the power of a multiple is one instruction less."""
    return tirx.exp2(x * tirx.const(SCALE * math.log2(math.e), "float32")).astype("float16")


def product(x: Any, y: Any, over: Any) -> Any:
    """The sum of products, in float32."""
    return te.sum(x.astype("float32") * y.astype("float32"), axis=[over])


def workload(size: Size) -> PrimFunc:
    """The chain, element by element.

    S and F are written transposed, so that an instruction's rows run along what is summed up next.
    """
    a = te.placeholder((size.m, size.k), name="A", dtype="float16")
    b = te.placeholder((size.n, size.k), name="B", dtype="float16")
    c = te.placeholder((size.n, size.p), name="C", dtype="float16")
    k, j = te.reduce_axis((0, size.k), name="k"), te.reduce_axis((0, size.n), name="j")
    s = te.compute((size.n, size.m), lambda j, i: product(b[j, k], a[i, k], k), name="S")
    e = te.compute((size.n, size.m), lambda j, i: exponential(s[j, i]), name="E")
    t = te.compute((size.p, size.m), lambda p, i: product(c[j, p], e[j, i], j), name="T")
    f = te.compute((size.m, size.p), lambda i, p: t[p, i], name="F")
    return te.create_prim_func([a, b, c, f])


def chain_schedule(size: Size) -> Schedule:
    """One kernel: a workgroup takes WAVES x ROWS rows of A, and goes over B and C in steps."""
    first, second = (mfmadsl.load_intrinsic(INTRINSIC, k_pack) for k_pack in (2, 1))
    sch = Schedule(workload(size))
    s, e, t, f = (sch.get_sblock(name) for name in ("S", "E", "T", "F"))

    # The second product says who computes what, and when.
    p, i, j = sch.get_loops(t)
    group, wave, i, i_tile = sch.split(i, [None, WAVES, ROWS // second.N, second.N])
    step, part, j, j_tile = sch.split(j, [None, STEP // second.M, second.M // second.K, second.K])
    p, p_tile = sch.split(p, [None, second.M])
    sch.reorder(group, wave, step, part, j, i, p, p_tile, i_tile, j_tile)
    t_tile = sch.blockize(p_tile)
    sch.bind(group, "blockIdx.x")
    sch.bind(wave, "threadIdx.y")

    # E and S are computed in each step, for it alone.
    for block in (e, s):
        sch.compute_at(block, step, preserve_unit_loops=True)
    j, i, k = sch.get_loops(s)[-3:]
    (j, j_tile), (i, i_tile), (k, k_tile) = (
        sch.split(loop, [None, extent])
        for loop, extent in ((j, first.M), (i, first.N), (k, first.K))
    )
    sch.reorder(j, k, i, j_tile, i_tile, k_tile)
    s_tile = sch.blockize(j_tile)

    # B and C go through the LDS. C is turned around on the way, since its K lies apart in memory.
    copy(sch, sch.cache_read(s_tile, 0, "shared"), step)
    copy_turned(sch, sch.cache_read(t_tile, 0, "shared"), step)

    # Fragments: A's stay in registers all along, so that they come from memory.
    from_memory = f"{INTRINSIC}_load_b_transposed_global"
    TensorIntrin.register(from_memory, *first.load_b_transposed("global"), override=True)
    load(sch, sch.cache_read(s_tile, 1, "warp"), wave, first.index_map_B_transposed, from_memory)
    load(sch, sch.cache_read(s_tile, 0, "warp"), j, first.index_map_A, first.LOAD_A_SHARED)
    load(sch, sch.cache_read(t_tile, 0, "warp"), part, second.index_map_A, second.LOAD_A_SHARED)

    # S, E and T in registers: a lane has the same elements of S, as sums, and of E, as a factor.
    for block, index_map in (
        (s_tile, first.index_map_C), (e, second.index_map_B), (t_tile, second.index_map_C)
    ):  # fmt: skip
        sch.set_scope(block, 0, "warp")
        sch.transform_layout(block, ("write", 0), index_map)
    by_lanes(sch, e)
    sch.reverse_compute_at(f, wave, preserve_unit_loops=True)
    sch.reorder(*sch.get_loops(f)[:-3:-1])
    by_lanes(sch, f)

    for block, loop, tile in ((s_tile, k, first), (t_tile, step, second)):
        init = sch.decompose_reduction(block, loop)
        sch.tensorize(sch.get_loops(sch.get_child_blocks(init)[0])[-2], tile.FILL)
        sch.tensorize(sch.get_loops(sch.get_child_blocks(block)[0])[-3], tile.COMPUTE)
    sch.annotate(step, "mfmadsl.pipeline", 1)
    return sch


def copy(sch: Schedule, block: SBlockRV, step: LoopRV) -> None:
    """Copy a tile into the LDS, 16 bytes a thread at a time."""
    sch.compute_at(block, step, preserve_unit_loops=True)
    rows, k = sch.get_loops(block)[-2:]
    chunk, _ = sch.split(k, [None, 8])
    by_threads(sch, sch.fuse(rows, chunk))


def copy_turned(sch: Schedule, block: SBlockRV, step: LoopRV) -> None:
    """Copy a tile into the LDS with rows as columns: a thread takes four by four elements.

    Neighbours are two pieces along K, and then those along the rows.
    """
    sch.compute_at(block, step, preserve_unit_loops=True)
    sch.transform_layout(block, ("write", 0), lambda k, row: (row, k))
    k, rows = sch.get_loops(block)[-2:]
    k, pair, k_inside = sch.split(k, [None, 2, 4])
    rows, rows_inside = sch.split(rows, [None, 4])
    sch.reorder(k, rows, pair, k_inside, rows_inside)
    by_threads(sch, sch.fuse(k, rows, pair))


def by_threads(sch: Schedule, loop: LoopRV) -> None:
    """Deal a loop's turns out to the threads of a workgroup."""
    _, wave, lane = sch.split(loop, [None, WAVES, LANES])
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")


def load(
    sch: Schedule, block: SBlockRV, at: LoopRV, index_map: Callable[[Any, Any], Sequence[Any]],
    intrinsic: str,
) -> None:  # fmt: skip
    """Load fragments in each turn of a loop, by a TensorIntrin."""
    height, width = (int(x) for x in TensorIntrin.get(intrinsic).desc.params[1].shape)
    sch.compute_at(block, at, preserve_unit_loops=True)
    rows, k = sch.get_loops(block)[-2:]
    row, rows = sch.split(rows, [None, height])
    tile, k = sch.split(k, [None, width])
    sch.reorder(row, tile, rows, k)
    sch.transform_layout(block, ("write", 0), index_map)
    sch.tensorize(rows, intrinsic)


def by_lanes(sch: Schedule, block: SBlockRV) -> None:
    """Have each lane compute its own elements of sums: of a column, four rows in each eight."""
    rows, columns = sch.get_loops(block)[-2:]
    tile, eight, half, row = sch.split(rows, [None, 4, 2, 4])
    columns, column = sch.split(columns, [None, 32])
    sch.reorder(tile, columns, half, column, eight, row)
    sch.bind(sch.fuse(half, column), "threadIdx.x")


def agrees(arch: str) -> bool:
    """Whether the kernel of a small size is right, as the sanitizer runs it; prints by how much."""
    arrays = SMALL.arrays()
    mfmadsl.sanitize(mfmadsl.build(chain_schedule(SMALL), arch), arrays)
    a, b, c, f = (x.astype(np.float64) for x in arrays)
    e = np.exp(a @ b.T * SCALE)
    # E is rounded to float16; the float32 sums before and after are off by much less.
    error, bound = np.abs(f - e @ c), 2.0**-10 * (e @ np.abs(c))
    right = bool((error <= bound).all())
    print(f"{SMALL} under the sanitizer: {'agrees with NumPy' if right else 'DIFFERS from NumPy'},")
    print(f"    at most {(error / bound).max():.0%} of the tolerance, 2^-10 * sum |E||C|")
    return right


@dataclass(frozen=True)
class Cost:
    """Of all workgroups of all launches: cycles of a compute unit, and bytes that it moves."""

    cycles: float
    matrix_cycles: float
    memory_bytes: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.cycles + other.cycles, self.matrix_cycles + other.matrix_cycles,
            self.memory_bytes + other.memory_bytes,
        )  # fmt: skip

    def row(self, name: str) -> str:
        """A line of the table."""
        return (
            f"{name:<28}{self.cycles:>12,.0f}{self.matrix_cycles / self.cycles:>8.1%}"
            f"{self.memory_bytes / 1e6:>10.1f}"
        )


def cost(kernel: Kernel, arrays: Sequence[Any]) -> Cost:
    """What a kernel takes in the model of a compute unit that is full of its workgroups."""
    total = Cost(0, 0, 0)
    for number, launch in enumerate(kernel.launches(arrays)):
        profile = mfmadsl.profile(kernel, arrays, full=True, launch=number)
        times = math.prod(launch.grid) / profile.workgroups
        total += Cost(
            profile.timing.cycles * times, profile.matrix_bound * times,
            profile.whole.memory_bytes * profile.waves * times,
        )  # fmt: skip
    return total


def apart(size: Size, arch: str) -> tuple[Cost, Cost]:
    """The two products by `gemm_schedule`: the first with the exponential, E through memory."""
    a = te.placeholder((size.m, size.k), name="A", dtype="float16")
    b = te.placeholder((size.n, size.k), name="B", dtype="float16")
    k = te.reduce_axis((0, size.k), name="k")
    s = te.compute((size.m, size.n), lambda i, j: product(a[i, k], b[j, k], k), name="S")
    e = te.compute((size.m, size.n), lambda i, j: exponential(s[i, j]), name="E")
    first = mfmadsl.gemm_schedule(te.create_prim_func([a, b, e]), arch=arch)
    # By default it takes small tiles, to keep all compute units busy; these take less in all.
    second = mfmadsl.matmul(size.m, size.p, size.n, "float16", "float32")
    tiling = replace(
        mfmadsl.gemm_tiling(second, arch=arch), instruction=INTRINSIC, block=(256, 64),
        waves=(4, 1), k_step=64, split_k=1, k_waves=1,
    )  # fmt: skip
    given_a, given_b, given_c, room = size.arrays()
    between = np.zeros((size.m, size.n), np.float16)
    return (
        cost(mfmadsl.build(first, arch), [given_a, given_b, between]),
        cost(
            mfmadsl.build(mfmadsl.gemm_schedule(second, arch=arch, tiling=tiling), arch),
            [between, given_c, room],
        ),
    )


def main() -> int:
    """Build, run, compare; 1 if a number is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default="gfx942", help="the chip, gfx942 if none is given")
    arch = parser.parse_args().arch
    kernel = mfmadsl.build(chain_schedule(WHOLE), arch)
    held = kernel.registers
    print(f"F = exp(A x B * {SCALE}) x C, {WHOLE}, on {arch}:")
    print(f"    {held.vector} registers, {held.spilled} spilled, {kernel.lds_bytes} bytes of LDS")
    right = agrees(arch)
    print(f"\n{'modelled':<28}{'cycles':>12}{'matrix':>8}{'MB moved':>10}")
    fused, (first, second) = cost(kernel, WHOLE.arrays()), apart(WHOLE, arch)
    print(fused.row("one kernel"))
    print(first.row("first product, exp after it"))
    print(second.row("second product"))
    print((first + second).row("both products apart"))
    print(f"one kernel takes {fused.cycles / (first + second).cycles:.0%} of the time")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
