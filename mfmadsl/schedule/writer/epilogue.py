"""What happens to the accumulators: the workload's epilogue, and the stores.

A lane stores runs of elements that lie together in C, as wide as their alignment allows; places
outside of C are past the end of the buffer, so that no branch is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.tirx.script.builder import ir as T

from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.emit import bytes_of
from mfmadsl.schedule.writer.expression import NARROW, Evaluator
from mfmadsl.schedule.writer.problem import Axis, Problem, constant
from mfmadsl.schedule.writer.staging import PAST_THE_END

_WIDEST = 16


class Output:
    """C as the kernel writes it: `along` is the axis whose neighbours lie together in memory, and
    `across` the other; `batch` says which matrix of a batch it is."""

    def __init__(self, problem: Problem, batch: Sequence[Any]) -> None:
        self.problem, self.batch = problem, batch
        self.by_rows = c_by_rows(problem)
        self.along, self.across = (problem.n, problem.m) if self.by_rows else (problem.m, problem.n)
        matrix = problem.c
        apart = matrix.row_stride if self.by_rows else matrix.column_stride
        if constant(self.across.extent) == 1:
            apart = self.along.extent  # what lies beyond must be past the end
        self.apart = apart
        self.element_bytes = bytes_of(matrix.dtype)

    def length(self, run: int) -> int:
        """How many of `run` neighbours one store takes."""
        return run_length(
            self.problem.c.dtype, run, constant(self.along.extent), constant(self.apart)
        )

    def start(self, along: Any, across: Any) -> None:
        """Choose the corner from which `put` counts."""
        self.first = along, across
        matrix = self.problem.c
        batch: Any = 0
        for place, stride in zip(self.batch, matrix.batch, strict=True):
            batch = batch + emit.wide(place) * emit.wide(stride)
        corner = batch + emit.wide(across) * emit.wide(self.apart) + emit.wide(along)
        last = (
            batch + emit.wide(self.across.extent - 1) * emit.wide(self.apart)
            + emit.wide(self.along.extent)
        )  # fmt: skip
        self._origin = emit.let("c_origin", corner * self.element_bytes)
        self._end = emit.let("c_end", last * self.element_bytes)
        self._stride = emit.narrow(self.apart) * self.element_bytes

    def put(self, sums: Sequence[Any], u: Any, v: Any, whole: tuple[bool, bool]) -> None:
        """Finish sums that lie together, from `u` along at `v` across, and store them.

        `whole` says of each axis whether all places are in the matrix anyway. Beyond the last `v`
        the buffer ends by itself.
        """
        values = [
            finished(self.problem, total, self._places(u + x, v, whole))
            for x, total in enumerate(sums)
        ]
        offset = v * self._stride + u * self.element_bytes
        if not whole[0]:
            left = emit.narrow(self.along.extent) - self.first[0]
            offset = emit.select(u < left, offset, PAST_THE_END)
        dtype = self.problem.c.dtype
        size = len(values) * self.element_bytes
        emit.evaluate(
            emit.device("int32", f"buffer.store.{emit.KINDS[size]}",
                        _packed(values, dtype, max(1, size // 4)),
                        self.problem.c.buffer.data, self._origin, self._end, offset)
        )  # fmt: skip

    def _places(self, u: Any, v: Any, whole: tuple[bool, bool]) -> dict[Any, Any]:
        """What the workload's loops are at a place, or at the last one if it is outside."""
        if not self.problem.epilogue:
            return {}
        axes = []
        for axis, first, place, inside in zip(
            (self.along, self.across), self.first, (u, v), whole, strict=True
        ):
            index = first + place
            if not inside:
                index = emit.least(index, emit.narrow(axis.extent) - 1)
            axes.append((axis, index))
        return places_of([*axes, *zip(self.problem.batch, self.batch, strict=True)])


def c_by_rows(problem: Problem) -> bool:
    """Whether neighbours in a row of C are neighbours in memory.

    Raises ScheduleError if neither they nor those in a column are.
    """
    rows, columns = constant(problem.c.row_stride), constant(problem.c.column_stride)
    if 1 in (rows, columns):
        return columns == 1
    if 1 not in (constant(problem.m.extent), constant(problem.n.extent)):
        raise ScheduleError(
            f"workload: neither rows nor columns of `{problem.c.name}` lie together"
        )
    return constant(problem.n.extent) == 1


def _packed(values: Sequence[Any], dtype: str, words: int) -> Any:
    """Values as words, narrow ones beside each other."""
    size = bytes_of(dtype)
    bits = [_bits(value, dtype) for value in values]
    if size >= 4 and len(values) == 1:
        return emit.reinterpret(values[0], emit.of_length("int32", words))
    if size == 8:
        together = emit.local("result", len(values), dtype)
        for index, value in enumerate(values):
            emit.store(together, value, index)
        whole = emit.load(together, 0, len(values))
        return emit.reinterpret(whole, emit.of_length("int32", words))
    if len(values) == 1:
        return bits[0]
    each = min(4 // size, len(bits))
    packed = []
    for first in range(0, len(bits), each):
        word = bits[first]
        for part in range(1, each):
            word = word | T.shift_left(bits[first + part], T.int32(8 * size * part))
        packed.append(word)
    if len(packed) == 1:
        return packed[0]
    together = emit.local("result", len(packed), "int32")
    for index, word in enumerate(packed):
        emit.store(together, word, index)
    return emit.load(together, 0, len(packed))


def _bits(value: Any, dtype: str) -> Any:
    """The bits of a value in a word, zeros above them."""
    if dtype in NARROW:
        return emit.device("int32", f"bits.{dtype}", value)
    if dtype in ("float32", "int32", "uint32"):
        return value if dtype == "int32" else emit.reinterpret(value, "int32")
    if dtype == "float16":
        return T.cast(emit.reinterpret(value, "uint16"), "int32")
    if dtype in ("int8", "uint8", "int16", "uint16", "bool"):
        return T.cast(value, "int32") & (255 if bytes_of(dtype) == 1 else 65535)
    return value


def run_length(dtype: str, run: int, *multiples: int | None) -> int:
    """How many of `run` elements that lie together one store can take; the multiples are the
    elements of a run in C, and of the distance of runs, None if not known."""
    size = bytes_of(dtype)
    length = min(run, _WIDEST // size)
    while length > 1 and any(
        number is None or number % length or number * size % min(4, length * size)
        for number in multiples
    ):
        length //= 2
    return length


def finished(problem: Problem, value: Any, places: dict[Any, Any]) -> Any:
    """The value that goes to C, from the sum of products at a place."""
    dtype = str(problem.product.dtype)
    if dtype in NARROW:
        value = Evaluator(problem.name, {}, {}).value(T.cast(value, "float32"))
    else:
        value = T.cast(value, dtype)
    values = {str(problem.product.name): value}
    for stage in problem.epilogue:
        result = Evaluator(stage.name, places, values).value(stage.value)
        values[str(stage.buffer.name)] = emit.let(f"{stage.name}_value", result)
        value = values[str(stage.buffer.name)]
    return value


def places_of(axes: Sequence[tuple[Axis, Any]]) -> dict[Any, Any]:
    """What the workload's loop variables are, at a place inside of each axis."""
    places: dict[Any, Any] = {}
    for axis, index in axes:
        for variable, place in axis.values(index).items():
            kind = str(variable.ty.dtype)
            number = T.int32(place) if isinstance(place, int) else place
            places[variable] = number if kind == "int32" else T.cast(number, kind)
    return places
