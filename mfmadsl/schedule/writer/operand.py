"""The code that reads fragments of one operand, from the LDS into the registers of a wave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.emit import Piece, piece
from mfmadsl.schedule.writer.fetch import Fetch
from mfmadsl.schedule.writer.fragment import Fragment
from mfmadsl.schedule.writer.lds import CHUNK, WORD, LdsTile, TransposedTile

_TURNED = 8  # bytes of a lane in a read that transposes


@dataclass
class OperandCode(ABC):
    """One operand: how it gets into the LDS, and its fragments, of `tiles` tiles of a wave.

    There are two sets of fragments, one to be read while the other is multiplied.
    """

    fetch: Fetch
    fragment: Fragment
    lane: Any
    first_row: Any
    tiles: int
    read_bytes: int
    row_bytes: int
    _fragments: list[list[Any]] = field(default_factory=list, init=False)

    @property
    @abstractmethod
    def parts(self) -> int:
        """Reads that fill one fragment."""

    @abstractmethod
    def read(self, word: Any) -> Any:
        """What a lane reads from a word on."""

    @property
    def fragment_bytes(self) -> int:
        return max(self.fragment.lane_bytes, self.read_bytes)

    @property
    def register_steps(self) -> int:
        """Fragments along K in a tile."""
        return self.row_bytes // (self.fragment.groups * self.fragment_bytes)

    def prepare(self) -> None:
        """Registers, and all addresses that stay the same from step to step."""
        self.fetch.prepare()
        self._fragments = [
            [
                emit.local(f"{self.fetch.name}_{slot}_{t}", self.fragment_bytes // WORD, "int32")
                for t in range(self.tiles)
            ]
            for slot in range(2)
        ]
        for step in range(self.register_steps):
            for t in range(self.tiles):
                for part in range(self.parts):
                    self.word(step, t, part)

    @abstractmethod
    def word(self, step: int, t: int, part: int) -> Any:
        """Where a lane reads."""

    def reads(self, step: int, stage: int) -> list[Piece]:
        """Fill the fragments of a register step, from a stage of the LDS."""
        return [
            piece(self._read, step, t, part, stage)
            for t in range(self.tiles)
            for part in range(self.parts)
        ]

    def _read(self, step: int, t: int, part: int, stage: int) -> None:
        words = self.fragment_bytes // self.parts // WORD
        place = self.word(step, t, part) + stage * self.fetch.stage_words
        emit.store(self._fragments[step % 2][t], self.read(place), part * words, words)

    def value(self, slot: int, t: int, instruction: int, dtype: str) -> Any:
        """What an instruction takes of a fragment, under the type that LLVM wants."""
        words = self.fragment.lane_bytes // WORD
        bits = emit.load(self._fragments[slot][t], instruction * words, words)
        return bits if dtype == emit.of_length("int32", words) else emit.reinterpret(bits, dtype)


@dataclass
class RowOperand(OperandCode):
    """K lies together in the LDS: a lane reads what it needs as it is."""

    tile: LdsTile

    @property
    def parts(self) -> int:
        return max(1, self.fragment.lane_bytes // self.read_bytes)

    def word(self, step: int, t: int, part: int) -> Any:
        tile, fragment = self.tile, self.fragment
        row = self.first_row + self.lane % fragment.rows
        byte = self.lane // fragment.rows * self.read_bytes
        fixed = (step * self.parts + part) * fragment.groups * self.read_bytes
        change = tile.swizzle(t * fragment.rows) ^ (fixed // CHUNK)
        base = self.fetch.address(
            ("from", change),
            lambda: tile.word(row, (byte // CHUNK) ^ change) + byte % CHUNK // WORD,
        )
        return base + t * fragment.rows * tile.chunks * (CHUNK // WORD) + fixed % CHUNK // WORD

    def read(self, word: Any) -> Any:
        return emit.load(self.fetch.memory, word, self.read_bytes // WORD)


@dataclass
class TransposedOperand(OperandCode):
    """Rows lie together in the LDS: a read gives each of 16 lanes the k of its own row (CDNA4 ISA,
    section 11: DS_READ_B64_TR_B16, DS_READ_B64_TR_B8).

    A lane gets the same k as from a `RowOperand`, so that A and B may lie differently.
    """

    tile: TransposedTile

    @property
    def parts(self) -> int:
        return self.fragment_bytes // _TURNED

    def word(self, step: int, t: int, part: int) -> Any:
        tile, fragment = self.tile, self.fragment
        size = tile.element_bytes
        # A lane's chunk of K, as in the other tile; a read takes half of it.
        chunk_k, per_chunk = CHUNK // size, CHUNK // _TURNED
        fixed = (step * self.parts // per_chunk + part // per_chunk) * fragment.groups * chunk_k
        fixed += part % per_chunk * tile.k_at_once
        group, own = self.lane // fragment.rows, self.lane % 16
        lanes = 16 // tile.k_at_once  # that hold one k of 16 rows
        k = group * chunk_k + own // lanes
        row = self.lane % fragment.rows // 16 * 16 + own % lanes * tile.k_at_once
        change = tile.swizzle(fixed) ^ (t * fragment.rows // 16)
        base = self.fetch.address(
            ("from", change), lambda: tile.word(k, (self.first_row + row) ^ (change * 16))
        )
        return base + fixed * tile.rows * size // WORD

    def read(self, word: Any) -> Any:
        name = f"read.transposed.{8 * self.tile.element_bytes}"
        return emit.device("int32x2", name, self.fetch.memory.data, word * WORD)
