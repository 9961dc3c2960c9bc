"""The kernel of one GEMM."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from mfmadsl.model import Architecture, Intrinsic
from mfmadsl.model.architecture import WAVE_SIZE
from mfmadsl.model.closed_form import ClosedForm, Digit
from mfmadsl.model.signature import SCALED_FORMATS, register_type
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.emit import Piece, piece
from mfmadsl.schedule.writer.epilogue import Output, c_by_rows
from mfmadsl.schedule.writer.fetch import Step
from mfmadsl.schedule.writer.fragment import fragments
from mfmadsl.schedule.writer.operand import OperandCode
from mfmadsl.schedule.writer.order import by_die, in_groups
from mfmadsl.schedule.writer.partials import Partials, batch_places
from mfmadsl.schedule.writer.pipeline import OneBuffer, TwoBuffers, Work, zero
from mfmadsl.schedule.writer.problem import Problem, constant
from mfmadsl.schedule.writer.side import Lds, Threads, moves_of, sides
from mfmadsl.schedule.writer.tiling import Tiling

_MOST_TILES = 2**31 - 2**16  # counted in 32 bits, with a chip's worth to spare

_TIR_TYPES = {
    "half": "float16", "float": "float32", "double": "float64", "bfloat": "int16", "i16": "int16",
    "i32": "int32", "i64": "int64",
}  # fmt: skip


def gemm_kernel(
    problem: Problem, tiling: Tiling, intrinsic: Intrinsic, chip: Architecture
) -> tirx.PrimFunc:
    """The PrimFunc of a GEMM, with the parameters of the workload.

    `intrinsic` has the types that `side.sides` gives it, and the tiling is legal.
    """
    code = _Kernel(problem, tiling, intrinsic, chip)
    return emit.function(problem.parameters, code.launches)


class _Kernel:
    def __init__(
        self, problem: Problem, tiling: Tiling, intrinsic: Intrinsic, chip: Architecture
    ) -> None:
        self.problem, self.tiling, self.chip = problem, tiling, chip
        self.left, self.right = sides(problem, tiling, c_by_rows(problem), fragments(intrinsic))
        self.multiplier = Multiplier(intrinsic)
        k = constant(problem.k.extent)
        assert k is not None
        self.steps = -(-k // tiling.k_step)
        self.short = k - (self.steps - 1) * tiling.k_step
        # Parts of equal length: rounding up may leave fewer of them than were asked for.
        self.part = -(-self.steps // tiling.split_k)
        self.splits = -(-self.steps // self.part)
        self.partials: Partials | None = None
        self.rows, self.columns = (
            side.tiles for side in sorted((self.left, self.right), key=lambda side: side.name)
        )

    def launches(self) -> list[emit.Launch]:
        """The kernel itself; and with split K the one that adds up what it leaves behind."""
        batches: Any = 1
        for axis in self.problem.batch:
            batches = batches * axis.extent
        tiles = self.rows * self.columns * batches
        if isinstance(tiles, int) and tiles > _MOST_TILES:
            raise ScheduleError(f"workload: {tiles} tiles are more than a grid has, {_MOST_TILES}")
        if self.tiling.persistent:
            tiles = emit.least(tiles, self.chip.compute_units)
        grid = emit.narrow(tiles), self.splits, 1
        product = emit.Launch(grid, self.tiling.threads // WAVE_SIZE, self.body)
        if self.splits == 1:
            return [product]
        along, across = (side.tiles * side.tile for side in (self.left, self.right))
        self.partials = Partials(
            self.problem, self.splits, batches, along, across, self.multiplier.sum_type
        )
        return [product, self.partials.addition()]

    def body(self, workgroup: tuple[Any, ...], wave: Any, lane: Any) -> None:
        x, split, _ = workgroup
        self.wave, self.lane, self.split = wave, lane, split
        self.threads = Threads(emit.let("thread", wave * WAVE_SIZE + lane), wave, lane)
        batches: Any = 1
        for axis in self.problem.batch:
            batches = batches * emit.narrow(axis.extent)
        rows = emit.let("rows", emit.narrow(self.rows))
        columns = emit.let("columns", emit.narrow(self.columns))
        tiles = rows * columns * batches
        if not self.tiling.persistent:
            self._tile(by_die(x, tiles, self.chip.dies), rows, columns)
            return
        workgroups = emit.least(tiles, self.chip.compute_units)
        with emit.repeat("turn", (tiles - x + workgroups - 1) // workgroups) as turn:
            self._tile(by_die(x + turn * workgroups, tiles, self.chip.dies), rows, columns)
            emit.barrier()  # the next tile goes where this one was

    def _tile(self, number: Any, rows: Any, columns: Any) -> None:
        """One tile of C, of one batch, or this workgroup's part of its K."""
        tiling, both = self.tiling, (self.left, self.right)
        number = emit.let("tile", number)
        z: Any = 0
        if self.problem.batch:
            z = emit.let("batch", emit.uniform(number // (rows * columns)))
            number = number % (rows * columns)
        self.batch = batch_places(self.problem, z)
        if self.partials is not None:
            self.partials.choose(self.split, z)
        row, column = in_groups(number, rows, columns, tiling.group)
        # Behind a call, so that TVM's simplifier does not look into them: with symbolic extents it
        # would never come back.
        first = {
            "a": emit.let("first_row", emit.uniform(row * tiling.block[0])),
            "b": emit.let("first_column", emit.uniform(column * tiling.block[1])),
        }
        # Waves that share rows of A have neighbouring numbers.
        place = {"a": self.wave // tiling.waves[1], "b": self.wave % tiling.waves[1]}
        own = [emit.let(f"{s.name}_of_wave", place[s.name] * s.of_wave) for s in both]
        left = moves_of(self.left, tiling, self.chip, 0)
        moves = left, moves_of(self.right, tiling, self.chip, left.words)
        words = sum(m.words for m in moves)
        direct = (
            tiling.stages == 2
            and self.chip.wide_loads_to_lds
            and all(m.can_be_direct for m in moves)
        )
        lds = Lds(emit.shared("tiles", words * tiling.stages, "int32"), words, direct)
        operands = [
            m.code(
                m.side.source(first[m.side.name], self.batch), lds, self.threads, of_wave, tiling
            )
            for m, of_wave in zip(moves, own, strict=True)
        ]
        for operand in operands:
            operand.prepare()
        self.multiplier.prepare((operands[0], operands[1]))
        pipeline = OneBuffer if tiling.stages == 1 else TwoBuffers
        pipeline((operands[0], operands[1]), self.multiplier.products).emit(self._work())
        self._finish([first[side.name] for side in both], own)

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
            if not (isinstance(t, int) and t == 0 and missing):
                return Step(k)
            length = self.short
            if self.splits > 1:
                length = emit.select(self.split == 0, self.short, step)
            return Step(k, length)

        return Work(count, place)

    def _finish(self, first: list[Any], own: list[Any]) -> None:
        """The sums of a wave, through the epilogue to C, or as they are to the workspace."""
        output = Output(self.problem, self.batch)
        if self.partials is None:
            output.start(*first)
        multiplier = self.multiplier
        length = output.length(multiplier.run)
        u0, v0 = (
            emit.let(name, of_wave + _of_lane(form, self.lane))
            for name, of_wave, form in zip(
                ("along", "across"), own, (multiplier.row, multiplier.column), strict=True
            )
        )
        for u_fixed, v_fixed, sums in multiplier.runs(length):
            u, v = u0 + u_fixed, v0 + v_fixed
            if self.partials is not None:
                self.partials.put(sums.together(), first[0] + u, first[1] + v, length)
            else:
                output.put(sums.apart(), u, v, (self.left.whole, self.right.whole))


class Run:
    """Sums that lie side by side in C, and in registers."""

    def __init__(self, registers: Any, first: int, length: int) -> None:
        self._registers, self._first, self._length = registers, first, length

    def together(self) -> Any:
        return emit.load(self._registers, self._first, self._length)

    def apart(self) -> list[Any]:
        return [emit.load(self._registers, self._first + x) for x in range(self._length)]


class Multiplier:
    """The matrix instruction, with the sums of a wave's tiles."""

    def __init__(self, intrinsic: Intrinsic) -> None:
        self.intrinsic = intrinsic
        self.sums_type = register_type(intrinsic, intrinsic.c)
        self.sum_type = _TIR_TYPES[self.sums_type.element]
        self.run = intrinsic.c.layout.run_along_column()
        _, self.row, self.column = intrinsic.c.layout.inverse("lane", "register")

    def prepare(self, operands: tuple[OperandCode, OperandCode]) -> None:
        """Zero the sums."""
        self._operands = operands
        length = self.sums_type.length
        self._sums = [
            [emit.local(f"sum_{i}_{j}", length, self.sum_type) for j in range(operands[1].tiles)]
            for i in range(operands[0].tiles)
        ]
        for registers in [each for row in self._sums for each in row]:
            emit.store(registers, zero(self.sum_type, length), 0, length)

    def products(self, slot: int) -> list[Piece]:
        """The instructions of one register step, on the fragments in this slot. The same sum comes
        again only after all others, so that none waits for the one before it."""
        left, right = self._operands
        return [
            piece(self._multiply, slot, p, i, j)
            for p in range(left.fragment_bytes // left.fragment.lane_bytes)
            for i in range(left.tiles)
            for j in range(right.tiles)
        ]

    def _multiply(self, slot: int, p: int, i: int, j: int) -> None:
        intrinsic, length = self.intrinsic, self.sums_type.length
        values = []
        kinds = [register_type(intrinsic, o) for o in (intrinsic.a, intrinsic.b)]
        for operand, t, kind in zip(self._operands, (i, j), kinds, strict=True):
            dtype = emit.of_length(_TIR_TYPES[kind.element], kind.length)
            values.append(operand.value(slot, t, p, dtype))
        values.append(emit.load(self._sums[i][j], 0, length))
        result = emit.of_length(self.sum_type, length)
        if kinds[0].element == "bfloat":
            product = T.call_extern(result, f"bfloat.{intrinsic.call}", *values, *_plain(intrinsic))
        else:
            product = emit.intrinsic(result, intrinsic.call, *values, *_plain(intrinsic))
        emit.store(self._sums[i][j], product, 0, length)

    def runs(self, length: int) -> list[tuple[int, int, Run]]:
        """All sums, in runs: (row, column) of the first without the lane's part, and the run."""
        left, right = self._operands
        return [
            (
                i * left.fragment.rows + _least(self.row, register),
                j * right.fragment.rows + _least(self.column, register),
                Run(self._sums[i][j], register, length),
            )
            for j in range(right.tiles)
            for i in range(left.tiles)
            for register in range(0, self.intrinsic.c.layout.registers, length)
        ]


def _plain(intrinsic: Intrinsic) -> list[Any]:
    """What the call takes after A, B and C, so that nothing is modified and nothing is scaled."""
    if not intrinsic.scales:
        return [T.int32(0)] * 3
    formats = [SCALED_FORMATS.index(o.type.short) for o in (intrinsic.a, intrinsic.b)]
    # Scales that are the constant 0 select the instruction without scales.
    return [T.int32(number) for number in (*formats, 0, 0, 0, 0)]


def _of_lane(form: ClosedForm, lane: Any) -> Any:
    """The part of a place that depends on the lane, counted from the least that any lane has.

    A buffer's offset is never negative, not even where an immediate would be added to it.
    """
    value: Any = 0
    for digit in _lane_digits(form):
        part = lane // digit.divisor
        if digit.divisor * digit.modulus < digit.extent:
            part = part % digit.modulus
        if digit.scale < 0:  # counts down
            part = part ^ (digit.modulus - 1)
        value = value + part * abs(digit.scale)
    return value


def _least(form: ClosedForm, register: int) -> int:
    """The least place that any lane has for a register."""
    least = sum((d.modulus - 1) * d.scale for d in _lane_digits(form) if d.scale < 0)
    return form.value(lane=0, register=register) + least


def _lane_digits(form: ClosedForm) -> list[Digit]:
    return [digit for digit in form.digits if digit.variable == "lane"]
