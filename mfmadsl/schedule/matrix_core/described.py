"""A GEMM of scaled or sparse operands as a schedule: its instruction, tiling, and whole tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from types import NoneType

import tvm
from tvm import s_tir, tirx
from tvm.ir import TensorLoad
from tvm.s_tir import Schedule
from tvm.tirx import Buffer, Var

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.builder import Builder, parts_of_k
from mfmadsl.schedule.matrix_core.instruction import of_one_instruction
from mfmadsl.schedule.matrix_core.stage import reads_turned
from mfmadsl.schedule.matrix_core.tile_loops import WORD
from mfmadsl.schedule.matrix_core.tiling.choice import (
    ProductShape,
    estimated,
    throughput,
)
from mfmadsl.schedule.matrix_core.tiling.columns_together import ColumnsTogether, columns_together
from mfmadsl.schedule.matrix_core.tiling.fastest import fastest_first
from mfmadsl.schedule.matrix_core.tiling.legal import check_tiling
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead, k_bytes_of
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK, Loads, registers
from mfmadsl.schedule.product.address_space import check_addresses
from mfmadsl.schedule.product.column_groups import group_columns
from mfmadsl.schedule.product.dataflow import (
    check_bound,
    check_compact,
    check_consumers,
    check_producers,
    check_written_once,
)
from mfmadsl.schedule.product.described import DescribedProduct, described_intrinsics
from mfmadsl.schedule.product.memory import (
    Memory,
    argument_load,
    stored_memory,
)
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.plain import BlockRead, PlainProduct
from mfmadsl.schedule.product.shuffle import Shuffle, shuffle_of
from mfmadsl.schedule.product.whole_tiles import in_whole_tiles
from mfmadsl.tvm_refusal import tvm_refusal

_RESULT_BYTES = 4
_LONGEST_STEP = 1024  # elements of K
_THROUGH_REGISTERS = 16  # of addresses and masks, where not all goes straight into the LDS
_OF_ANOTHER_WORD = 32  # that a thread fetches ahead by itself, as LLVM was seen to need


def described_schedule(
    product: DescribedProduct, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Schedule:  # fmt: skip
    """What `gemm_schedule` gives for a described product. Raises ScheduleError as that does."""
    function = product.function
    check_addresses(function)
    check_compact(function)
    check_written_once(function)
    check_producers(function, product.nest)
    check_consumers(function, product.result)
    taken = described_tiling(product, intrinsic, tiling, chip)
    parts, length = parts_of_k(taken, product.extents[3])
    *_, i, j, _ = product.nest.block.iter_vars
    result = stored_memory(function, product.nest.store, i, j)
    with tvm_refusal("workload", ScheduleError):
        whole = in_whole_tiles(product, (*taken.block, parts * length))
        sch = s_tir.Schedule(tvm.IRModule({"main": whole}))
        plain = PlainProduct(
            sch.get_sblock(product.nest.name), tuple(_reads(product)), product.extents,
            result, ("A", "B", "C"), in_whole_tiles=True,
        )  # fmt: skip
        Builder(sch, plain, find(taken.instruction), taken, chip).build()
    check_bound(function_of(sch))
    return sch


def _reads(product: DescribedProduct) -> Iterator[BlockRead]:
    for name, (side, columns) in product.form.columns.items():
        buffer = product.reads[name]
        row, size = int(buffer.shape[-1]), _bytes_of(buffer)
        along = "k" if name != "B" or product.form.b_transposed else "j"
        shuffle = _shuffle(product, name)
        yield BlockRead(name, side, columns, size, Memory(along, row, row, size), shuffle)


def _shuffle(product: DescribedProduct, name: str) -> Shuffle | None:
    """How what is read is shuffled in memory, if it is."""
    if name == "B" and not product.form.b_transposed:
        return None
    found, places = _in_argument(product, name)
    return None if found is None else shuffle_of(found, places[-2:])


def _in_argument(product: DescribedProduct, name: str) -> tuple[TensorLoad | None, list[Var]]:
    """The element of an argument that what is read comes from, and the places of the read."""
    buffer = product.reads[name]
    places = [tirx.Var("at", "int32") for _ in buffer.shape]
    return argument_load(product.function, tirx.BufferLoad(buffer, places)), places


def _bytes_of(buffer: Buffer) -> int:
    return int(tvm.DataType(str(buffer.dtype)).bits) // 8


def described_tiling(
    product: DescribedProduct, intrinsic: Intrinsic | str | None, tiling: Tiling | None,
    chip: Architecture,
) -> Tiling:  # fmt: skip
    """The tiling that is asked for, or that which should be the fastest by the formula.

    Raises ScheduleError for one that cannot be.
    """
    check_type("tiling", tiling, (Tiling, NoneType), "a Tiling")
    if tiling is None:
        return described_tilings(product, intrinsic, chip)[0]
    tiling, chosen = of_one_instruction(
        tiling, intrinsic, lambda asked: _instructions(product, asked, chip)
    )
    steps = -(-product.extents[3] // tiling.k_step)
    k_bytes = k_bytes_of(tuple(_traffic(product)))
    check_tiling(tiling, chosen, chip, k_bytes, steps, _loads(product, chip))
    _together(product, chip).check(tiling, chosen)
    return tiling


def described_tilings(
    product: DescribedProduct, intrinsic: Intrinsic | str | None, chip: Architecture
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    instructions = _instructions(product, intrinsic, chip)
    s, m, n, k = product.extents
    reads = tuple(_traffic(product))
    together = _together(product, chip)
    shape = ProductShape(m, n, k, s, reads, _RESULT_BYTES, _loads(product, chip), together)
    found = [
        # Across tiles LLVM keeps more registers than there are.
        (estimate, replace(tiling, persistent=False))
        for estimate, tiling in estimated(shape, instructions, chip)
        if _is_offered(tiling, find(tiling.instruction), chip, shape)
    ]
    if not found:
        raise ScheduleError(f"no tiling for {instructions[0].name} fits {chip.name}")
    # Parts of what lies together are copied by bytes, and not ahead.
    read = tuple(_reads(product))
    whole = [each for each in found if _has_whole_tiles(each[1], read)]
    return fastest_first(whole or found)


def _has_whole_tiles(tiling: Tiling, reads: Sequence[BlockRead]) -> bool:
    """Whether a workgroup has whole tiles of what is shuffled."""
    return all(
        read.shuffle.within(tiling.block[read.side], int(tiling.k_step * read.columns))
        for read in reads
        if read.shuffle is not None
    )


def _instructions(
    product: DescribedProduct, asked: Intrinsic | str | None, chip: Architecture
) -> list[Intrinsic]:
    """The instructions of the chip for the product's types: the fastest, or the one asked for."""
    every, kind = described_intrinsics(product.form), product.form.kind
    found = [each for each in every if chip.name in each.chips]
    spoken = " and ".join(dict.fromkeys(product.form.types))
    if not found:
        having = " and ".join(dict.fromkeys(name for each in every for name in each.chips))
        raise ScheduleError(
            f"{chip.name} has no {kind} matrix instruction for {spoken}, as {having} has:"
            " decompress A before"
        )
    if asked is None:
        fastest = max(throughput(each, chip.name) for each in found)
        return [each for each in found if throughput(each, chip.name) == fastest]
    check_type("intrinsic", asked, (Intrinsic, str), "an Intrinsic or its name")
    chosen = find(asked) if isinstance(asked, str) else asked
    if chosen not in found:
        raise ScheduleError(
            f"{chosen.name} does not multiply {kind} {spoken} on {chip.name}: "
            f"{' and '.join(each.name for each in found)} do"
        )
    return [chosen]


def _traffic(product: DescribedProduct) -> Iterator[MemoryRead]:
    """What is read of A and B, and of their scales or index."""
    for name, (side, columns) in product.form.columns.items():
        of_k, width = float(columns), _columns_together(product, name)
        together = None if width is None else width / of_k
        yield MemoryRead(side, of_k * _bytes_of(product.reads[name]), together)


def _columns_together(product: DescribedProduct, name: str) -> int | None:
    """How many columns of a row lie together before those of the next row; None if all do."""
    if name == "B" and not product.form.b_transposed:
        return 1
    found, places = _in_argument(product, name)
    if found is None or len(found.indices) < 2 or not found.indices[-2].same_as(places[-2]):
        return None
    width = int(found.source.shape[-1])
    return width if width < int(product.reads[name].shape[-1]) else None


def _loads(product: DescribedProduct, chip: Architecture) -> Loads:
    """How the operands come from memory: rows of whole chunks and words may go straight there."""
    rows = {
        name: int(buffer.shape[-1]) * _bytes_of(buffer) for name, buffer in product.reads.items()
    }
    whole = all(row % (CHUNK if name in "AB" else WORD) == 0 for name, row in rows.items())
    turned = not product.form.b_transposed and not reads_turned(chip, _bytes_of(product.reads["B"]))
    shifted = rows["A"] % WORD != 0, rows["B"] % WORD != 0
    return Loads(chip.wide_loads_to_lds and whole and not turned, shifted, (False, turned))


def _together(product: DescribedProduct, chip: Architecture) -> ColumnsTogether:
    """The columns that a wave has to store together."""
    by_k = not product.form.b_transposed
    turned = by_k and reads_turned(chip, _bytes_of(product.reads["B"]))
    return columns_together(group_columns(product.function), product.extents[2], turned)


def _is_offered(
    tiling: Tiling, intrinsic: Intrinsic, chip: Architecture, shape: ProductShape
) -> bool:
    """Whether a tiling leaves registers for scales or an index, and takes no minutes to build."""
    tiles = tiling.wave_tile[0] // intrinsic.m + tiling.wave_tile[1] // intrinsic.n
    needed = registers(tiling, intrinsic, shape.k_bytes, shape.loads) + tiles
    if not shape.loads.direct:
        needed += _THROUGH_REGISTERS
    threads = tiling.wave_count * chip.wave_size
    words = (
        tiling.block[each.side] * tiling.k_step * each.k_bytes / WORD / threads
        for each in shape.reads
        if each.together is not None and each.k_bytes * each.together == WORD
    )
    if tiling.stages > 1:
        needed += _OF_ANOTHER_WORD * max(0, ceil(max(words, default=0)) - 1)
    budget = chip.registers // max(1, ceil(tiling.wave_count / chip.simds))
    return tiling.k_step <= _LONGEST_STEP and needed <= budget
