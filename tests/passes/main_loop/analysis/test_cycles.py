"""The cycles of an instruction are those of its entry, and reach the loop that they pace."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.tirx import For

import mfmadsl
from mfmadsl.model import Intrinsic, architecture
from mfmadsl.passes.main_loop.analysis.cycles import hand_on_cycles, stated_instructions
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.tir.annotation import CYCLES, PIPELINE

NAME = "mfma_f32_16x16x16_f16"
CALL = "llvm.amdgcn.mfma.f32.16x16x16f16"
CHIP = "gfx942"


def entry(cycles: int) -> Intrinsic:
    """The library's entry with other cycles, as a user would write it."""
    found = mfmadsl.find(NAME)
    assert isinstance(found, Intrinsic)
    return replace(found, name=f"own_{cycles}", cycles=((CHIP, cycles),))


def schedule_of(intrinsic: Intrinsic) -> Schedule:
    workload = mfmadsl.matmul(256, 256, 512, "float16", "float32", b_transposed=True)
    tiling = mfmadsl.Tiling((128, 128), 64, (2, 2), intrinsic.name, 2)
    return mfmadsl.gemm_schedule(workload, intrinsic, arch=CHIP, tiling=tiling)


def annotated(function: object) -> list[For]:
    found: list[For] = []
    tvm_ffi.structural_walk(
        function, (For, lambda f: found.append(f) if PIPELINE in (f.annotations or {}) else None)
    )
    return found


@pytest.mark.parametrize("cycles", [8, 16, 64])
def test_a_loop_says_what_its_tensor_intrins_say(cycles: int) -> None:
    function = schedule_of(entry(cycles)).mod["main"]
    (loop,) = annotated(hand_on_cycles(function, architecture(CHIP)).body)
    assert {str(f): int(n) for f, n in loop.annotations[CYCLES].items()} == {CALL: cycles}
    known = MatrixInstructions({CALL: 4, "another": 5})
    assert stated_instructions(loop, known).cycles == {CALL: cycles, "another": 5}


def test_of_another_chip_it_says_nothing() -> None:
    function = schedule_of(entry(16)).mod["main"]
    (loop,) = annotated(hand_on_cycles(function, architecture("gfx90a")).body)
    assert CYCLES not in loop.annotations
    assert stated_instructions(loop, MatrixInstructions({CALL: 4})).cycles == {CALL: 4}


def test_the_cycles_of_an_own_entry_pace_the_loop() -> None:
    """Short instructions have fewer reads of the LDS under each of them than long ones."""
    texts = {n: mfmadsl.build(schedule_of(entry(n)), CHIP).assembly for n in (16, 17, 64)}
    stripped = {n: text.replace(f"own_{n}", "own") for n, text in texts.items()}
    assert stripped[16] != stripped[64]
    assert stripped[17] == stripped[64]  # both are long: one of them takes the time of two reads
