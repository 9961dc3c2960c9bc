"""The code that moves one operand: from memory to registers, to the LDS, and to fragments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.tirx.script.builder import ir as T

from mfmadsl.tensorize.gemm import emit
from mfmadsl.tensorize.gemm.emit import Emission
from mfmadsl.tensorize.gemm.fragment import Fragment
from mfmadsl.tensorize.gemm.lds import CHUNK, WORD, LdsTile
from mfmadsl.tensorize.gemm.staging import (
    PAST_THE_END,
    ColumnStaging,
    RowStaging,
    bytes_paired,
    bytes_turned,
    halves_turned,
)

_KINDS = {1: "i8", 2: "i16", 4: "i32", 8: "v2i32", 16: "v4i32"}


@dataclass(frozen=True)
class Source:
    """Where a tile comes from: bytes from `base`, the matrix ending `size` bytes after it.

    `stride` is the number of bytes between rows if K lies together, else between k. `rows_left` is
    how many rows the matrix has from the tile's first on; None if no mask is needed for them.
    """

    base: Any
    origin: Any
    size: Any
    stride: Any
    rows_left: Any


@dataclass(frozen=True)
class Step:
    """A step along K: its first k; and, if it may be the short one, how many k it has."""

    k: Any
    length: Any = None


@dataclass
class OperandCode:
    """Emits code for one operand. Call `prepare` where what does not change is to be computed."""

    name: str
    staging: RowStaging | ColumnStaging
    tile: LdsTile
    fragment: Fragment
    source: Source
    memory: Any
    thread: Any
    lane: Any
    first_row: Any
    tiles: int
    read_bytes: int
    slots: int = 2
    fetched: list[list[Any]] = field(default_factory=list)
    fragments: list[list[Any]] = field(default_factory=list)
    _addresses: dict[Any, Any] = field(default_factory=dict)
    _offsets: dict[Any, Any] = field(default_factory=dict)

    @property
    def element_bytes(self) -> int:
        return self.staging.element_bytes

    @property
    def parts(self) -> int:
        """Reads that fill one fragment."""
        return max(1, self.fragment.lane_bytes // self.read_bytes)

    @property
    def fragment_bytes(self) -> int:
        return max(self.fragment.lane_bytes, self.read_bytes)

    @property
    def register_steps(self) -> int:
        """Fragments along K in a tile."""
        return self.tile.row_bytes // (self.fragment.groups * self.fragment_bytes)

    def prepare(self) -> None:
        """Registers, and all addresses that stay the same from step to step."""
        staging = self.staging
        words = max(1, staging.width // WORD)
        self.fetched = [
            [emit.local(f"{self.name}_fetched_{u}_{x}", words, "int32")
             for x in range(staging.loads)]
            for u in range(staging.units)
        ]  # fmt: skip
        self.fragments = [
            [emit.local(f"{self.name}_{slot}_{t}", self.fragment_bytes // WORD, "int32")
             for t in range(self.tiles)]
            for slot in range(self.slots)
        ]  # fmt: skip
        for unit in range(staging.units):
            for x in range(staging.loads):
                self._offset(unit, x)
        for step in range(self.register_steps):
            for t in range(self.tiles):
                for part in range(self.parts):
                    self._fragment_word(step, t, part)
        for unit in range(staging.units):
            for row in range(staging.group if isinstance(staging, ColumnStaging) else 1):
                self._staged_word(unit, row)

    # From memory to registers

    def fetches(self, step: Step) -> list[list[Emission]]:
        """The loads of each unit."""
        return [
            [lambda u=u, x=x: self._fetch(u, x, step) for x in range(self.staging.loads)]  # type: ignore[misc]
            for u in range(self.staging.units)
        ]

    def _offset(self, unit: int, x: int) -> Any:
        """A lane's offset in bytes from the tile's origin, past the end where it has no work."""
        key = unit, x
        if key not in self._offsets:
            row, _, offset = self._coordinates(unit, x)
            staging = self.staging
            if isinstance(staging, ColumnStaging) and self.source.rows_left is not None:
                offset = emit.select(row < self.source.rows_left, offset, PAST_THE_END)
            if staging.rows_filled > staging.rows:
                offset = emit.select(row < staging.rows, offset, PAST_THE_END)
            self._offsets[key] = emit.let(f"{self.name}_offset_{unit}_{x}", offset)
        return self._offsets[key]

    def _coordinates(self, unit: int, x: int) -> tuple[Any, Any, Any]:
        """(row, k, offset in bytes) of a load's first element in the tile."""
        staging, stride, size = self.staging, self.source.stride, self.element_bytes
        if isinstance(staging, RowStaging):
            row, chunk = staging.place(self.thread)
            row = row + unit * staging.rows_apart
            byte = chunk * CHUNK + x * staging.width
            return row, byte // size, row * stride + byte
        group, chunk, half = staging.place(unit, self.thread)
        each = staging.group_bytes // staging.width
        k = (chunk * 2 + half) * staging.k + x // each
        row = group * staging.group + x % each * (staging.width // size)
        return row, k, k * stride + row * size

    def _fetch(self, unit: int, x: int, step: Step) -> None:
        staging, source = self.staging, self.source
        by_row = isinstance(staging, RowStaging)
        offset = self._offset(unit, x)
        k = None
        if step.length is not None:
            _, k, _ = self._coordinates(unit, x)
            offset = emit.select(k < step.length, offset, PAST_THE_END)
        advance = step.k * (self.element_bytes if by_row else source.stride)
        kind, words = _KINDS[staging.width], max(1, staging.width // WORD)
        value = emit.device(
            emit.of_length("int32", words), f"buffer.load.{kind}",
            source.base, source.origin, source.size, offset, advance,
        )  # fmt: skip
        emit.store(self.fetched[unit][x], value, 0, words)
        if by_row and step.length is not None and staging.width > self.element_bytes:
            self._clear_past(unit, x, k, step.length)

    def _clear_past(self, unit: int, x: int, k: Any, length: Any) -> None:
        """Zero the elements from k = length on, of a load that may hold some on both sides."""
        registers = self.fetched[unit][x]
        each = WORD // self.element_bytes
        for word in range(max(1, self.staging.width // WORD)):
            if self.element_bytes >= WORD:
                first = k + word * WORD // self.element_bytes
                kept = emit.select(first < length, T.int32(-1), T.int32(0))
            else:
                bits = (length - (k + word * each)) * (8 * self.element_bytes)
                some = T.shift_left(T.int32(1), T.min(T.max(bits, 0), 31)) - 1
                kept = emit.select(bits >= 32, T.int32(-1), some)
            emit.store(registers, emit.load(registers, word) & kept, word)

    # From registers to the LDS

    def stores(self) -> list[list[Emission]]:
        """For each unit: the pieces of work that put it into the LDS."""
        if isinstance(self.staging, RowStaging):
            return [[lambda u=u: self._store_chunk(u)] for u in range(self.staging.units)]  # type: ignore[misc]
        return [self._store_columns(u) for u in range(self.staging.units)]

    def _staged_word(self, unit: int, row: int) -> Any:
        """Where a unit goes, or row `row` of it."""
        staging, tile = self.staging, self.tile
        if isinstance(staging, RowStaging):
            first, chunk = staging.place(self.thread)
            apart = unit * staging.rows_apart
            change = tile.swizzle(apart)
            name = f"{self.name}_to_{change}"
            base = self._address(("to", change), name, lambda: tile.word(first, chunk ^ change))
            return base + apart * tile.chunks * (CHUNK // WORD)
        group, chunk, half = staging.place(unit, self.thread)
        change = tile.swizzle(row)
        base = self._address(
            ("to", unit, change), f"{self.name}_to_{unit}_{change}",
            lambda: tile.word(group * staging.group, chunk ^ change) + half * (CHUNK // WORD // 2),
        )  # fmt: skip
        return base + row * tile.chunks * (CHUNK // WORD)

    def _address(self, key: Any, name: str, compute: Any) -> Any:
        if key not in self._addresses:
            self._addresses[key] = emit.let(name, compute())
        return self._addresses[key]

    def _words(self, unit: int, loads: range) -> list[Any]:
        """The bytes of some loads, as words."""
        width, fetched = self.staging.width, self.fetched[unit]
        if width >= WORD:
            return [emit.load(fetched[x], w) for x in loads for w in range(width // WORD)]
        each = WORD // width
        words = []
        for first in loads[::each]:
            word = emit.load(fetched[first], 0)
            for part in range(1, each):
                shifted = T.shift_left(emit.load(fetched[first + part], 0),
                                       T.int32(8 * width * part))  # fmt: skip
                word = word | shifted
            words.append(word)
        return words

    def _store_chunk(self, unit: int) -> None:
        words = CHUNK // WORD
        if self.staging.width == CHUNK:
            value = emit.load(self.fetched[unit][0], 0, words)
        else:
            value = self._gathered(self._words(unit, range(self.staging.loads)))
        emit.store(self.memory, value, self._staged_word(unit, 0), words)

    def _gathered(self, words: list[Any]) -> Any:
        """Words as one vector."""
        together = emit.local(f"{self.name}_together", len(words), "int32")
        for index, word in enumerate(words):
            emit.store(together, word, index)
        return emit.load(together, 0, len(words))

    def _store_columns(self, unit: int) -> list[Emission]:
        """Turn a unit around, some words at a time, and store its rows."""
        staging = self.staging
        assert isinstance(staging, ColumnStaging)
        loads = staging.group_bytes // staging.width

        def columns(word: int) -> list[Any]:
            """The word of each k."""
            return [self._words(unit, range(y * loads, (y + 1) * loads))[word]
                    for y in range(staging.k)]  # fmt: skip

        def put(row: int, words: list[Any]) -> None:
            emit.store(self.memory, self._gathered(words), self._staged_word(unit, row), 2)

        words = range(staging.group_bytes // WORD)
        if self.element_bytes == 1:
            return [piece for word in words for piece in self._turn_bytes(word, columns, put)]
        if self.element_bytes == 2:
            return [
                lambda word=word, row=row: put(  # type: ignore[misc]
                    2 * word + row, halves_turned(columns(word), row, _permute)
                )
                for word in words
                for row in range(2)
            ]
        each = self.element_bytes // WORD
        return [
            lambda row=row: put(  # type: ignore[misc]
                row, [columns(row * each + part)[y] for y in range(staging.k)
                      for part in range(each)]
            )
            for row in range(staging.group)
        ]  # fmt: skip

    def _turn_bytes(self, word: int, columns: Any, put: Any) -> list[Emission]:
        pairs: dict[int, list[Any]] = {}
        turned: dict[int, list[Any]] = {}

        def pair(half: int) -> None:
            pairs[half] = bytes_paired(columns(word)[4 * half : 4 * half + 4], _permute)

        def turn(half: int) -> None:
            turned[half] = bytes_turned(pairs[half], _permute)

        return [
            *(lambda half=half, do=do: do(half) for half in (0, 1) for do in (pair, turn)),
            *(
                lambda row=row: put(WORD * word + row, [turned[0][row], turned[1][row]])
                for row in range(WORD)
            ),
        ]

    # From the LDS to fragments

    def reads(self, step: int, slot: int) -> list[Emission]:
        """Fill the fragments of a register step."""
        return [
            lambda t=t, part=part: self._read(step, t, part, slot)  # type: ignore[misc]
            for t in range(self.tiles)
            for part in range(self.parts)
        ]

    def _fragment_word(self, step: int, t: int, part: int) -> Any:
        tile, fragment = self.tile, self.fragment
        row = self.lane % fragment.rows
        byte = self.lane // fragment.rows * self.read_bytes
        fixed = (step * self.parts + part) * fragment.groups * self.read_bytes
        change = tile.swizzle(t * fragment.rows) ^ (fixed // CHUNK)
        base = self._address(
            ("from", change), f"{self.name}_from_{change}",
            lambda: tile.word(self.first_row + row, (byte // CHUNK) ^ change)
            + byte % CHUNK // WORD,
        )  # fmt: skip
        return base + t * fragment.rows * tile.chunks * (CHUNK // WORD) + fixed % CHUNK // WORD

    def _read(self, step: int, t: int, part: int, slot: int) -> None:
        words = self.read_bytes // WORD
        value = emit.load(self.memory, self._fragment_word(step, t, part), words)
        emit.store(self.fragments[slot][t], value, part * words, words)

    def value(self, slot: int, t: int, instruction: int, dtype: str) -> Any:
        """What an instruction takes of a fragment, under the type that LLVM wants."""
        words = self.fragment.lane_bytes // WORD
        bits = emit.load(self.fragments[slot][t], instruction * words, words)
        return bits if dtype == emit.of_length("int32", words) else emit.reinterpret(bits, dtype)


def _permute(high: Any, low: Any, selector: int) -> Any:
    word = emit.intrinsic("int32", "llvm.amdgcn.perm", high, low, T.int32(selector))
    return emit.let("turned", word)
