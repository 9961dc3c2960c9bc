"""Register steps that are shorter than a read of the LDS become longer ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from tvm.tirx import Buffer, BufferLoad, BufferStore

import mfmadsl
from mfmadsl.model import architecture
from mfmadsl.passes.main_loop.analysis.halves import used, written
from mfmadsl.passes.main_loop.analysis.joined import joined
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep
from mfmadsl.passes.tir.expression import ramp
from mfmadsl.schedule import Tiling

CHIP = architecture("gfx950")
CYCLES = 16  # of the instruction that is used here, from the CDNA4 manual's table
FUNCTION = "llvm.amdgcn.mfma.f32.16x16x32.f16"
INSTRUCTIONS = MatrixInstructions({FUNCTION: CYCLES})
SUMS = tirx.decl_buffer((64,), "float32", "sums", scope="local")


def fragment(step: int) -> Buffer:
    return tirx.decl_buffer((8,), "float16", f"fragment_{step}", scope="local")


def read(into: Buffer) -> BufferStore:
    tile = tirx.decl_buffer((4096,), "float16", "tile", scope="shared")
    return BufferStore(into, BufferLoad(tile, [ramp(0, 8)]), [ramp(0, 8)])


def product(number: int, *factors: Buffer) -> BufferStore:
    """The sums `number` and a product of two fragments, or of one with itself."""
    place = [ramp(4 * number, 4)]
    a, b = (BufferLoad(each, [ramp(0, 8)]) for each in (factors[0], factors[-1]))
    zero = tirx.const(0, "int32")
    operands = (a, b, BufferLoad(SUMS, place), zero, zero, zero)
    return BufferStore(
        SUMS, tirx.call_llvm_pure_intrin("float32x4", FUNCTION, *operands), list(place)
    )


def step(number: int, products: int = 1) -> RegisterStep:
    own = fragment(number)
    return RegisterStep((read(own),), tuple(product(n, own) for n in range(products)))


def cycles(taken: RegisterStep) -> int:
    return CYCLES * len(taken.computing)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=16))
def test_steps_take_as_long_as_the_lds_or_there_are_two_alike(products: list[int]) -> None:
    steps = [step(n, count) for n, count in enumerate(products)]
    found = [cycles(each) for each in joined(steps, CHIP, INSTRUCTIONS)]
    assert len(found) >= 2
    long = all(time >= 2 * CHIP.lds_latency for time in found)
    alike = len(found) == 2 and abs(found[0] - found[1]) <= CYCLES * max(products)
    assert long or (alike and sum(found) < 4 * CHIP.lds_latency + 6 * CYCLES)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=16))
def test_nothing_is_lost_and_reads_stay_ahead_of_what_takes_them(products: list[int]) -> None:
    steps = [step(n, count) for n, count in enumerate(products)]
    found = joined(steps, CHIP, INSTRUCTIONS)
    assert [r for s in found for r in s.reads] == [r for s in steps for r in s.reads]
    assert sorted(map(str, (c for s in found for c in s.computing))) == sorted(
        map(str, (c for s in steps for c in s.computing))
    )
    there: set[tuple[int, int]] = set()
    for each in found:
        there |= {element for r in each.reads for element in written(r)}
        assert all(set(used(s)) <= there for s in each.computing)


def test_eight_steps_of_one_short_instruction_are_two() -> None:
    found = joined([step(n) for n in range(8)], CHIP, INSTRUCTIONS)
    assert [len(each.computing) for each in found] == [4, 4]


def test_steps_are_joined_as_far_as_there_are_registers() -> None:
    """Sixteen waves leave a lane 128 of them, of which the fragments of two long steps take all."""
    tiling = Tiling((64, 64), 512, (2, 4), "mfma_f32_16x16x32_f16", 1, k_waves=2)
    workload = mfmadsl.matmul(64, 64, 1024, "float16", "float32", b_transposed=True)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx950", tiling=tiling), "gfx950")
    assert kernel.registers.spilled == 0


def test_long_steps_stay() -> None:
    steps = [step(n, 8) for n in range(4)]
    assert joined(steps, CHIP, INSTRUCTIONS) is steps


@pytest.mark.parametrize("count", [1, 2])
def test_two_steps_are_the_least(count: int) -> None:
    steps = [step(n) for n in range(count)]
    assert joined(steps, CHIP, INSTRUCTIONS) is steps


def test_steps_stay_where_the_first_fragments_are_in_use_to_the_end() -> None:
    first, *rest = (step(n) for n in range(8))
    kept = fragment(99)
    first = RegisterStep((*first.reads, read(kept)), first.computing)
    last = RegisterStep(rest[-1].reads, (*rest[-1].computing, product(1, kept)))
    steps = [first, *rest[:-1], last]
    assert joined(steps, CHIP, INSTRUCTIONS) is steps


def test_steps_stay_where_they_compute_anything_but_sums() -> None:
    steps = [step(n) for n in range(8)]
    value = BufferLoad(SUMS, [tirx.const(0, "int32")]) * tirx.const(2, "float32")
    other = BufferStore(SUMS, value, [tirx.const(0, "int32")])
    steps[3] = RegisterStep(steps[3].reads, (*steps[3].computing, other))
    assert joined(steps, CHIP, INSTRUCTIONS) is steps
