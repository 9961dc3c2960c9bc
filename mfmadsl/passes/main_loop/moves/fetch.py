"""Loads from global memory into registers, through a buffer descriptor, and what lies in them then.

What is the same for all lanes is added to the descriptor's base, what an iteration of the loop adds
is a scalar, and the rest is a lane's own offset, computed once ahead of the loop. A load that is
not wanted lies past the end of the buffer, where there are zeros and no traffic.

Loads of four bytes and more are aligned to four bytes here (CDNA3 ISA, section 9.1.6). Neighbours
that are not are loaded as the aligned words around them, and moved by `v_alignbyte_b32`; the last
of these words may be the next lane's first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.tirx import AllocBuffer, Bind, BufferStore, Expr

from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel
from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.moves.address import (
    Address,
    address_of,
    check_span,
    over_all_iterations,
)
from mfmadsl.passes.main_loop.moves.edge import Edges, Stays, edges_of, is_whole, stays_inside
from mfmadsl.passes.main_loop.moves.element import MemorySource
from mfmadsl.passes.main_loop.moves.moving_index import MovingIndex, moving_indices
from mfmadsl.passes.main_loop.moves.named import Known, Let, naming
from mfmadsl.passes.main_loop.moves.unaligned import (
    Behind,
    Tail,
    aligned,
    behind_of,
    low_bits,
    tail_of,
)
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    WORD,
    NotNumbersError,
    bytes_of,
    constant,
    depends,
    i32,
    multiple_of,
    numbers,
    of_length,
    ramp,
    substitute,
    variables_of,
    widened,
)


@dataclass(frozen=True)
class Fetch:
    """Neighbours in memory, loaded together.

    `behind` is where the last word around them is, for lanes that do not have it of the next one.
    `shift` is the lane's offset before it was aligned, where neighbours are not surely aligned.
    `indices` are those in the offset that are read of memory for each iteration.
    """

    run: tuple[MemorySource, ...]
    loop: Loop
    address: Address
    edges: Edges
    registers: tirx.Buffer
    binds: tuple[Bind, ...]
    offset: Expr
    stays: Stays
    shift: Expr | None = None
    tail: Tail | None = None
    indices: tuple[MovingIndex, ...] = ()
    behind: Behind | None = None

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.run[0].size

    @property
    def needs_last_first(self) -> bool:
        """Whether its last iteration differs from the others."""
        return self.edges.is_ragged or self.tail is not None or not self.stays.always

    @property
    def is_fixed(self) -> bool:
        """Whether it brings the same in all iterations."""
        is_alike = not (self.needs_last_first or self.edges.always or self.indices)
        return is_alike and self.address.lead is None and constant(self.address.step) == 0

    @property
    def can_be_direct(self) -> bool:
        """Whether it may go from memory into the LDS, past the registers.

        A load into the LDS that is partly past the buffer's end may bring nothing.
        """
        if self.is_shifted or self.edges.always or self.indices:
            return False
        return not self.edges.passes_end

    def line_bytes(self, kernel: EnclosingKernel) -> int:
        """Bytes of the lines that a workgroup asks for together; where they are not known, of what
        it needs of them."""
        threads = kernel.threads
        asked = kernel.thread_count * len(self.run) * self.size
        lanes = np.indices(tuple(threads.extents.values())).reshape(len(threads.extents), -1)
        names = [threads.variables[axis].name for axis in threads.extents]
        values: dict[str, npt.ArrayLike] = {v.name: 0 for v in variables_of(self.address.own)}
        try:
            places = numbers(self.address.own, values | dict(zip(names, lanes, strict=True)))
        except NotNumbersError:
            return asked
        line = kernel.chip.line_bytes
        return max(asked, line * len(np.unique(places // line)))

    @property
    def is_shifted(self) -> bool:
        """Whether words are moved into place after the load."""
        return self.shift is not None

    @property
    def loads(self) -> int:
        """How many instructions it takes."""
        return (2 if self.is_shifted else 1) + len(self.reads)

    @property
    def is_plain(self) -> bool:
        """Whether its registers hold just what is wanted, in all iterations but the last."""
        return not self.is_shifted and not (self.edges.always and any(self.edges.masks))

    def _place(
        self, k: Expr, masked: bool, lane: Expr | None = None
    ) -> tuple[Expr, Expr, Expr]:  # fmt: skip
        """(origin, offset, scalar offset) of iteration `k`, of a `lane`'s own offset or another.

        A scalar offset is for loads that stay in the buffer. Of those that pass its end the ISA
        manuals compare the whole offset with the buffer's size, and LLVM's intrinsics all but the
        scalar (docs/emulator.md): the origin moves instead, and both come to the same.
        """
        origin, step = self.address.at(k, self.is_shifted)
        held = {index.variable: index.of(k) for index in self.indices}
        offset, ahead = (
            substitute(self.offset if lane is None else lane, held),
            i32(self.address.ahead),
        )
        if (further := self.address.further(k)) is not None:
            offset = offset + further
        if not masked and self.stays.before_last and not self.edges.is_beyond:
            return origin, offset, step + ahead
        offset = offset + ahead
        for condition in self.edges.moving if masked else ():
            now = substitute(condition, {self.loop.variable: k})
            offset = device.select(now, offset, i32(device.PAST_THE_END))
        return origin + widened(step), offset, i32(0)

    def _asks_next_lane(self, is_last: bool) -> bool:
        """Whether the next lane has loaded the word behind: not where a condition of this iteration
        may have sent it past the end, nor where that word is to be put together."""
        if self.behind is None or not is_last:
            return self.behind is not None
        return not self.edges.moving and self.tail is None

    def fetch(self, k: Expr, is_last: bool, following: Expr) -> list[BufferStore]:
        """The loads of iteration `k`; those of the last one take care of its edges.

        Indices are read for the iteration that is fetched next, the `following` one.
        """
        masked = self.edges.always or is_last
        data, size = self.run[0].buffer.data, bytes_of(self.run[0].buffer)
        loads, first, length = [], 0, len(self.run) * self.size
        for words in (max(1, length // WORD), *((1,) if self.is_shifted else ())):
            behind = self.behind if first and self._asks_next_lane(is_last) else None
            origin, offset, step = self._place(k, masked, None if behind is None else behind.offset)
            kind = device.KINDS[words * WORD if length >= WORD else length]
            value = device.call(
                of_length("int32", words), f"buffer.load.{kind}", data, origin, size,
                offset + i32(first * WORD) if first and behind is None else offset, step,
            )  # fmt: skip
            loads.append(BufferStore(self.registers, value, [ramp(first, words)]))
            first += words
        return [*loads, *(index.read(following) for index in self.reads)]

    def arguments(self, k: Expr) -> tuple[Expr, ...]:
        """(base, origin, size, offset, step) of iteration `k`, for the device functions."""
        origin, offset, step = self._place(k, self.edges.always)
        buffer = self.run[0].buffer
        return buffer.data, origin, bytes_of(buffer), offset, step

    def another_registers(self, name: str = "_odd") -> tirx.Buffer:
        """Registers like its own, with their name and another one behind it."""
        own = self.registers
        return tirx.decl_buffer(own.shape, own.dtype, own.name + name, scope="local")

    def allocations(self) -> list[AllocBuffer]:
        """The statements that allocate its registers."""
        return [AllocBuffer(each) for each in (self.registers, *(i.register for i in self.reads))]

    @property
    def reads(self) -> list[MovingIndex]:
        """The indices that are read of memory."""
        return [index for index in self.indices if index.is_read]

    def word(self, index: int, k: Expr, is_last: bool) -> Expr:
        """One word of what was loaded for iteration `k`."""
        if self.shift is not None:
            value = device.shifted(
                self._raw(index + 1, k, is_last), self._raw(index, k, is_last), self.shift
            )
        else:
            value = tirx.BufferLoad(self.registers, [i32(index)])
        if not ((is_last or self.edges.always) and any(self.edges.masks)):
            return value
        mask = self._mask(index, k)
        return value if mask is None else value & mask

    def _raw(self, index: int, k: Expr, is_last: bool) -> Expr:
        value: Expr = tirx.BufferLoad(self.registers, [i32(index)])
        is_behind = index + 1 == constant(self.registers.shape[0])
        if is_behind and self.behind is not None and self._asks_next_lane(is_last):
            first = tirx.BufferLoad(self.registers, [i32(0)])
            moved = device.device("int32", "next.lane", value, first)
            if self.behind.last_of_rows:
                return moved
            return device.select(self.behind.alone, value, moved)
        if self.tail is None or not (is_last or self.tail.always):
            return value
        _, step = self.address.at(k, True)
        place = self.offset + step + i32(self.address.ahead + index * WORD)
        for condition in self.edges.moving:  # where one fails, the load was sent past the end
            now = substitute(condition, {self.loop.variable: k})
            place = device.select(now, place, i32(device.PAST_THE_END))
        return device.select(place.equal(self.tail.place), self.tail.value, value)

    def _mask(self, index: int, k: Expr) -> Expr | None:
        each = max(1, WORD // self.size)
        mask, needed = None, False
        for part in range(each):
            number = index * each + part if self.size <= WORD else index * WORD // self.size
            ones = (1 << 8 * min(self.size, WORD)) - 1 << 8 * self.size * part
            bits = i32(ones - (1 << 32) if ones >= 1 << 31 else ones)
            for condition in self.edges.masks[number] if number < len(self.edges.masks) else ():
                now = substitute(condition, {self.loop.variable: k})
                bits, needed = device.select(now, bits, i32(0)), True
            mask = bits if mask is None else mask | bits
        return mask if needed else None

    def element(self, index: int, k: Expr, is_last: bool) -> Expr:
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


def fetch_of(
    run: Sequence[MemorySource], loop: Loop, number: int, exact: bool = True,
    exchanged: Mapping[tirx.Var, Expr] | None = None, known: Known | None = None,
) -> Fetch:  # fmt: skip
    """The fetch of neighbours, `number` in the names of its values.

    `exact` says that places where a condition fails must read as 0, also if that differs among
    them; lanes may have exchanged what they fetch. What is `known` has a name already, and what
    gets one is known then. Raises NotUnderstoodError for places that
    are not linear in the loop, have no bounds, or are aligned otherwise from iteration to
    iteration.
    """
    binds: list[Bind] = []
    let = naming(loop, number, binds, [] if known is None else known)
    exchanged = _with_gathered(exchanged or {}, run, loop, let)
    edges = edges_of(run, loop, exact, exchanged)
    address = address_of(run, loop, exchanged, loop.lean and edges.are_last)
    offset = device.kept(address.own) if address.is_whole else address.own
    shift, tail, own, behind = None, None, address.own, None
    is_shifted = _is_shifted(run, address)
    if is_shifted and address.lead is not None:
        raise NotUnderstoodError(
            f"`{run[0].buffer.name}[{run[0].place}]` is no whole word, and some lanes take the next"
            " step in the loop before others"
        )
    if is_shifted and edges.are_last:  # what is shared is held once
        address = address_of(run, loop, exchanged, share=True)
        offset = device.kept(address.own) if address.is_whole else address.own
    if is_shifted:  # the last word is found by its offset: it has to have one
        address = over_all_iterations(address, run[0].buffer, loop)
        check_span(address.span, run[0])
        address, low = aligned(run, address, let)
        offset = offset if low is None else offset + low
        shift = let("shift", low_bits(offset))
        offset = offset & i32(-WORD)
        tail = tail_of(run, address, loop, let)
    for condition in edges.fixed:
        offset = device.select(condition, offset, i32(device.PAST_THE_END))
    # LLVM would align each of two offsets instead of adding to one that is aligned.
    offset = let("offset", device.kept(offset) if is_shifted and edges.are_last else offset)
    if shift is not None and not exchanged and not (tail is not None and tail.always):
        behind = behind_of(run, own, offset, shift, edges, loop, let)
    words = max(1, len(run) * run[0].size // WORD) + (1 if is_shifted else 0)
    registers = tirx.decl_buffer((words,), "int32", f"fetched_{number}", scope="local")
    stays = stays_inside(run, loop, edges, is_shifted)
    return Fetch(
        tuple(run), loop, address, edges, registers, tuple(binds), offset, stays, shift, tail,
        moving_indices(run, loop, number, is_shifted), behind,
    )  # fmt: skip


def _with_gathered(
    exchanged: Mapping[tirx.Var, Expr], run: Sequence[MemorySource], loop: Loop, let: Let
) -> dict[tirx.Var, Expr]:
    """What lanes have exchanged, and so the indices that these lanes have read of memory."""
    result = dict(exchanged)
    places = [each for source in run for each in (source.place, *source.conditions)]
    for variable, value in loop.gathered.items():
        moved = any(depends(value, lane) for lane in exchanged)
        if loop.is_moving(variable):
            continue  # no load straight into the LDS has any
        if moved and any(depends(place, variable) for place in places):
            result[variable] = let(variable.name, substitute(value, exchanged))
    return result


def _is_shifted(run: Sequence[MemorySource], address: Address) -> bool:
    """Whether the run's words are not surely aligned, and whole words of the buffer."""
    size = run[0].size
    if len(run) * size < WORD or size >= WORD:
        return False
    parts = (address.origin, address.own, address.step, bytes_of(run[0].buffer))
    return any(multiple_of(part) % WORD for part in parts)


def inside(
    run: Sequence[MemorySource], loop: Loop, number: int, exact: bool, known: Known | None = None
) -> list[Fetch]:  # fmt: skip
    """A run as one fetch; one by one where together they may start before the buffer. Values that
    are `known` have names, and those of what is returned are known then.

    Raises NotUnderstoodError where that is not sure of one element, either.
    """
    known = [] if known is None else known
    own = [*known]
    fetch = fetch_of(run, loop, number, exact, known=own)
    if fetch.edges.starts_inside:
        known[:] = own
        return [fetch]
    fetches = [fetch_of([each], loop, number + n, exact, known=known) for n, each in enumerate(run)]
    for each in fetches:
        if not each.edges.starts_inside:
            first = each.run[0]
            raise NotUnderstoodError(
                f"`{first.buffer.name}[{first.place}]` may lie before its first element"
            )
    return fetches


def loadable(run: list[MemorySource]) -> list[list[MemorySource]]:
    """A run as it is, or one by one where it is shorter than a word, and not surely aligned or not
    surely in the buffer as a whole."""
    if len(run) * run[0].size >= WORD or is_whole(run):
        return [run]
    return [[source] for source in run]
