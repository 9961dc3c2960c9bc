"""How C is stored: whole cache lines, whatever the instruction, the types and the epilogue."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import PrimFunc

from mfmadsl import build, emulate, gemm_schedule, gemm_tiling, profile, sanitize
from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.emulator.profiler import Profile
from mfmadsl.model import architecture
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule.matrix_core.store_columns import Columns, columns_of
from mfmadsl.schedule.product.memory import Memory
from tests.schedule.matrix_core.gemm.workloads import FP8

BLOCK = 128
K = 128


@dataclass(frozen=True)
class Stored:
    """A product whose result is stored in some type, after an epilogue or as it is."""

    a_type: str
    out: str
    steps: str = ""
    n: int = BLOCK
    b_rows: bool = True

    @property
    def sums(self) -> str:
        return "int32" if self.a_type == "int8" else "float32"

    def function(self) -> PrimFunc:
        n, sums = self.n, self.sums
        a = te.placeholder((BLOCK, K), name="A", dtype=self.a_type)
        b = te.placeholder((n, K) if self.b_rows else (K, n), name="B", dtype=self.a_type)
        bias = te.placeholder((n,), name="bias", dtype=sums)
        r = te.reduce_axis((0, K), name="k")

        def element(i: Any, j: Any) -> Any:
            right = b[j, r] if self.b_rows else b[r, j]
            return te.sum(a[i, r].astype(sums) * right.astype(sums), axis=[r])

        c = te.compute((BLOCK, n), element, name="C")
        if not self.steps and self.out == sums:
            return te.create_prim_func([a, b, bias, c])

        def after(i: Any, j: Any) -> Any:
            value: Any = c[i, j]
            if self.steps:
                value = tirx.max(value + bias[j], tirx.const(0, sums))
            if self.steps == "sqrt":
                value = tirx.sqrt(value)
            return value.astype(self.out)

        d = te.compute((BLOCK, n), after, name="D")
        return te.create_prim_func([a, b, bias, d])

    def operands(self) -> list[Any]:
        """Small numbers, of which all sums are exact."""
        generator = np.random.default_rng(self.n)
        shapes = (BLOCK, K), (self.n, K) if self.b_rows else (K, self.n)
        a, b = (generator.integers(-2, 3, s).astype(numpy_type(self.a_type)) for s in shapes)
        bias = generator.integers(-20, 20, self.n).astype(self.sums)
        return [a, b, bias, np.zeros((BLOCK, self.n), numpy_type(self.out))]

    def expected(self, a: Any, b: Any, bias: Any) -> Any:
        right = b.T if self.b_rows else b
        c = a.astype(np.float64) @ right.astype(np.float64)
        if self.steps:
            c = np.maximum(c + bias, 0)
        if self.steps == "sqrt":
            c = np.sqrt(c)
        return c.astype(np.float32).astype(numpy_type(self.out))


def built(stored: Stored, instruction: str, arch: str) -> Kernel:
    function = stored.function()
    tiling = gemm_tiling(function, instruction, arch)
    tiling = replace(tiling, block=(BLOCK, BLOCK), waves=(2, 2), split_k=1, persistent=False,
                     k_waves=1)  # fmt: skip
    return build(gemm_schedule(function, instruction, arch, tiling), arch=arch)


def is_right(stored: Stored, kernel: Kernel) -> bool:
    """Whether it gives NumPy's numbers, within a unit in the last place, and has no faults."""
    arrays = stored.operands()
    sanitize(kernel, arrays)
    arrays[-1][:] = 7
    emulate(kernel, arrays)
    expected = stored.expected(*arrays[:3]).astype(np.float64)
    found = arrays[-1].astype(np.float64)
    return bool(np.allclose(found, expected, rtol=2**-7 if stored.steps == "sqrt" else 0, atol=0))


def store_cycles(found: Profile) -> int:
    """Cycles that the stores of all waves keep the path to memory busy."""
    names = [each.name for each in found.program.instructions]
    return sum(
        event.busy for event in found.timing.events
        if event.unit == "vmem" and "store" in names[event.place]
    )  # fmt: skip


KINDS = {
    ("gfx942", "float16"): ("mfma_f32_16x16x16_f16", "mfma_f32_32x32x8_f16"),
    ("gfx942", "bfloat16"): ("mfma_f32_16x16x16_bf16", "mfma_f32_32x32x8_bf16"),
    ("gfx942", "int8"): ("mfma_i32_16x16x32_i8", "mfma_i32_32x32x16_i8"),
    ("gfx942", "fp8"): ("mfma_f32_16x16x32_fp8_fp8", "mfma_f32_32x32x16_fp8_fp8"),
    ("gfx950", "float16"): ("mfma_f32_16x16x32_f16", "mfma_f32_32x32x16_f16"),
    ("gfx950", "bfloat16"): ("mfma_f32_16x16x32_bf16", "mfma_f32_32x32x16_bf16"),
    ("gfx950", "int8"): ("mfma_i32_16x16x64_i8", "mfma_i32_32x32x32_i8"),
    ("gfx950", "fp8"): (
        "mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", "mfma_scale_f32_32x32x64_f8f6f4_fp8_fp8"
    ),
}  # fmt: skip
OUTPUTS = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32", "bfloat16"),
    "int8": ("int32",),
    "fp8": ("float32", "float16"),
}
CASES = [
    (arch, instruction, Stored(FP8[arch] if kind == "fp8" else kind, out, steps))
    for (arch, kind), instructions in KINDS.items()
    for instruction in instructions
    for out in OUTPUTS[kind]
    for steps in ("", "relu")
]  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "instruction", "stored"), CASES, ids=lambda x: "" if isinstance(x, Stored) else x
)
def test_stores_fill_cache_lines(arch: str, instruction: str, stored: Stored) -> None:
    """The path to memory takes 64 bytes of lines a cycle: C's bytes bound what stores take."""
    kernel = built(stored, instruction, arch)
    arrays = stored.operands()
    found = profile(kernel, arrays)
    least = arrays[-1].nbytes / architecture(arch).l1_bytes_per_cycle
    assert found.registers.spilled == 0
    assert store_cycles(found) <= 1.1 * least
    assert is_right(stored, kernel)


@pytest.mark.parametrize("stored", [
    Stored("float16", "float16", "relu", b_rows=False),
    Stored("int8", "int32", b_rows=False),
    Stored("float16", "float16", "sqrt"),
], ids=["B as K x N", "bytes as K x N", "a function"])  # fmt: skip
def test_whatever_stands_before_and_after(stored: Stored) -> None:
    """B that is turned around on the way, and what LLVM makes calls or loops of."""
    instruction = KINDS["gfx942", stored.a_type][0]
    kernel = built(stored, instruction, "gfx942")
    arrays = stored.operands()
    assert store_cycles(profile(kernel, arrays)) <= 1.1 * arrays[-1].nbytes / 64
    assert is_right(stored, kernel)


@pytest.mark.parametrize("n", [120, 122, 121, 130, 4, 1])
@pytest.mark.parametrize("b_rows", [True, False])
def test_edges(n: int, b_rows: bool) -> None:
    """The last columns are stored together with no other ones, or not together."""
    stored = Stored("float16", "float16", "relu", n, b_rows)
    assert is_right(stored, built(stored, "mfma_f32_16x16x16_f16", "gfx942"))


@pytest.mark.parametrize(("width", "count"), [(16, 4), (32, 2), (16, 1), (4, 8)])
def test_every_column_has_one_place(width: int, count: int) -> None:
    order = Columns(width, count)
    whole = 2 * width * count
    places = [int(order.place(tirx.IntImm("int32", j))) for j in range(whole)]
    assert sorted(places) == list(range(whole))
    assert [int(order.column(tirx.IntImm("int32", p))) for p in places] == list(range(whole))
    # A lane's columns in tiles side by side are neighbours.
    lanes = [[places.index(t * width + lane) for t in range(count)] for lane in range(width)]
    assert lanes == [[lane * count + t for t in range(count)] for lane in range(width)]


@pytest.mark.parametrize(
    ("size", "tiles", "width", "line", "extent", "count"),
    [
        (4, 4, 16, 128, 256, 2),  # two tiles fill a line of 128 bytes
        (2, 4, 16, 128, 256, 4),
        (4, 4, 32, 128, 256, 1),  # one does
        (2, 4, 32, 128, 256, 2),
        (4, 4, 16, 64, 256, 1),
        (2, 4, 32, 64, 256, 2),  # words, or the path to memory is not full
        (2, 2, 16, 128, 256, 2),  # no more than there are
        (2, 4, 16, 128, 254, 2),  # nor than the edge divides
        (2, 4, 16, 128, 255, 1),
        (2, 4, 16, 128, None, 1),
    ],
)
def test_as_many_tiles_take_turns_as_fill_a_line(
    size: int, tiles: int, width: int, line: int, extent: int | None, count: int
) -> None:
    c = Memory("j", 256, extent or 1, size)
    assert columns_of(c, extent, tiles, width, line) == Columns(width, count)
    assert columns_of(replace(c, axis="i"), extent, tiles, width, line).count == 1
