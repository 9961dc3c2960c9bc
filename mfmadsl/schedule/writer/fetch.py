"""The code that brings a tile of one operand from memory into registers, and on into the LDS."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from tvm.tirx.script.builder import ir as T

from mfmadsl.model.architecture import WAVE_SIZE
from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.emit import Piece, piece
from mfmadsl.schedule.writer.lds import CHUNK, WORD, LdsTile
from mfmadsl.schedule.writer.staging import PAST_THE_END, ColumnStaging, RowStaging


@dataclass(frozen=True)
class Source:
    """Where a tile comes from: bytes from `base`, the matrix ending `size` bytes after it.

    `stride` is the number of bytes between rows if K lies together, else between k. `rows_left` is
    how many rows the matrix has from the tile's first on; None if no mask is needed for them. A
    `far` matrix does not fit into the 31 bits of an offset along K.
    """

    base: Any
    origin: Any
    size: Any
    stride: Any
    rows_left: Any
    far: bool


@dataclass(frozen=True)
class Step:
    """A step along K: its first k; and, if it may be the short one, how many k it has."""

    k: Any
    length: Any = None


@dataclass(frozen=True)
class Place:
    """What a load fetches first: the row and the k in the tile, and where that is, in bytes."""

    row: Any
    k: Any
    offset: Any


@dataclass
class Fetch(ABC):
    """One operand on its way to the LDS. Call `prepare` where what stays the same is computed."""

    name: str
    source: Source
    memory: Any
    thread: Any
    wave: Any
    element_bytes: int
    stage_words: int
    direct: bool
    _fetched: list[list[Any]] = field(default_factory=list, init=False)
    _addresses: dict[Any, Any] = field(default_factory=dict, init=False)

    @property
    @abstractmethod
    def staging(self) -> RowStaging | ColumnStaging:
        """How the work is dealt out to threads."""

    @abstractmethod
    def place(self, unit: int, x: int) -> Place:
        """Of load `x` of a unit."""

    @abstractmethod
    def has_work(self, place: Place) -> list[Any]:
        """Conditions under which a load has work to do at all."""

    @abstractmethod
    def advance(self, k: Any) -> Any:
        """Bytes from the tile's origin to its k-th k."""

    @abstractmethod
    def store(self, unit: int, stage: int) -> list[Piece]:
        """The pieces of work that put a unit into the LDS."""

    def prepare(self) -> None:
        """Registers, and the addresses that stay the same from step to step."""
        staging = self.staging
        words = max(1, staging.width // WORD)
        self._fetched = [
            [
                emit.local(f"{self.name}_fetched_{unit}_{x}", words, "int32")
                for x in range(staging.loads)
            ]
            for unit in range(staging.units)
        ]
        for unit in range(staging.units):
            for x in range(staging.loads):
                self._offset(unit, x)

    def fetches(self, step: Step) -> list[list[Piece]]:
        """The loads of each unit."""
        return [
            [piece(self._fetch, unit, x, step) for x in range(self.staging.loads)]
            for unit in range(self.staging.units)
        ]

    def stores(self, stage: int) -> list[list[Piece]]:
        """For each unit: the pieces of work that put it into a stage of the LDS."""
        return [self.store(unit, stage) for unit in range(self.staging.units)]

    def moves(self, step: Step, stage: int) -> list[Piece]:
        """The loads that go straight into a stage of the LDS."""
        return [piece(self._move, unit, step, stage, cost=2) for unit in range(self.staging.units)]

    def place_in_lds(self, unit: int) -> Place:
        """What a lane has to fetch, if lanes fill the LDS one after another."""
        raise NotImplementedError(f"{type(self).__name__} does not load into the LDS directly")

    def _move(self, unit: int, step: Step, stage: int) -> None:
        def compute() -> Any:
            place = self.place_in_lds(unit)
            offset = place.offset
            for condition in self.has_work(place):
                offset = emit.select(condition, offset, PAST_THE_END)
            return offset

        offset = self.address(("straight", unit), compute)
        lanes = self.wave * WAVE_SIZE + unit * self.staging.threads
        place = lanes * CHUNK + (self.first_word + stage * self.stage_words) * WORD
        source, (origin, advance) = self.source, self._from(step)
        emit.evaluate(
            emit.device("int32", "buffer.to.lds", source.base, origin, source.size, offset, advance,
                        self.memory.data, place)
        )  # fmt: skip

    @property
    @abstractmethod
    def first_word(self) -> int:
        """Of the tile, in the first stage."""

    def _offset(self, unit: int, x: int) -> Any:
        """A lane's offset from the tile's origin, past the end where it has no work."""

        def compute() -> Any:
            place = self.place(unit, x)
            offset = place.offset
            for condition in self.has_work(place):
                offset = emit.select(condition, offset, PAST_THE_END)
            return offset

        return self.address(("offset", unit, x), compute)

    def _fetch(self, unit: int, x: int, step: Step) -> None:
        source, width = self.source, self.staging.width
        offset = self._offset(unit, x)
        k = None
        if step.length is not None:
            k = self.place(unit, x).k
            offset = emit.select(k < step.length, offset, PAST_THE_END)
        words = max(1, width // WORD)
        origin, advance = self._from(step)
        value = emit.device(
            emit.of_length("int32", words), f"buffer.load.{emit.KINDS[width]}",
            source.base, origin, source.size, offset, advance,
        )  # fmt: skip
        emit.store(self._fetched[unit][x], value, 0, words)
        if step.length is not None:
            self.clear(unit, x, k, step.length)

    def _from(self, step: Step) -> tuple[Any, Any]:
        """Where a step starts: the origin in bytes, and what is added to each lane's offset."""
        source = self.source
        if source.far:
            return source.origin + emit.wide(step.k) * emit.wide(source.stride), T.int32(0)
        return source.origin, self.advance(step.k)

    def clear(self, unit: int, x: int, k: Any, length: Any) -> None:
        """Zero what a load fetched of k >= length, where it may hold some on both sides."""
        del unit, x, k, length  # one load, one k: all or nothing

    def address(self, key: tuple[Any, ...], compute: Any) -> Any:
        """A value that is computed once."""
        if key not in self._addresses:
            name = "_".join([self.name, *(str(part) for part in key)])
            self._addresses[key] = emit.let(name, compute())
        return self._addresses[key]

    def parts(self, names: tuple[str, ...], unit: int, compute: Any) -> tuple[Any, ...]:
        """Several values, each computed once: TVM's simplifier can take minutes over long ones."""
        if (names[0], unit) not in self._addresses:
            for name, value in zip(names, compute(), strict=True):
                self.address((name, unit), lambda value=value: value)
        return tuple(self._addresses[name, unit] for name in names)

    def words(self, unit: int, loads: range) -> list[Any]:
        """The bytes of some loads, as words."""
        width, fetched = self.staging.width, self._fetched[unit]
        if width >= WORD:
            return [emit.load(fetched[x], w) for x in loads for w in range(width // WORD)]
        each = WORD // width
        words = []
        for first in loads[::each]:
            word = emit.load(fetched[first], 0)
            for part in range(1, each):
                bits = emit.load(fetched[first + part], 0)
                word = word | T.shift_left(bits, T.int32(8 * width * part))
            words.append(word)
        return words

    def gathered(self, words: list[Any]) -> Any:
        """Words as one vector."""
        together = emit.local(f"{self.name}_together", len(words), "int32")
        for index, word in enumerate(words):
            emit.store(together, word, index)
        return emit.load(together, 0, len(words))

    def chunk(self, unit: int) -> Any:
        """A unit that is one chunk."""
        if self.staging.width == CHUNK:
            return emit.load(self._fetched[unit][0], 0, CHUNK // WORD)
        return self.gathered(self.words(unit, range(self.staging.loads)))


@dataclass
class RowFetch(Fetch):
    """K lies together, in memory as in the LDS."""

    rows: RowStaging
    tile: LdsTile

    @property
    def staging(self) -> RowStaging:
        return self.rows

    def prepare(self) -> None:
        super().prepare()
        for unit in range(self.rows.units):
            self._word(unit)

    def _at(self) -> tuple[Any, ...]:
        """(row, chunk) of the first unit."""
        return self.parts(("row", "chunk"), 0, lambda: self.rows.place(self.thread))

    def place(self, unit: int, x: int) -> Place:
        row, chunk = self._at()
        row = row + unit * self.rows.rows_apart
        byte = chunk * CHUNK + x * self.rows.width
        return Place(row, byte // self.element_bytes, row * self.source.stride + byte)

    def has_work(self, place: Place) -> list[Any]:
        # Rows past the matrix are past the end of the buffer.
        return [place.row < self.rows.rows] if self.rows.rows_filled > self.rows.rows else []

    @property
    def first_word(self) -> int:
        return self.tile.first_word

    def place_in_lds(self, unit: int) -> Place:
        row, place = self._at()
        row = row + unit * self.rows.rows_apart
        byte = (place ^ self.tile.swizzle(row)) * CHUNK
        return Place(row, byte // self.element_bytes, row * self.source.stride + byte)

    def advance(self, k: Any) -> Any:
        return k * self.element_bytes

    def store(self, unit: int, stage: int) -> list[Piece]:
        return [piece(self._store, unit, stage)]

    def _store(self, unit: int, stage: int) -> None:
        place = self._word(unit) + stage * self.stage_words
        emit.store(self.memory, self.chunk(unit), place, CHUNK // WORD)

    def _word(self, unit: int) -> Any:
        row, chunk = self._at()
        apart = unit * self.rows.rows_apart
        change = self.tile.swizzle(apart)
        base = self.address(("to", change), lambda: self.tile.word(row, chunk ^ change))
        return base + apart * self.tile.chunks * (CHUNK // WORD)

    def clear(self, unit: int, x: int, k: Any, length: Any) -> None:
        size, width = self.element_bytes, self.rows.width
        if width <= size:
            return
        registers = self._fetched[unit][x]
        for word in range(max(1, width // WORD)):
            if size >= WORD:
                kept = emit.select(k + word * WORD // size < length, T.int32(-1), T.int32(0))
            else:
                bits = (length - (k + word * (WORD // size))) * (8 * size)
                some = T.shift_left(T.int32(1), T.min(T.max(bits, 0), 31)) - 1
                kept = emit.select(bits >= 32, T.int32(-1), some)
            emit.store(registers, emit.load(registers, word) & kept, word)
