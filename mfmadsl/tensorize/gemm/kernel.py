"""The kernel of one GEMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from mfmadsl.model import Architecture, Intrinsic
from mfmadsl.model.architecture import WAVE_SIZE
from mfmadsl.model.closed_form import ClosedForm
from mfmadsl.model.signature import register_type
from mfmadsl.tensorize.error import ScheduleError
from mfmadsl.tensorize.gemm import emit
from mfmadsl.tensorize.gemm.emit import Emission
from mfmadsl.tensorize.gemm.epilogue import Output, bytes_of, c_by_rows
from mfmadsl.tensorize.gemm.fragment import fragments
from mfmadsl.tensorize.gemm.lds import NO_SWIZZLE, LdsTile, swizzle_for
from mfmadsl.tensorize.gemm.operand import OperandCode, Source, Step
from mfmadsl.tensorize.gemm.order import tile_of
from mfmadsl.tensorize.gemm.partials import Partials, batch_places
from mfmadsl.tensorize.gemm.pipeline import Pipeline, Work, zero
from mfmadsl.tensorize.gemm.problem import Axis, Matrix, Problem, constant
from mfmadsl.tensorize.gemm.staging import ColumnStaging, RowStaging, group_of, load_width
from mfmadsl.tensorize.gemm.tiling import Tiling, read_bytes

_TIR_TYPES = {
    "half": "float16", "float": "float32", "double": "float64", "bfloat": "int16", "i16": "int16",
    "i32": "int32", "i64": "int64",
}  # fmt: skip


@dataclass(frozen=True)
class Side:
    """One operand as the instruction sees it: `rows` is its axis in C, `tile` how many of them a
    workgroup takes, `waves` how many waves share them."""

    name: str
    matrix: Matrix
    rows: Axis
    k: Axis
    tile: int
    waves: int

    @property
    def k_together(self) -> bool:
        """Whether neighbours along K are neighbours in memory, and not those along the rows.

        Raises ScheduleError if neither are.
        """
        along_k, along_rows = (constant(s) for s in
                               (self.matrix.column_stride, self.matrix.row_stride))  # fmt: skip
        if along_k == 1 or along_rows == 1:
            return along_k == 1
        if 1 not in (constant(self.rows.extent), constant(self.k.extent)):
            raise ScheduleError(
                f"workload: of `{self.matrix.name}` neither neighbours along K nor its rows lie "
                "together in memory"
            )
        return constant(self.k.extent) == 1


def sides(problem: Problem, tiling: Tiling) -> tuple[Side, Side]:
    """The instruction's A and B: its A is the one whose rows lie together in C, because a lane
    holds several neighbouring rows of the result."""
    a = Side("a", problem.a, problem.m, problem.k, tiling.block[0], tiling.waves[0])
    b = Side("b", problem.b, problem.n, problem.k, tiling.block[1], tiling.waves[1])
    return (b, a) if c_by_rows(problem) else (a, b)


def gemm_kernel(
    problem: Problem, tiling: Tiling, intrinsic: Intrinsic, chip: Architecture
) -> tirx.PrimFunc:
    """The PrimFunc of one kernel, with the parameters of the workload."""
    code = _Kernel(problem, tiling, intrinsic, chip)
    return emit.function(problem.parameters, code.launches)


class _Kernel:
    def __init__(
        self, problem: Problem, tiling: Tiling, intrinsic: Intrinsic, chip: Architecture
    ) -> None:
        self.problem, self.tiling, self.intrinsic, self.chip = problem, tiling, intrinsic, chip
        self.left, self.right = sides(problem, tiling)
        self.k = _number(problem.k.extent)
        self.row_bytes = tiling.k_step * bytes_of(problem.a.dtype)
        self.rows = _tiles(problem.m.extent, tiling.block[0])
        self.columns = _tiles(problem.n.extent, tiling.block[1])
        self.steps = -(-self.k // tiling.k_step)
        # Parts of equal length: rounding up may leave fewer of them than were asked for.
        self.part = -(-self.steps // tiling.split_k)
        self.splits = -(-self.steps // self.part)
        self.short = self.k - (self.steps - 1) * tiling.k_step
        _, row, column = intrinsic.c.layout.inverse("lane", "register")
        self.row_of, self.column_of = row, column
        self.partials: Partials | None = None

    def launches(self) -> list[emit.Launch]:
        """The kernel itself; and with split K the one that adds up what it leaves behind."""
        tiles = self.rows * self.columns
        batches: Any = 1
        for axis in self.problem.batch:
            batches = batches * axis.extent
        if self.tiling.persistent:
            tiles = emit.least(tiles, self.chip.compute_units)
        grid = emit.narrow(tiles), self.splits, emit.narrow(batches)
        product = emit.Launch(grid, self.tiling.threads // WAVE_SIZE, self.body)
        if self.splits == 1:
            return [product]
        padded = [_tiles(side.rows.extent, side.tile) * side.tile
                  for side in (self.left, self.right)]  # fmt: skip
        kind = _TIR_TYPES[register_type(self.intrinsic, self.intrinsic.c).element]
        self.partials = Partials(self.problem, self.splits, batches, padded[0], padded[1], kind)
        return [product, self.partials.addition()]

    def body(self, workgroup: tuple[Any, ...], wave: Any, lane: Any) -> None:
        tiling = self.tiling
        x, split, z = workgroup
        self.wave, self.lane, self.split = wave, lane, split
        self.thread = emit.let("thread", wave * WAVE_SIZE + lane)
        self.batch_places = batch_places(self.problem, z)
        if self.partials is not None:
            self.partials.choose(split, z)
        tiles_m = emit.let("rows", emit.narrow(self.rows))
        tiles_n = emit.let("columns", emit.narrow(self.columns))
        if not tiling.persistent:
            self._tile(x, tiles_m, tiles_n)
            return
        count = emit.least(tiles_m * tiles_n, self.chip.compute_units)
        with emit.repeat("turn", (tiles_m * tiles_n - x + count - 1) // count) as turn:
            self._tile(emit.let("tile", x + turn * count), tiles_m, tiles_n)
            emit.barrier()

    def _tile(self, number: Any, tiles_m: Any, tiles_n: Any) -> None:
        tiling = self.tiling
        row, column = tile_of(number, tiles_m, tiles_n, self.chip.dies, tiling.group)
        first_m = emit.let("first_row", row * tiling.block[0])
        first_n = emit.let("first_column", column * tiling.block[1])
        first = {"a": first_m, "b": first_n}
        # Waves that share rows of A have neighbouring numbers.
        along = {"a": self.wave // tiling.waves[1], "b": self.wave % tiling.waves[1]}
        staged = [self._staging(side) for side in (self.left, self.right)]
        words = sum(s.rows_filled * self.row_bytes for s in staged) // 4
        memory = emit.shared("tiles", words, "int32")
        own = {
            side.name: emit.let(f"{side.name}_rows", along[side.name] * (side.tile // side.waves))
            for side in (self.left, self.right)
        }
        operands, start = [], 0
        for side, staging, fragment in zip(
            (self.left, self.right), staged, fragments(self.intrinsic), strict=True
        ):
            swizzle = NO_SWIZZLE
            if tiling.swizzle:
                swizzle = swizzle_for(self.row_bytes, self.chip.lds_read_banks)
            tile = LdsTile(staging.rows_filled, self.row_bytes, swizzle, start)
            start += tile.bytes // 4
            operands.append(
                OperandCode(
                    side.name, staging, tile, fragment, self._source(side, first[side.name]),
                    memory, self.thread, self.lane, own[side.name],
                    side.tile // side.waves // fragment.rows, read_bytes(tiling.k_pack, fragment),
                )
            )  # fmt: skip
        self.operands = operands
        left, right = operands
        for operand in operands:
            operand.prepare()
        kind = register_type(self.intrinsic, self.intrinsic.c)
        self.sum_type = _TIR_TYPES[kind.element]
        self.sums = [
            [emit.local(f"sum_{i}_{j}", kind.length, self.sum_type) for j in range(right.tiles)]
            for i in range(left.tiles)
        ]
        for sums in self.sums:
            for each in sums:
                emit.store(each, zero(self.sum_type, kind.length), 0, kind.length)
        shadow = dict(self.intrinsic.cycles)[self.chip.name] // 4 - 1
        Pipeline((left, right), self._products, shadow).emit(self._work())
        self._finish(first, own)

    # Along K

    def _work(self) -> Work:
        """All steps, or this workgroup's share of them. The first is the one that may be short:
        so the loop has full ones only."""
        step, steps, missing = self.tiling.k_step, self.steps, self.tiling.k_step - self.short
        first, count = 0, steps
        if self.splits > 1:
            first = self.split * self.part
            count = emit.let("steps", emit.least(steps - first, self.part))

        def place(t: Any) -> Step:
            number = emit.least(first + t, steps - 1)
            k = emit.most(number * step - missing, 0)
            if isinstance(t, int) and t == 0 and missing:
                length = self.short
                if self.splits > 1:
                    length = emit.select(self.split == 0, self.short, step)
                return Step(k, length)
            return Step(k)

        return Work(count, place)

    def _products(self, slot: int) -> list[Emission]:
        """The matrix instructions of one register step. The same sum comes again only after all
        others, so that none waits for the one before it."""
        left, right = self.operands
        return [
            lambda p=p, i=i, j=j: self._multiply(slot, p, i, j)  # type: ignore[misc]
            for p in range(left.fragment_bytes // left.fragment.lane_bytes)
            for i in range(left.tiles)
            for j in range(right.tiles)
        ]

    def _multiply(self, slot: int, p: int, i: int, j: int) -> None:
        left, right = self.operands
        a, b, c = (register_type(self.intrinsic, o) for o in
                   (self.intrinsic.a, self.intrinsic.b, self.intrinsic.c))  # fmt: skip
        values = [
            left.value(slot, i, p, emit.of_length(_TIR_TYPES[a.element], a.length)),
            right.value(slot, j, p, emit.of_length(_TIR_TYPES[b.element], b.length)),
            emit.load(self.sums[i][j], 0, c.length),
        ]
        result = emit.of_length(self.sum_type, c.length)
        plain = [T.int32(0)] * 3
        if a.element == "bfloat":
            product = T.call_extern(result, f"bfloat.{self.intrinsic.call}", *values, *plain)
        else:
            product = emit.intrinsic(result, self.intrinsic.call, *values, *plain)
        emit.store(self.sums[i][j], product, 0, c.length)

    # Where A and B come from

    def _staging(self, side: Side) -> RowStaging | ColumnStaging:
        tiling = self.tiling
        size = bytes_of(side.matrix.dtype)
        apart = _bytes(side.matrix.row_stride if side.k_together else side.matrix.column_stride,
                       size)  # fmt: skip
        if side.k_together:
            along = _bytes(self.k, size)
            # Loads of four bytes and more need no more alignment than that.
            width = 16 if _whole_words(apart, along) else load_width(2, apart, along)
            return RowStaging(side.tile, self.row_bytes, size, tiling.threads, width)
        together = _bytes(side.rows.extent, size)
        width = load_width(group_of(size) * size, together)
        if not _whole_words(apart):
            width = load_width(min(width, 2), apart)
        return ColumnStaging(side.tile, self.row_bytes, size, tiling.threads, width)

    def _source(self, side: Side, first: Any) -> Source:
        matrix, size = side.matrix, bytes_of(side.matrix.dtype)
        batch: Any = 0
        for place, stride in zip(self.batch_places, matrix.batch, strict=True):
            batch = batch + emit.wide(place) * emit.wide(stride)
        extent = side.rows.extent
        if side.k_together:
            apart, inner, outer = matrix.row_stride, self.k, extent
            skipped = emit.wide(first) * emit.wide(apart)
            left = None
        else:
            apart, inner, outer = matrix.column_stride, extent, self.k
            skipped = emit.wide(first)
            left = None
            if (constant(extent) or 1) % side.tile or constant(extent) is None:
                left = emit.let(f"{side.name}_left", emit.narrow(extent) - first)
        last = emit.wide(outer - 1) * emit.wide(apart) + emit.wide(inner)
        start = emit.let(f"{side.name}_origin", (batch + skipped) * size)
        end = emit.let(f"{side.name}_end", (batch + last) * size)
        stride = emit.narrow(apart) * size
        return Source(matrix.buffer.data, start, end, stride, left)

    # Where C goes

    def _finish(self, first: dict[str, Any], own: dict[str, Any]) -> None:
        """The sums of a wave, through the epilogue to C, or as they are to the workspace."""
        left, right = self.operands
        along, across = self.left.name, self.right.name
        output = Output(self.problem, self.batch_places)
        if self.partials is None:
            output.start(first[along], first[across])
        layout = self.intrinsic.c.layout
        length = output.length(layout.run_along_column())
        u0 = emit.let("along", own[along] + _of_lane(self.row_of, self.lane))
        v0 = emit.let("across", own[across] + _of_lane(self.column_of, self.lane))
        whole = (
            _divides(self.left.rows.extent, self.left.tile),
            _divides(self.right.rows.extent, self.right.tile),
        )
        for j in range(right.tiles):
            for i in range(left.tiles):
                for r in range(0, layout.registers, length):
                    u = u0 + (i * left.fragment.rows + self.row_of.value(lane=0, register=r))
                    v = v0 + (j * right.fragment.rows + self.column_of.value(lane=0, register=r))
                    if self.partials is not None:
                        value = emit.load(self.sums[i][j], r, length)
                        self.partials.put(value, first[along] + u, first[across] + v, length)
                        continue
                    sums = [emit.load(self.sums[i][j], r + x) for x in range(length)]
                    output.put(sums, u, v, whole)


def _number(extent: Any) -> int:
    number = constant(extent)
    assert number is not None
    return number


def _tiles(extent: Any, tile: int) -> Any:
    return (extent + tile - 1) // tile


def _divides(extent: Any, tile: int) -> bool:
    number = constant(extent)
    return number is not None and number % tile == 0


def _bytes(elements: Any, size: int) -> int | None:
    number = constant(elements)
    return None if number is None else number * size


def _whole_words(*numbers: int | None) -> bool:
    return all(number is not None and number % 4 == 0 for number in numbers)


def _of_lane(form: ClosedForm, lane: Any) -> Any:
    """The part of a place that depends on the lane."""
    value: Any = 0
    for digit in form.digits:
        if digit.variable != "lane":
            continue
        part = lane // digit.divisor
        if digit.divisor * digit.modulus < digit.extent:
            part = part % digit.modulus
        value = value + part * digit.scale
    return value
