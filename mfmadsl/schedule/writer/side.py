"""One operand of the product as the kernel sees it: where it lies, and how it is to be moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mfmadsl.model import Architecture
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.emit import bytes_of
from mfmadsl.schedule.writer.fetch import RowFetch, Source
from mfmadsl.schedule.writer.fetch_columns import ColumnFetch, TransposedFetch
from mfmadsl.schedule.writer.fragment import Fragment
from mfmadsl.schedule.writer.lds import (
    CHUNK,
    GRANULE,
    NO_SWIZZLE,
    LdsTile,
    TransposedTile,
    swizzle_for,
)
from mfmadsl.schedule.writer.operand import OperandCode, RowOperand, TransposedOperand
from mfmadsl.schedule.writer.problem import Axis, Matrix, Problem, constant
from mfmadsl.schedule.writer.staging import ColumnStaging, RowStaging, group_of, load_width
from mfmadsl.schedule.writer.tiling import Tiling, read_bytes

OFFSET_LIMIT = 1 << 31


@dataclass(frozen=True)
class Side:
    """`rows` is the operand's axis in C, `tile` how many of them a workgroup takes, `waves` how
    many waves share them; the instruction holds it as `fragment`."""

    name: str
    matrix: Matrix
    rows: Axis
    k: Axis
    tile: int
    waves: int
    fragment: Fragment

    @property
    def element_bytes(self) -> int:
        return bytes_of(self.matrix.dtype)

    @property
    def of_wave(self) -> int:
        """Rows of a wave."""
        return self.tile // self.waves

    @property
    def whole(self) -> bool:
        """Whether tiles come out even."""
        extent = constant(self.rows.extent)
        return extent is not None and extent % self.tile == 0

    @property
    def tiles(self) -> Any:
        """Tiles that cover the rows."""
        return (self.rows.extent + self.tile - 1) // self.tile

    @property
    def k_together(self) -> bool:
        """Whether neighbours along K are neighbours in memory, and not those along the rows.

        Raises ScheduleError if neither are.
        """
        along_k, along_rows = constant(self.matrix.column_stride), constant(self.matrix.row_stride)
        if along_k == 1 or along_rows == 1:
            return along_k == 1
        if 1 not in (constant(self.rows.extent), constant(self.k.extent)):
            raise ScheduleError(
                f"workload: of `{self.matrix.name}` neither neighbours along K nor its rows lie "
                "together in memory"
            )
        return constant(self.k.extent) == 1

    @property
    def apart(self) -> Any:
        """Elements between what does not lie together."""
        return self.matrix.row_stride if self.k_together else self.matrix.column_stride

    @property
    def load_width(self) -> int:
        """Bytes of the widest load that takes whole, aligned pieces; at least an element."""
        size = self.element_bytes
        apart = _bytes(self.apart, size)
        if self.k_together:
            along = _bytes(self.k.extent, size)
            # Loads of four bytes and more need no more alignment than that.
            width = CHUNK if _whole_words(apart, along) else load_width(2, apart, along)
        else:
            width = load_width(CHUNK, _bytes(self.rows.extent, size))
            if not _whole_words(apart):
                width = load_width(min(width, 2), apart)
        batches = [_bytes(stride, size) for stride in self.matrix.batch]
        if not _whole_words(*batches):
            width = load_width(min(width, 2), *batches)
        return max(size, width)

    def check_offsets(self, k_step: int) -> None:
        """Raise ScheduleError if a tile spans more than an offset can tell."""
        lines = self.tile if self.k_together else k_step
        if constant(self.apart) is not None and not _fits(lines, self.apart, self.element_bytes):
            raise ScheduleError(
                f"workload: {lines} lines of `{self.matrix.name}`, a tile, span {OFFSET_LIMIT} "
                "bytes or more, which offsets of 31 bits cannot tell"
            )

    def source(self, first: Any, batch: list[Any]) -> Source:
        """Where a tile comes from: from row `first` on, at these places of the batch axes."""
        matrix, size, apart = self.matrix, self.element_bytes, self.apart
        start: Any = 0
        for place, stride in zip(batch, matrix.batch, strict=True):
            start = start + emit.wide(place) * emit.wide(stride)
        inner, outer = self.k.extent, self.rows.extent
        skipped, left = emit.wide(first) * emit.wide(apart), None
        if not self.k_together:
            inner, outer = outer, inner
            skipped = emit.wide(first)
            if not self.whole:
                left = emit.let(f"{self.name}_left", emit.narrow(self.rows.extent) - first)
        last = emit.wide(outer - 1) * emit.wide(apart) + emit.wide(inner)
        return Source(
            matrix.buffer.data,
            emit.let(f"{self.name}_origin", (start + skipped) * size),
            emit.let(f"{self.name}_end", (start + last) * size),
            emit.narrow(apart) * size,
            left,
            not self.k_together and not _fits(self.k.extent, apart, size),
        )


@dataclass(frozen=True)
class Threads:
    """This thread's number in the workgroup, its wave (the same in all lanes), and its lane."""

    thread: Any
    wave: Any
    lane: Any


@dataclass(frozen=True)
class Lds:
    """The workgroup's LDS: stages of so many words, that loads fill directly or threads do."""

    memory: Any
    stage_words: int
    direct: bool


@dataclass(frozen=True)
class Moves:
    """How the tile of a side moves, and the words of LDS that it takes."""

    side: Side
    staging: RowStaging | ColumnStaging
    tile: LdsTile | TransposedTile

    @property
    def words(self) -> int:
        return self.tile.bytes // 4

    @property
    def can_be_direct(self) -> bool:
        """Whether loads of whole chunks can go straight into the LDS."""
        return isinstance(self.staging, RowStaging) and self.staging.width == CHUNK

    def code(
        self, source: Source, lds: Lds, threads: Threads, first_row: Any, tiling: Tiling
    ) -> OperandCode:
        """The code, for a wave whose rows start at `first_row` of the tile."""
        side, staging, tile = self.side, self.staging, self.tile
        common = (
            side.name, source, lds.memory, threads.thread, threads.wave, side.element_bytes,
            lds.stage_words, lds.direct,
        )  # fmt: skip
        lane = threads.lane
        wave = (
            side.fragment, lane, first_row, side.of_wave // side.fragment.rows,
            read_bytes(tiling.k_pack, side.fragment), tiling.k_step * side.element_bytes,
        )  # fmt: skip
        if isinstance(tile, TransposedTile):
            assert isinstance(staging, RowStaging)
            return TransposedOperand(TransposedFetch(*common, staging, tile), *wave, tile)
        if isinstance(staging, ColumnStaging):
            return RowOperand(ColumnFetch(*common, staging, tile), *wave, tile)
        return RowOperand(RowFetch(*common, staging, tile), *wave, tile)


def moves_of(side: Side, tiling: Tiling, chip: Architecture, first_word: int) -> Moves:
    """What suits the side's layout in memory, its alignment and the chip."""
    size, width = side.element_bytes, side.load_width
    row_bytes = tiling.k_step * size
    swizzle = swizzle_for(row_bytes, chip.lds_read_banks) if tiling.swizzle else NO_SWIZZLE
    if side.k_together:
        rows = RowStaging(side.tile, row_bytes, size, tiling.threads, width)
        return Moves(side, rows, LdsTile(rows.rows_filled, row_bytes, swizzle, first_word))
    read = max(side.fragment.lane_bytes, read_bytes(tiling.k_pack, side.fragment))
    if (
        chip.transposing_reads and size <= 2 and width == CHUNK and read % CHUNK == 0
        and side.tile * size >= CHUNK and side.tile >= GRANULE
    ):  # fmt: skip
        lines = RowStaging(tiling.k_step, side.tile * size, size, tiling.threads, width)
        if lines.chunks <= tiling.threads:
            turned = TransposedTile(side.tile, lines.rows_filled, size, first_word, tiling.swizzle)
            return Moves(side, lines, turned)
    columns = ColumnStaging(
        side.tile, row_bytes, size, tiling.threads, min(width, group_of(size) * size)
    )
    return Moves(side, columns, LdsTile(columns.rows_filled, row_bytes, swizzle, first_word))


def sides(
    problem: Problem, tiling: Tiling, c_by_rows: bool, fragments: tuple[Fragment, Fragment]
) -> tuple[Side, Side]:
    """The instruction's A and B: its A is the one whose rows lie together in C, because a lane
    holds several neighbouring rows of the result."""
    first, second = fragments[::-1] if c_by_rows else fragments
    a = Side(
        "a", problem.a, problem.m, problem.k, tiling.block[0], tiling.waves[0], first
    )  # fmt: skip
    b = Side("b", problem.b, problem.n, problem.k, tiling.block[1], tiling.waves[1], second)
    for side in (a, b):
        side.check_offsets(tiling.k_step)
    return (b, a) if c_by_rows else (a, b)


def _fits(count: Any, stride: Any, size: int) -> bool:
    """Whether so many strides are known to fit into an offset."""
    numbers = constant(count), constant(stride)
    return None not in numbers and numbers[0] * numbers[1] * size < OFFSET_LIMIT  # type: ignore[operator]


def _bytes(elements: Any, size: int) -> int | None:
    number = constant(elements)
    return None if number is None else number * size


def _whole_words(*numbers: int | None) -> bool:
    return all(number is not None and number % 4 == 0 for number in numbers)
