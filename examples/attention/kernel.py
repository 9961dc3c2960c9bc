"""What the kernels of one launch have in common: how the work is cut, and who does it.

A workgroup has 128 queries of a head, 32 for each of its four waves, and walks over the keys in
steps of 64 or 32. A step's body is written block by block, and scheduled here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlock, Schedule
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Expr, PrimFunc

import mfmadsl
from examples.attention.size import Size
from mfmadsl.model import AttentionTiling, architecture
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.schedule import load_intrinsic
from mfmadsl.schedule.flash_attention.loops import bound, named
from mfmadsl.schedule.flash_attention.reader import attention_of
from mfmadsl.schedule.flash_attention.score import score_of
from mfmadsl.schedule.flash_attention.tiling import checked
from mfmadsl.schedule.flash_attention.wave import (
    Cut,
    WavePlace,
    WaveRegisters,
    batch_places,
    registers,
)
from mfmadsl.schedule.matrix_core.stage import GROUP, PIECE, turned_pieces
from mfmadsl.schedule.matrix_core.tile_loops import bind_copy, chunks_along_k

TILINGS = {
    "gfx942": AttentionTiling("mfma_f32_32x32x8_f16", 4, 32, 64, 2, 1),
    "gfx950": AttentionTiling("mfma_f32_32x32x16_f16", 4, 32, 64, 1, 1),
}
"""Those in which matrix cores have most to do for each step of a workgroup."""

FEW_REGISTERS = {
    "gfx942": replace(TILINGS["gfx942"], keys=32), "gfx950": replace(TILINGS["gfx950"], stages=2),
}  # fmt: skip
"""Those that `attention_schedule` takes for long attentions of 128 columns: their registers leave
room for a second workgroup. A step has fewer keys, or loads go straight into the LDS."""

CAUSAL = {**FEW_REGISTERS, "gfx950": replace(FEW_REGISTERS["gfx950"], keys=32)}
"""Those for masked scores, which take more registers themselves."""

UNPIPELINED = {**TILINGS, "gfx942": FEW_REGISTERS["gfx942"]}
"""Those of loops in which nothing overlaps: workgroups that share a compute unit wait in turn, and
64 KB of LDS have room for two only of shorter tiles."""

Body = Callable[[Cut, WavePlace, WaveRegisters], None]
"""Writes what a wave does."""


@dataclass(frozen=True)
class TurnedInRegisters(Cut):
    """A cut whose values are turned around on their way into the LDS, on any chip."""

    @property
    def turns_values(self) -> bool:
        return False


@dataclass(frozen=True)
class InOrder(TurnedInRegisters):
    """A cut whose keys stay in their order, whatever the second product would take."""

    def key_of(self, row: Expr) -> Expr:
        return row


def workload(size: Size, causal: bool) -> PrimFunc:
    """What all steps compute."""
    return mfmadsl.attention(1, size.heads, size.queries, size.keys, size.depth, causal=causal)


def cut_of(
    size: Size, tiling: AttentionTiling, arch: str, causal: bool = False, kind: type[Cut] = Cut
) -> Cut:
    """An attention that is cut. Raises ScheduleError where a limit of the chip is broken."""
    chip = architecture(arch)
    found = attention_of(workload(size, causal))
    return kind(found, tiling, checked(tiling, found, chip), chip, score_of(found))


def written(cut: Cut, body: Body, last_first: bool) -> PrimFunc:
    """The function of a kernel with a body. Heads count fastest in the grid, so that workgroups
    that follow each other have as much to do."""
    source, tiling = cut.found.function, cut.tiling
    groups = tirx.floordiv(cut.found.axes.row.extent + (tiling.block - 1), tiling.block)
    batches = prod((axis.extent for axis in cut.found.axes.batch), start=tirx.const(1, "int32"))
    with IRBuilder() as builder, script.prim_func(s_tir=True):
        script.func_name("main")
        script.func_attr(dict(source.attrs or {}))
        for parameter in source.params:
            script.arg(parameter.name, parameter)
        with (
            bound(batches, "blockIdx.x", "batch") as batch,
            bound(groups, "blockIdx.y", "group") as group,
            bound(tiling.waves, "threadIdx.y", "wave") as wave,
            script.sblock("attention"),
        ):
            own_batch, own_group, own_wave = (
                named(f"own_{name}", script.axis.spatial(extent, loop))
                for name, extent, loop in (
                    ("batch", batches, batch), ("group", groups, group),
                    ("wave", tiling.waves, wave),
                )
            )  # fmt: skip
            if last_first:
                own_group = groups - 1 - own_group
            first, own = own_group * tiling.block, own_wave * tiling.rows
            zero = tirx.const(0, "int32")
            batch_axes = batch_places(cut, own_batch)
            keys, rows = cut.keys_of(batch_axes), cut.found.axes.row.extent
            place = WavePlace(batch_axes, keys, rows, zero, first, first + own, own)
            body(cut, place, registers(cut))
    function: PrimFunc = builder.get()
    return function


def scheduled(cut: Cut, body: Body, last_first: bool = False) -> Schedule:
    """The schedule of a kernel: instructions for its products and reads of the LDS, and threads for
    its copies, each found by its block's name, behind which a loop may have put its number. With
    `last_first` the workgroups of the last queries begin first."""
    function = written(cut, body, last_first)
    sch = Schedule(tvm.IRModule({"main": function}))
    first = load_intrinsic(cut.chain.intrinsic, cut.chain.first_pack)
    second = load_intrinsic(cut.chain.intrinsic, cut.chain.second_pack)
    instructions = {
        "S_first_zero": (first.FILL, 2), "S_first": (first.COMPUTE, 3),
        "S_zero": (first.FILL, 2), "S": (first.COMPUTE, 3), "O": (second.COMPUTE, 3),
        "K_load": (first.LOAD_A_SHARED, 2), "V_load": (second.LOAD_A_SHARED, 2),
        "P_load": (second.LOAD_B_TRANSPOSED_SHARED, 2),
    }  # fmt: skip
    copies = {"K_copy": _copy_rows, "V_copy": _copy_turned}
    if cut.turns_values:
        copies["V_copy"] = _copy_rows
        instructions["V_load"] = second.LOAD_A_TRANSPOSED_SHARED, 2
    for name in _blocks(function):
        kind = re.sub(r"_\d+$", "", name)
        if kind in instructions:
            instruction, loops = instructions[kind]
            sch.tensorize(sch.get_loops(sch.get_sblock(name))[-loops], instruction)
        elif kind in copies:
            copies[kind](sch, cut, name)
    return sch


def _blocks(function: PrimFunc) -> list[str]:
    names: list[str] = []

    def found(block: SBlock) -> None:
        names.append(str(block.name_hint))

    tvm_ffi.structural_walk(function.body, (SBlock, found))
    return names


def _copy_rows(sch: Schedule, cut: Cut, name: str) -> None:
    """A thread copies 16 bytes of a row at a time."""
    _, rows, columns = sch.get_loops(sch.get_sblock(name))
    units = chunks_along_k(
        sch,
        rows,
        columns,
        _extents(sch, rows, columns),
        _bytes(cut),
        _threads(cut),
        cut.tiling.stages > 1,
    )
    bind_copy(sch, units, cut.tiling.waves, cut.chip)


def _copy_turned(sch: Schedule, cut: Cut, name: str) -> None:
    """A thread copies a square, which is turned around in its registers."""
    _, columns, rows = sch.get_loops(sch.get_sblock(name))
    piece = PIECE // _bytes(cut), GROUP // _bytes(cut)
    units = turned_pieces(
        sch, columns, rows, _extents(sch, columns, rows), _bytes(cut), piece, _threads(cut), 1, True
    )
    bind_copy(sch, units, cut.tiling.waves, cut.chip)


def _extents(sch: Schedule, *loops: Any) -> list[int]:
    return [int(sch.get(loop).extent) for loop in loops]


def _bytes(cut: Cut) -> int:
    return bits_of(cut.found.dtype) // 8


def _threads(cut: Cut) -> int:
    return cut.tiling.waves * cut.chip.wave_size
