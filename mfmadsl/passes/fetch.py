"""Loads from global memory into registers, through a buffer descriptor, and what lies in them then.

What is the same for all lanes is added to the descriptor's base, what a turn of the loop adds is a
scalar, and the rest is a lane's own offset, computed once ahead of the loop. A load that is not
wanted lies past the end of the buffer, where there are zeros and no traffic.

Loads of four bytes and more are aligned to four bytes here (CDNA3 ISA, section 9.1.6). Neighbours
that are not are loaded as the aligned words around them, and moved by `v_alignbyte_b32`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import tirx
from tvm.sym import Analyzer, IntervalSet, detect_linear_equation
from tvm.tirx import AllocBuffer, Bind, BufferStore

from mfmadsl.passes import device
from mfmadsl.passes.element import Source
from mfmadsl.passes.error import NotUnderstoodError
from mfmadsl.passes.expression import (
    WORD,
    bits_of,
    constant,
    depends,
    i32,
    multiple_of,
    multiplied_out,
    narrowed,
    of_length,
    ramp,
    substitute,
    total,
    variables_of,
    widened,
)
from mfmadsl.passes.linear import bounded, counts_down, largest

SPAN_LIMIT = 1 << 31
"""Bytes that a tile may span: a lane's offset has 31 bits."""


@dataclass(frozen=True)
class Loop:
    """What a fetch knows of its loop: the variable, how often it turns, the bounds of all others
    and of the turns but the last, how many there are of each thread index, and
    the extents that are known at the launch only."""

    variable: tirx.Var
    count: Any
    analyzer: Analyzer
    before_last: Analyzer
    threads: Mapping[str, int]
    symbols: frozenset[str] = frozenset()

    def is_uniform(self, expression: Any) -> bool:
        return not any(v.name in self.threads for v in variables_of(expression))

    def holds_before_last(self, condition: Any) -> bool:
        """Whether a condition holds in all turns but the last one.

        The analyzer proves it for numbers; for a symbolic K from the loop's extent being its
        quotient, rounded up.
        """
        if self.before_last.can_prove(condition):
            return True
        sides = bounded(condition)
        if sides is None or constant(self.count) is not None:
            return False
        part = detect_linear_equation(sides[0], [self.variable])
        step = constant(part[0]) if len(part) == 2 else None
        if step is None:
            return False
        rounded_up = tirx.floordiv(sides[1] + (step - 1), tirx.const(step, str(sides[1].ty.dtype)))
        most = int(self.analyzer.const_int_bound(part[1]).max_value)
        return most < step and bool(self.analyzer.can_prove_equal(self.count, rounded_up))


@dataclass
class Fetch:
    """Neighbours in memory, loaded together; `exact` says that places where a condition fails must
    read as 0, also if that differs among them. Lanes may have exchanged what they fetch."""

    run: Sequence[Source]
    loop: Loop
    number: int
    exact: bool = True
    exchanged: Mapping[tirx.Var, Any] = field(default_factory=dict)
    binds: list[Bind] = field(default_factory=list)

    def __post_init__(self) -> None:
        first, loop = self.run[0], self.loop
        self.size = first.size
        parts = detect_linear_equation(first.place, [loop.variable])
        if len(parts) != 2:
            raise NotUnderstoodError(
                f"`{first.buffer.name}[{first.place}]` is not linear in the loop"
            )
        self._step, rest = parts
        terms = multiplied_out(rest)
        uniform = [t for t in terms if loop.is_uniform(t) and variables_of(t)]
        own = total([t for t in terms if not (loop.is_uniform(t) and variables_of(t))],
                    str(rest.ty.dtype))  # fmt: skip
        bound = loop.analyzer.const_int_bound(own)
        least = int(bound.min_value)
        if least <= -SPAN_LIMIT:
            raise NotUnderstoodError(f"`{first.buffer.name}[{first.place}]` has no lower bound")
        if constant(own) is not None or least < 0:
            own = loop.analyzer.simplify(own - least)
        else:
            least = 0
        self._origin = (total(uniform, "int64") + least) * self.size
        self._own = narrowed(substitute(own, self.exchanged)) * self.size
        self._counts_down = counts_down(own, loop.analyzer)
        self._classify()
        self.shifted = self._is_shifted()
        self.span = self._span(own)
        if self.shifted:  # the last word is found by its offset: it has to have one
            self.span = self.loop.analyzer.simplify(self.span + self._reach)
        if (number := constant(self.span)) is not None and number >= SPAN_LIMIT:
            raise NotUnderstoodError(
                f"a tile of `{first.buffer.name}` spans {number} bytes, which offsets of 31 bits "
                "cannot tell"
            )
        self.words = max(1, len(self.run) * self.size // WORD)
        loaded = self.words + (1 if self.shifted else 0)
        self.registers = tirx.decl_buffer(
            (loaded,), "int32", f"fetched_{self.number}", scope="local"
        )
        self._bind()

    def _span(self, own: Any) -> Any:
        """Bytes from the first that a lane may reach to the end of the last, of extents that are
        known at the launch perhaps."""
        analyzer, known = self.loop.analyzer, {}
        for v in variables_of(own):
            if v.name in self.loop.symbols:
                continue
            if v.name not in self.loop.threads and self._counts_up():
                return self._bytes  # of all workgroups, which together reach all of the buffer
            bound = analyzer.const_int_bound(v)
            largest_of_type = (1 << bits_of(v.ty.dtype) - 1) - 1
            ends = (int(bound.min_value), min(int(bound.max_value), largest_of_type))
            known[v] = IntervalSet(*(tirx.const(end, str(v.ty.dtype)) for end in ends))
        # In 64 bits: TVM computes the ends in the type of the expression, and wraps around.
        most = analyzer.int_set(widened(own), known).max_value if known else widened(own)
        if constant(most) is None and not variables_of(most):
            raise NotUnderstoodError(f"`{self.run[0].buffer.name}[{own}]` has no upper bound")
        return analyzer.simplify((most + len(self.run)) * self.size)

    def _counts_up(self) -> bool:
        """Whether nothing that is added to a lane's own place is negative."""
        parts = (self._origin, self._step)
        return all(int(self.loop.analyzer.const_int_bound(p).min_value) >= 0 for p in parts)

    def _classify(self) -> None:
        """Which conditions move the offset, and which clear elements after the load."""
        k, first = self.loop.variable, self.run[0]
        shared = [
            c for c in first.conditions
            if all(_among(c, s.conditions) for s in self.run)
        ]  # fmt: skip
        loose = set() if self.exact else {
            str(c) for s in self.run for c in s.edges if not depends(c, k)
        }  # fmt: skip
        # One that differs along the run is taken from the first: no one looks at the others.
        self._ends_inside = any(str(c) in loose and not _among(c, shared) for c in first.conditions)
        offset = [c for c in first.conditions if str(c) in loose or _among(c, shared)]
        self._offset_conditions = offset
        self._fixed = [substitute(c, self.exchanged) for c in offset if not depends(c, k)]
        moving = [c for c in offset if depends(c, k)]
        others = [
            [
                c for c in s.conditions
                if str(c) not in loose and not _among(c, shared)
            ]
            for s in self.run
        ]  # fmt: skip
        last_only = self.loop.holds_before_last
        self._moving = [substitute(c, self.exchanged) for c in moving]
        self._masks = others
        self.always_masked = any(
            not last_only(c) for c in [*moving, *(c for each in others for c in each)]
        )
        self.ragged = bool(moving) or any(others)

    @property
    def _bytes(self) -> Any:
        """Of the whole buffer."""
        size: Any = 1
        for extent in self.run[0].buffer.shape:
            number = constant(extent)
            size = size * (widened(extent) if number is None else number)
        size = size * self.size
        return tirx.const(size, "int64") if isinstance(size, int) else size

    def _is_shifted(self) -> bool:
        """Whether the run's words are not surely aligned, and whole words of the buffer."""
        if len(self.run) * self.size < WORD or self.size >= WORD:
            return False
        parts = (self._origin, self._own, self._step * self.size, self._bytes)
        return any(multiple_of(part) % WORD for part in parts)

    def _bind(self) -> None:
        """Values that stay the same from turn to turn."""
        offset = device.kept(self._own) if self._counts_down else self._own
        # The part of the base that is no multiple of a word is every lane's.
        self._below: Any = None
        if self.shifted:
            if multiple_of(self._step * self.size) % WORD:
                raise NotUnderstoodError(
                    f"`{self.run[0].buffer.name}` is aligned otherwise from turn to turn"
                )
            if multiple_of(self._origin) % WORD:
                low = self._let("low", tirx.Cast("int32", self._origin & tirx.const(3, "int64")))
                self._origin = self._origin - tirx.Cast("int64", low)
                offset = offset + low
            self._shift = self._let("shift", offset)
            offset = self._shift & i32(-WORD)
            self._bind_tail()
        for condition in self._fixed:
            offset = tirx.Select(condition, offset, i32(device.PAST_THE_END))
        self._offset = self._let("offset", offset)

    def _bind_tail(self) -> None:
        """The last word, if the buffer has only a part of it: loads do not give such a part.

        It is loaded by itself, once, and put in its place where a turn may reach it.
        """
        size = self._bytes
        number = constant(size)
        self.reaches_tail = not (number is not None and number % WORD == 0)
        if not self.reaches_tail:
            return
        whole = size & tirx.const(-WORD, "int64")
        data, zero = self.run[0].buffer.data, tirx.const(0, "int64")
        del zero
        value: Any = None
        for byte in range(0, WORD - self.size, self.size) if self.size < WORD else ():
            part = device.call(
                "int32", f"buffer.load.{device.KINDS[self.size]}", data, whole, size, i32(byte),
                i32(0),
            )  # fmt: skip
            part = tirx.shift_left(part, i32(8 * byte)) if byte else part
            value = part if value is None else value | part
        self._tail_value = self._let("tail", value)
        self._tail_place = self._let("tail_place", tirx.Cast("int32", whole - self._origin))
        self.tail_always = not self._tail_last_only(number)

    def _tail_last_only(self, size: int | None) -> bool:
        """Whether only the last turn may need the last word."""
        if size is None:
            return False
        known = self.loop.before_last
        for source in self.run:
            most = largest(source.place, source.conditions, known)
            if most is None or (most + 1) * self.size > size // WORD * WORD:
                return False
        return True

    def _let(self, name: str, value: Any) -> Any:
        if constant(value) is not None or isinstance(value, tirx.Var):
            return value
        variable = tirx.Var(f"{name}_{self.number}", str(value.ty.dtype))
        self.binds.append(Bind(variable, value))
        return variable

    @property
    def needs_last_first(self) -> bool:
        """Whether its last turn differs from the others."""
        return self.ragged or (self.shifted and self.reaches_tail)

    @property
    def starts_inside(self) -> bool:
        """Whether it starts in the buffer, where it is not sent past the end.

        A load that ends behind the buffer gives zeros there; one that starts before it is a fault.
        """
        first = self.run[0]
        before = largest(
            self.loop.analyzer.simplify(-first.place), self._offset_conditions, self.loop.analyzer
        )
        return before is not None and before <= 0

    @property
    def can_be_direct(self) -> bool:
        """Whether it may go from memory into the LDS, past the registers.

        Of a load into the LDS that is partly past the end of the buffer nothing is sure to arrive.
        """
        if self.shifted or self.always_masked or len(self.run) * self.size != 16:
            return False
        return not self._ends_inside or _is_whole(list(self.run))

    @property
    def _reach(self) -> Any:
        """Bytes that all turns together go."""
        step = constant(self._step)
        way = self._step if step is None else tirx.const(abs(step), "int64")
        return self.loop.analyzer.simplify(widened(self.loop.count) * widened(way) * self.size)

    def _place(self, k: Any) -> tuple[Any, Any]:
        """(origin, step) of a turn: the step as a scalar offset, where 31 bits have room for it."""
        step = self._step * self.size
        number, reach = constant(step), constant(self._reach)
        if number == 0:
            return self._origin, i32(0)
        if self.shifted or (reach is not None and reach < SPAN_LIMIT):
            return self._origin, narrowed(k) * narrowed(step)
        far = widened(k) * (widened(self._step) * self.size)
        return self._origin + far, i32(0)

    def _offset_at(self, k: Any, masked: bool) -> Any:
        offset = self._offset
        if masked:
            for condition in self._moving:
                now = substitute(condition, {self.loop.variable: k})
                offset = tirx.Select(now, offset, i32(device.PAST_THE_END))
        return offset

    def fetch(self, k: Any, is_last: bool) -> list[BufferStore]:
        """The loads of turn `k`; those of the last one take care of its edges."""
        masked = self.always_masked or is_last
        origin, step = self._place(k)
        offset = self._offset_at(k, masked)
        data, size = self.run[0].buffer.data, self._bytes
        loads, first = [], 0
        for words in (self.words, *((1,) if self.shifted else ())):
            width = words * WORD if len(self.run) * self.size >= WORD else len(self.run) * self.size
            value = device.call(
                of_length("int32", words), f"buffer.load.{device.KINDS[width]}", data, origin, size,
                offset + i32(first * WORD) if first else offset, step,
            )  # fmt: skip
            loads.append(BufferStore(self.registers, value, [ramp(first, words)]))
            first += words
        return loads

    def address(self, k: Any) -> tuple[Any, ...]:
        """(base, origin, size, offset, step) of turn `k`, as the device functions take them."""
        origin, step = self._place(k)
        offset = self._offset_at(k, self.always_masked)
        return self.run[0].buffer.data, origin, self._bytes, offset, step

    def allocation(self) -> AllocBuffer:
        """Of its registers."""
        return AllocBuffer(self.registers)

    @property
    def is_plain(self) -> bool:
        """Whether its registers hold just what is wanted, in all turns but the last."""
        return not self.shifted and not (self.always_masked and any(self._masks))

    def word(self, index: int, k: Any, is_last: bool) -> Any:
        """One word of what was loaded for turn `k`."""
        if self.shifted:
            value = device.shifted(
                self._raw(index + 1, k, is_last), self._raw(index, k, is_last), self._shift
            )
        else:
            value = tirx.BufferLoad(self.registers, [i32(index)])
        if not ((is_last or self.always_masked) and any(self._masks)):
            return value
        mask = self._mask(index, k)
        return value if mask is None else value & mask

    def _raw(self, index: int, k: Any, is_last: bool) -> Any:
        value = tirx.BufferLoad(self.registers, [i32(index)])
        if not self.reaches_tail or not (is_last or self.tail_always):
            return value
        _, step = self._place(k)
        place = self._offset + step + i32(index * WORD)
        return tirx.Select(place.equal(self._tail_place), self._tail_value, value)

    def _mask(self, index: int, k: Any) -> Any:
        each = max(1, WORD // self.size)
        mask, needed = None, False
        for part in range(each):
            number = index * each + part if self.size <= WORD else index * WORD // self.size
            ones = (1 << 8 * min(self.size, WORD)) - 1 << 8 * self.size * part
            bits = i32(ones - (1 << 32) if ones >= 1 << 31 else ones)
            for condition in self._masks[number] if number < len(self._masks) else ():
                now = substitute(condition, {self.loop.variable: k})
                bits, needed = tirx.Select(now, bits, i32(0)), True
            mask = bits if mask is None else mask | bits
        return mask if needed else None

    def element(self, index: int, k: Any, is_last: bool) -> Any:
        """The value of one element."""
        dtype = str(self.run[0].buffer.dtype)
        if self.size == 8:
            low, high = (self.word(2 * index + part, k, is_last) for part in (0, 1))
            low = tirx.Cast("int64", tirx.Cast("uint32", low))
            whole = tirx.shift_left(tirx.Cast("int64", high), tirx.const(32, "int64")) | low
            return whole if dtype == "int64" else tirx.reinterpret(dtype, whole)
        each = WORD // self.size
        word = self.word(index // each, k, is_last)
        if self.size == WORD:
            return word if dtype == "int32" else tirx.reinterpret(dtype, word)
        moved = tirx.shift_right(word, i32(8 * self.size * (index % each)))
        kind = f"uint{8 * self.size}"
        bits = tirx.Cast(kind, moved)
        return bits if dtype == kind else tirx.reinterpret(dtype, bits)


def inside(run: Sequence[Source], loop: Loop, number: int, exact: bool) -> list[Fetch]:
    """A run as one fetch; one by one where together they may start before the buffer.

    Raises NotUnderstoodError where that is not sure of one element, either.
    """
    fetch = Fetch(run, loop, number, exact)
    if fetch.starts_inside:
        return [fetch]
    fetches = [Fetch([each], loop, number + n, exact) for n, each in enumerate(run)]
    for each in fetches:
        if not each.starts_inside:
            first = each.run[0]
            raise NotUnderstoodError(
                f"`{first.buffer.name}[{first.place}]` may lie before its first element"
            )
    return fetches


def loadable(run: list[Source]) -> list[list[Source]]:
    """A run as it is, or one by one where it is shorter than a word, and not surely aligned or not
    surely in the buffer as a whole."""
    if len(run) * run[0].size >= WORD or _is_whole(run):
        return [run]
    return [[source] for source in run]


def _is_whole(run: list[Source]) -> bool:
    """Whether a run is aligned to its own length, and the buffer ends where such a run does."""
    elements = 1
    for extent in run[0].buffer.shape:
        elements *= multiple_of(extent)
    return not (multiple_of(run[0].place) % len(run) or elements % len(run))


def _among(condition: Any, others: Sequence[Any]) -> bool:
    """Whether one of the others is written alike."""
    return any(condition.same_as(other) or str(condition) == str(other) for other in others)
