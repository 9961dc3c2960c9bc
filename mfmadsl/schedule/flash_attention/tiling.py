"""How an attention is cut, and which way is taken if none is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, prod

from mfmadsl.argument import check_extent, check_type, described
from mfmadsl.error import MfmadslError
from mfmadsl.language import find
from mfmadsl.model import Architecture, AttentionTiling, Intrinsic, unscaled
from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.chain import Chain
from mfmadsl.schedule.flash_attention.described import Attention, Axis
from mfmadsl.schedule.flash_attention.score import Score, score_of
from mfmadsl.schedule.flash_attention.ways import loads_straight
from mfmadsl.schedule.matrix_core.tiling.choice import choose_instruction
from mfmadsl.schedule.matrix_core.tiling.legal import MOST_STAGES
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK, LINE

MOST_SPLITS = 1024
"""Of the keys: a kernel that joins so many parts is long."""

_WIDE = 256  # columns and depth that a wave's registers hold of 32 queries
_FEW = 16  # queries for which the smaller instruction has rows enough
_WAVES, _KEYS, _KEYS_OF_FEW = 4, (128, 64, 32, 16), (32, 16)
_OTHERS, _OTHERS_BESIDE_LOADS = 64, 48  # registers that LLVM takes beside; if loads go past them
_MORE_REGISTERS = 40  # of long steps, and of wide ones and masked scores if loads go past them
_LONG = 64 * 128  # keys of a step times depth and columns
_LINES = 16 * 1024  # bytes of the LDS in which results lie, which may have no other place
_PARTS = 4  # of the keys, by waves, for each compute unit
_MOST_PARTS = 256


def default_tiling(found: Attention, chip: Architecture) -> AttentionTiling:
    """The tiling that should be fast.

    Raises ScheduleError where the chip has no instruction for the types, and where depth or columns
    are no numbers.
    """
    depth, columns = known_sizes(found)
    rows = constant(found.axes.row.extent)
    few = rows is not None and rows <= _FEW
    small = few or max(depth, columns) > _WIDE
    chosen = choose_instruction(found.dtype, found.dtype, chip.name, _FEW if small else None)
    instruction = unscaled(chosen)
    pack = max(1, CHUNK * 8 // bits_of(found.dtype) // instruction.a.layout.elements_per_lane)
    while pack > 1 and ceil(depth / instruction.k) % pack:
        pack //= 2
    waves = _WAVES if rows is None else max(1, min(_WAVES, ceil(rows / instruction.n)))
    period = Chain(instruction, pack, 1).period
    steps = [keys for keys in (_KEYS_OF_FEW if few else _KEYS) if keys % period == 0] or [period]
    offered = [
        replace(each, stages=2) if loads_straight(found, chain_of(each), each.keys, chip) else each
        for keys in steps
        for each in [AttentionTiling(chosen.name, waves, instruction.n, keys, pack, 1)]
    ]
    fitting = [each for each in offered if 2 * lds_bytes(each, found) <= chip.lds_bytes]
    sharing = [each for each in fitting if 2 * _registers(each, found, chip) <= chip.simd_registers]
    # Where registers leave no room for a second workgroup, the LDS need not.
    alone = [each for each in offered if lds_bytes(each, found) + _LINES <= chip.lds_bytes]
    taken = (sharing or alone or offered[-1:])[0]
    if (needed := lds_bytes(taken, found)) > chip.lds_bytes:
        raise ScheduleError(
            f"workload: a depth of {depth} and {columns} columns of V take {needed} bytes of the"
            f" LDS for {taken.keys} keys, of which {chip.name} has {chip.lds_bytes}"
        )
    return replace(taken, splits=_splits(taken, found, chip))


def _registers(tiling: AttentionTiling, found: Attention, chip: Architecture) -> int:
    """About how many vector registers a lane needs: of Q, P and what is on its way of K and V, of O
    and of the scores of two steps, and of fragments and addresses."""
    depth, columns = known_sizes(found)
    elements = tiling.rows * (depth + tiling.keys)
    if tiling.stages == 1:
        elements += ceil(tiling.keys * (depth + columns) / tiling.waves)
    sums = tiling.rows * (columns + 2 * tiling.keys)
    held = elements * bits_of(found.dtype) / 32 + sums
    if tiling.stages > 1:
        others = _OTHERS_BESIDE_LOADS
        is_more = depth + columns > _WIDE or not score_of(found).is_plain
    else:
        others, is_more = _OTHERS, tiling.keys * (depth + columns) > _LONG
    return ceil(held / chip.wave_size) + others + (_MORE_REGISTERS if is_more else 0)


def _splits(tiling: AttentionTiling, found: Attention, chip: Architecture) -> int:
    """Into how many parts keys are cut, so that all compute units have work."""
    groups = prod(constant(axis.extent) or chip.compute_units for axis in found.axes.batch)
    rows, keys = (constant(axis.extent) for axis in (found.axes.row, found.axes.key))
    if rows is None:
        return 1
    groups *= ceil(rows / tiling.block)
    if groups >= chip.compute_units:
        return 1
    wanted = max(1, min(_PARTS * chip.compute_units // (groups * tiling.waves), _MOST_PARTS))
    if keys is None:
        return wanted
    steps = ceil(keys / tiling.keys)
    return ceil(steps / ceil(steps / wanted))


def known_sizes(found: Attention) -> tuple[int, int]:
    """(depth, columns of V). Raises ScheduleError where one is a symbol."""
    return known_size("depth", found.axes.depth), known_size("columns of V", found.axes.column)


def known_size(name: str, axis: Axis) -> int:
    """The extent of an axis. Raises ScheduleError where it is a symbol."""
    number = constant(axis.extent)
    if number is None:
        raise ScheduleError(f"workload: the {name} is `{axis.extent}`, but has to be known")
    return number


def lds_bytes(tiling: AttentionTiling, found: Attention) -> int:
    """The bytes of a workgroup's tiles, and of lines of results that have no place there."""
    depth, columns = known_sizes(found)
    tiles = tiles_bytes(tiling, found.dtype, [depth], [columns], score_of(found))
    return tiles + lines_bytes(tiling, found)


def tiles_bytes(
    tiling: AttentionTiling, dtype: str, depths: Sequence[int], columns: Sequence[int], score: Score
) -> int:
    """The bytes of tiles of keys and of values, and of what a score reads for each key."""
    chain = chain_of(tiling)
    rows = sum(ceil(depth / chain.first.k) * chain.first.k for depth in depths)
    rows += sum(ceil(each / chain.intrinsic.m) * chain.intrinsic.m for each in columns)
    of_reads = 0
    for read in score.reads:
        if read.of_keys:
            of_reads += (tiling.block if read.of_queries else 1) * max(8, bits_of(read.dtype)) // 8
    return tiling.stages * tiling.keys * (rows * bits_of(dtype) // 8 + of_reads)


def lines_bytes(tiling: AttentionTiling, found: Attention) -> int:
    """The bytes of lines of results, if they have no place where tiles were: those of one type
    share one."""
    dtypes = {str(each.store.buffer.dtype) for each in found.results if each.of_columns}
    dtypes = {"float32"} if tiling.splits > 1 else dtypes
    return len(dtypes - {found.dtype}) * tiling.block * LINE


def checked(tiling: AttentionTiling, found: Attention, chip: Architecture) -> Chain:
    """What a tiling makes of its instruction.

    Raises ScheduleError for a tiling that is not legal for the attention on the chip.
    """
    check_type("tiling", tiling, AttentionTiling, "an AttentionTiling")
    for name in ("waves", "rows", "keys", "k_pack", "value_pack", "splits", "stages"):
        check_extent(f"tiling.{name}", getattr(tiling, name))
    check_type("tiling.instruction", tiling.instruction, str, "an intrinsic's name")
    try:
        instruction = find(tiling.instruction)
    except MfmadslError as unknown:
        raise ScheduleError(f"tiling.instruction: {unknown}") from unknown
    _check_instruction(instruction, found, chip)
    chain = chain_of(tiling)
    if tiling.rows % instruction.n:
        raise ScheduleError(
            f"tiling.rows: {tiling.rows} is no multiple of the {instruction.n} columns of"
            f" {instruction.name}"
        )
    if tiling.keys % chain.period:
        raise ScheduleError(
            f"tiling.keys: {tiling.keys} is no multiple of {chain.period}: an instruction makes"
            f" scores of {instruction.m} keys, and value_pack={tiling.value_pack} of them sum over"
            f" {chain.second.k}"
        )
    if tiling.splits > 1 and found.packed is not None:
        raise ScheduleError(
            "tiling.splits: is 1 where queries of batches lie one behind the other, not"
            f" {tiling.splits}"
        )
    if tiling.stages > MOST_STAGES:
        raise ScheduleError(f"tiling.stages: is at most {MOST_STAGES}, not {tiling.stages}")
    if tiling.splits > MOST_SPLITS:
        raise ScheduleError(f"tiling.splits: is at most {MOST_SPLITS}, not {tiling.splits}")
    known_sizes(found)
    threads = tiling.waves * chip.wave_size
    if threads > chip.max_threads:
        raise ScheduleError(
            f"tiling.waves: {tiling.waves} have {threads} threads, but a workgroup on {chip.name}"
            f" has at most {chip.max_threads}"
        )
    check_lds(tiling, lds_bytes(tiling, found), lines_bytes(tiling, found), chip)
    sums = tiling.rows * (known_sizes(found)[1] + tiling.keys) // chip.wave_size
    if sums > chip.registers:
        raise ScheduleError(
            f"tiling.rows: a lane has {sums} sums of {tiling.rows} queries, but {chip.registers}"
            " registers: take fewer, or fewer keys"
        )
    return chain


def check_lds(tiling: AttentionTiling, needed: int, lines: int, chip: Architecture) -> None:
    """Raise ScheduleError for tiles, and lines of results, of more bytes than the LDS has."""
    if needed > chip.lds_bytes:
        places = f" in {tiling.stages} stages" if tiling.stages > 1 else ""
        room = max(0, chip.lds_bytes - lines) * tiling.keys * tiling.stages // (needed - lines)
        raise ScheduleError(
            f"tiling.keys: tiles of {tiling.keys} keys{places} and lines of {tiling.block} results"
            f" take {needed} bytes of the LDS, of which {chip.name} has {chip.lds_bytes}: {room}"
            " keys in one stage would fit"
        )


def chain_of(tiling: AttentionTiling) -> Chain:
    """An instruction with scales is taken without them."""
    return Chain(unscaled(find(tiling.instruction)), tiling.k_pack, tiling.value_pack)


def _check_instruction(instruction: Intrinsic, found: Attention, chip: Architecture) -> None:
    types = instruction.a.type.dtype, instruction.b.type.dtype, instruction.c.type.dtype
    if types != (found.dtype, found.dtype, "float32"):
        raise ScheduleError(
            f"tiling.instruction: {instruction.name} multiplies {types[0]} by {types[1]} into"
            f" {types[2]}, not {found.dtype} into float32"
        )
    if chip.name not in instruction.chips:
        raise ScheduleError(f"tiling.instruction: {chip.name} has no {instruction.name}")
    if instruction.blocks > 1 or instruction.sparse:
        raise ScheduleError(
            f"tiling.instruction: {described(instruction.name)} does no plain product"
        )
