"""Bringing a tile whose rows, not whose K, lie together in memory (B as K x N, A as K x M)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from tvm.tirx.script.builder import ir as T

from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.emit import Piece, piece
from mfmadsl.schedule.writer.fetch import Fetch, Place
from mfmadsl.schedule.writer.lds import CHUNK, GRANULE, WORD, LdsTile, TransposedTile
from mfmadsl.schedule.writer.staging import (
    ColumnStaging,
    RowStaging,
    bytes_paired,
    bytes_turned,
    halves_turned,
)


class RowsTogether(Fetch):
    """What both ways have in common."""

    @abstractmethod
    def in_tile(self, place: Place) -> list[Any]:
        """Conditions under which a load is not one of those that fill up the last unit."""

    def has_work(self, place: Place) -> list[Any]:
        # Past the last row comes the first of the next k, not the end of the buffer.
        left = self.source.rows_left
        return [*([place.row < left] if left is not None else []), *self.in_tile(place)]

    def advance(self, k: Any) -> Any:
        return k * self.source.stride


@dataclass
class TransposedFetch(RowsTogether):
    """Rows lie together, in memory as in the LDS: reads will transpose. `lines` deals out lines of
    them, one for each k."""

    lines: RowStaging
    tile: TransposedTile

    @property
    def staging(self) -> RowStaging:
        return self.lines

    def prepare(self) -> None:
        super().prepare()
        for unit in range(self.lines.units):
            self._word(unit)

    def _at(self, unit: int) -> tuple[Any, Any]:
        """(k, row) of a unit's chunk."""
        k, chunk = self.parts(("k", "chunk"), 0, lambda: self.lines.place(self.thread))
        return k + unit * self.lines.rows_apart, chunk * (CHUNK // self.element_bytes)

    def place(self, unit: int, x: int) -> Place:
        k, row = self._at(unit)
        row = row + x * (self.lines.width // self.element_bytes)
        return Place(row, k, k * self.source.stride + row * self.element_bytes)

    def in_tile(self, place: Place) -> list[Any]:
        return [place.k < self.lines.rows] if self.lines.rows_filled > self.lines.rows else []

    @property
    def first_word(self) -> int:
        return self.tile.first_word

    def place_in_lds(self, unit: int) -> Place:
        k, place = self._at(unit)
        row = (place // GRANULE ^ self.tile.swizzle(k)) * GRANULE + place % GRANULE
        return Place(row, k, k * self.source.stride + row * self.element_bytes)

    def store(self, unit: int, stage: int) -> list[Piece]:
        return [piece(self._store, unit, stage)]

    def _store(self, unit: int, stage: int) -> None:
        place = self._word(unit) + stage * self.stage_words
        emit.store(self.memory, self.chunk(unit), place, CHUNK // WORD)

    def _word(self, unit: int) -> Any:
        return self.address(("to", unit), lambda: self.tile.word(*self._at(unit)))


@dataclass
class ColumnFetch(RowsTogether):
    """Rows lie together in memory, K in the LDS: threads turn them around in their registers."""

    columns: ColumnStaging
    tile: LdsTile

    @property
    def staging(self) -> ColumnStaging:
        return self.columns

    def prepare(self) -> None:
        super().prepare()
        for unit in range(self.columns.units):
            for row in range(self.columns.group):
                self._word(unit, row)

    def _at(self, unit: int) -> tuple[Any, ...]:
        """(group of rows, chunk, half) of a unit."""
        names = "group", "chunk", "half"
        return self.parts(names, unit, lambda: self.columns.place(unit, self.thread))

    def place(self, unit: int, x: int) -> Place:
        staging = self.columns
        group, chunk, half = self._at(unit)
        each = staging.group_bytes // staging.width
        k = (chunk * 2 + half) * staging.k + x // each
        row = group * staging.group + x % each * (staging.width // self.element_bytes)
        return Place(row, k, k * self.source.stride + row * self.element_bytes)

    def in_tile(self, place: Place) -> list[Any]:
        padded = self.columns.rows_filled > self.columns.rows
        return [place.row < self.columns.rows] if padded else []

    @property
    def first_word(self) -> int:
        return self.tile.first_word

    def _word(self, unit: int, row: int) -> Any:
        group, chunk, half = self._at(unit)
        change = self.tile.swizzle(row)
        base = self.address(
            ("to", unit, change),
            lambda: (
                self.tile.word(group * self.columns.group, chunk ^ change)
                + half * (CHUNK // WORD // 2)
            ),
        )
        return base + row * self.tile.chunks * (CHUNK // WORD)

    def store(self, unit: int, stage: int) -> list[Piece]:
        """Turn a unit around, some words at a time, and store its rows."""
        words = range(self.columns.group_bytes // WORD)
        if self.element_bytes == 1:
            return [each for word in words for each in self._turn_bytes(unit, word, stage)]
        if self.element_bytes == 2:
            return [
                piece(self._turn_halves, unit, word, row, stage, cost=3)
                for word in words
                for row in (0, 1)
            ]
        return [piece(self._put_words, unit, row, stage) for row in range(self.columns.group)]

    def _columns(self, unit: int, word: int) -> list[Any]:
        """The word of each k."""
        each = self.columns.group_bytes // self.columns.width
        return [
            self.words(unit, range(y * each, (y + 1) * each))[word] for y in range(self.columns.k)
        ]

    def _put(self, unit: int, row: int, words: list[Any], stage: int) -> None:
        place = self._word(unit, row) + stage * self.stage_words
        emit.store(self.memory, self.gathered(words), place, 2)

    def _put_words(self, unit: int, row: int, stage: int) -> None:
        each = self.element_bytes // WORD
        columns = [self._columns(unit, row * each + part) for part in range(each)]
        words = [word for words in zip(*columns, strict=True) for word in words]
        self._put(unit, row, words, stage)

    def _turn_halves(self, unit: int, word: int, row: int, stage: int) -> None:
        turned = halves_turned(self._columns(unit, word), row, _permute)
        self._put(unit, 2 * word + row, turned, stage)

    def _turn_bytes(self, unit: int, word: int, stage: int) -> list[Piece]:
        """Four rows. Two of them share the first half of the work, which comes with the first."""
        shared: dict[int, list[Any]] = {}

        def put(row: int) -> None:
            if row % 2 == 0:
                columns = self._columns(unit, word)
                for half in (0, 1):
                    four = columns[4 * half : 4 * half + 4]
                    shared[half] = bytes_paired(four, row // 2, _permute)
            words = [bytes_turned(shared[half], row % 2, _permute) for half in (0, 1)]
            self._put(unit, WORD * word + row, words, stage)

        return [piece(put, row, cost=3 if row % 2 else 7) for row in range(WORD)]


def _permute(high: Any, low: Any, selector: int) -> Any:
    word = emit.intrinsic("int32", "llvm.amdgcn.perm", high, low, T.int32(selector))
    return emit.let("turned", word)
