"""A GEMM of scaled operands as a schedule: its instruction, its tiling, and its whole tiles."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from types import NoneType

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.scaled import ScaledBuilder, scaled_lds_bytes
from mfmadsl.schedule.matrix_core.tiling.choice import ProductShape, estimated, fastest_of
from mfmadsl.schedule.matrix_core.tiling.legal import check_tiling, check_values, of_plain_numbers
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK, Loads, registers
from mfmadsl.schedule.product.address_space import check_addresses
from mfmadsl.schedule.product.dataflow import (
    check_bound,
    check_compact,
    check_consumers,
    check_producers,
    check_written_once,
)
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.scaled import ScaledProduct, padded, scaled_intrinsics
from mfmadsl.tvm_refusal import tvm_refusal

_RESULT_BYTES = 4
_WORD = 4  # bytes of scales that go straight into the LDS
_LONGEST_STEP = 1024  # elements of K
_THROUGH_REGISTERS = 16  # of addresses and masks, where not all goes straight into the LDS


def scaled_gemm_schedule(
    function: PrimFunc, product: ScaledProduct, intrinsic: Intrinsic | str | None,
    tiling: Tiling | None, chip: Architecture,
) -> Schedule:  # fmt: skip
    """What `gemm_schedule` gives for a scaled product. Raises ScheduleError as that does."""
    check_addresses(function)
    check_compact(function)
    check_written_once(function)
    check_producers(function, product.nest)
    check_consumers(function, product.result)
    taken = scaled_tiling(product, intrinsic, tiling, chip)
    chosen = find(taken.instruction)
    with tvm_refusal("workload", ScheduleError):
        whole = padded(function, product, chosen, (*taken.block, taken.k_step))
        sch = s_tir.Schedule(tvm.IRModule({"main": whole}))
        block = sch.get_sblock(product.nest.name)
        ScaledBuilder(sch, block, product.extents, chosen, taken, chip).build()
    check_bound(function_of(sch))
    return sch


def scaled_tiling(
    product: ScaledProduct, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Tiling:  # fmt: skip
    """The tiling that is asked for, or that which should be the fastest by the formula.

    Raises ScheduleError for one that cannot be.
    """
    check_type("tiling", tiling, (Tiling, NoneType), "a Tiling")
    if tiling is None:
        return scaled_tilings(product, intrinsic, chip)[0]
    check_type("tiling.instruction", tiling.instruction, str, "an intrinsic's name")
    check_values(tiling)
    tiling = of_plain_numbers(tiling)
    asked = tiling.instruction if intrinsic is None else intrinsic
    (chosen,) = _instructions(product, asked, chip)
    if chosen.name != find(tiling.instruction).name:
        raise ScheduleError(
            f"intrinsic: is {chosen.name}, but the tiling's is {tiling.instruction}"
        )
    _check(product, tiling, chosen, chip)
    return tiling


def scaled_tilings(
    product: ScaledProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    instructions = _instructions(product, intrinsic, chip)
    shape, loads = ProductShape(*product.extents), _loads(product, chip)
    sizes = _element_bytes(instructions[0]), _RESULT_BYTES
    found = [
        # Across tiles LLVM keeps more registers than there are.
        (estimate, replace(tiling, persistent=False))
        for estimate, tiling in estimated(shape, instructions, chip, sizes, loads, (False, False))
        if _is_offered(tiling, find(tiling.instruction), chip, loads)
    ]
    if not found:
        raise ScheduleError(f"no tiling for {instructions[0].name} fits {chip.name}")
    best = fastest_of(found)
    others = sorted((pair for pair in found if pair[1] is not best), key=lambda p: p[0].seconds)
    return [best, *(tiling for _, tiling in others)]


def _instructions(
    product: ScaledProduct, asked: Intrinsic | str | None, chip: Architecture
) -> list[Intrinsic]:
    """The scaled instructions of the chip for the product's types: all, or the one asked for."""
    every = scaled_intrinsics(*product.types)
    found = [each for each in every if chip.name in each.chips]
    spoken = " and ".join(product.types)
    if not found:
        having = " and ".join(dict.fromkeys(name for each in every for name in each.chips))
        raise ScheduleError(
            f"{chip.name} has no scaled matrix instruction for {spoken}, as {having} has:"
            " dequantise them on their way"
        )
    if asked is None:
        return found
    check_type("intrinsic", asked, (Intrinsic, str), "an Intrinsic or its name")
    chosen = find(asked) if isinstance(asked, str) else asked
    if chosen not in found:
        raise ScheduleError(
            f"{chosen.name} does not multiply scaled {spoken} on {chip.name}: "
            f"{' and '.join(each.name for each in found)} do"
        )
    return [chosen]


def _element_bytes(intrinsic: Intrinsic) -> float:
    """The bytes of an element of A or B, of the wider one."""
    return max(intrinsic.a.type.bits, intrinsic.b.type.bits) / 8


def _loads(product: ScaledProduct, chip: Architecture) -> Loads:
    """How the operands come from memory: rows of whole chunks and words may go straight there."""
    a, b, *scales = (int(buffer.shape[-1]) for buffer in product.operands)
    whole = all(row % CHUNK == 0 for row in (a, b)) and all(row % _WORD == 0 for row in scales)
    return Loads(chip.wide_loads_to_lds and whole)


def _is_offered(tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, loads: Loads) -> bool:
    """Whether a tiling leaves room for the scales, and takes no minutes to build."""
    tiles = tiling.wave_tile[0] // intrinsic.m + tiling.wave_tile[1] // intrinsic.n
    needed = registers(tiling, intrinsic, _element_bytes(intrinsic), loads) + tiles
    if not loads.direct:
        needed += _THROUGH_REGISTERS
    budget = chip.registers // max(1, ceil(tiling.wave_count / chip.simds))
    return (
        _is_whole(tiling)
        and tiling.k_step <= _LONGEST_STEP
        and needed <= budget
        and scaled_lds_bytes(tiling, intrinsic) <= chip.lds_bytes
    )


def _is_whole(tiling: Tiling) -> bool:
    """Whether one wave sums all of K: what the scaled builder does."""
    return tiling.split_k == 1 and tiling.k_waves == 1


def _check(
    product: ScaledProduct, tiling: Tiling, intrinsic: Intrinsic, chip: Architecture
) -> None:
    if not _is_whole(tiling):
        raise ScheduleError(
            f"tiling: split_k={tiling.split_k}, k_waves={tiling.k_waves}: of scaled operands, K is"
            " not split"
        )
    steps = -(-product.extents[2] // tiling.k_step)
    check_tiling(tiling, intrinsic, chip, _element_bytes(intrinsic), steps, _loads(product, chip))
    if (needed := scaled_lds_bytes(tiling, intrinsic)) > chip.lds_bytes:
        raise ScheduleError(
            f"tiling: tiles with their scales take {needed} bytes of LDS, more than the"
            f" {chip.lds_bytes} of {chip.name}"
        )
