"""Stores into the LDS of what was fetched: turned around, converted or computed on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import AllocBuffer, Bind, Buffer, BufferStore, Expr, IfThenElse, Stmt, Var

from mfmadsl.passes.main_loop.moves.element import (
    Element,
    MemorySource,
    source_of,
    sources,
    with_sources,
)
from mfmadsl.passes.main_loop.moves.fetch import Fetch
from mfmadsl.passes.main_loop.moves.octets import of_whole_words
from mfmadsl.passes.main_loop.moves.pairs import in_pairs
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import (
    WORD,
    bits_of,
    distance,
    i32,
    loads_of,
    of_length,
    ramp,
    substitute,
)

Home = dict[tuple[int, int, tvm_ffi.StructuralKey], tuple[Fetch, int]]
"""Where each element of memory is: (tile, buffer, place) to the fetch and its number there."""


@dataclass(frozen=True)
class Put:
    """Neighbours in the LDS, stored together."""

    run: tuple[Element, ...]
    home: Home
    variable: tirx.Var
    index: Expr

    @property
    def buffer(self) -> Buffer:
        """The tile that is stored to."""
        return self.run[0].buffer

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return bits_of(self.buffer.dtype) // 8

    @cached_property
    def _origins(self) -> list[tuple[Fetch, int]]:
        """Where each element of a plain run is fetched."""
        return [self._origin(load) for each in self.run for load in loads_of(each.value)]

    def _origin(self, load: TensorLoad) -> tuple[Fetch, int]:
        tile = self.buffer.__chandle__()
        return self.home[tile, load.source.__chandle__(), tvm_ffi.StructuralKey(load.indices[0])]

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is bits as they were fetched, where each has the conditions of its fetch."""
        return all(each.is_plain for each in self.run) and all(
            map(_as_fetched, self.run, self._origins)
        )

    @cached_property
    def fetches(self) -> list[Fetch]:
        """All that it needs, each once."""
        origins = [self._origin(load) for each in self.run for load in loads_of(each.value)]
        return list({id(fetch): fetch for fetch, _ in origins}.values())

    @cached_property
    def is_straight(self) -> bool:
        """Whether it is just what one fetch brings, in its order."""
        if not self.is_plain:
            return False
        fetch = self._origins[0][0]
        numbers = [number for each, number in self._origins if each is fetch]
        return len(numbers) == len(self.run) and numbers == list(range(len(fetch.run)))

    @cached_property
    def memory(self) -> tuple[MemorySource, ...]:
        """What it copies, of neighbours in memory as they are; nothing if it is another."""
        if not all(isinstance(each.value, TensorLoad) for each in self.run):
            return ()
        found = tuple(map(source_of, self.run))
        first, analyzer = found[0], Analyzer()
        distances = (distance(each.place, first.place, analyzer) for each in found)
        together = all(each.buffer.same_as(first.buffer) for each in found)
        return found if together and list(distances) == [*range(len(found))] else ()

    @cached_property
    def cost(self) -> int:
        """About how many instructions it takes."""
        words = max(1, len(self.run) * self.size // WORD)
        if not self.is_plain:
            return 1 + 4 * len(self.run)
        shifted = words if any(f.is_shifted for f in self.fetches) else 0
        return 1 + shifted + (0 if self.is_straight else words)

    def statements(self, k: Expr, is_last: bool, buffer: Buffer | None = None) -> list[Stmt]:
        """The store of iteration `k`, into another buffer of the same kind if one is given."""
        lanes = len(self.run)
        if not self.is_plain:
            made = self._made(k, is_last)
        elif lanes * self.size < WORD:
            made = self._narrow(k, is_last)
        else:
            made = self._words(k, is_last)
        before, value = made
        return [*before, self._store(value, buffer)]

    def store_of(self, words: Buffer, buffer: Buffer | None = None) -> Stmt:
        """The store of words that are computed already, into its buffer or another one."""
        return self._store(tirx.BufferLoad(words, [ramp(0, int(words.shape[0]))]), buffer)

    def _store(self, value: Expr, buffer: Buffer | None) -> Stmt:
        buffer = self.buffer if buffer is None else buffer
        lanes = len(self.run)
        store = BufferStore(buffer, tirx.reinterpret(of_length(str(buffer.dtype), lanes), value),
                            [ramp(self.index, lanes)])  # fmt: skip
        guards = self.run[0].guards
        if not guards:
            return store
        condition = guards[0]
        for each in guards[1:]:
            condition = tirx.And(condition, each)
        return IfThenElse(condition, store, None)

    @property
    def words(self) -> int:
        """Of how many words it is; 0 if they are no whole ones, or its elements are larger."""
        words, rest = divmod(len(self.run) * self.size, WORD)
        return 0 if rest or self.size > WORD else words

    def computed_into(self, words: Buffer, k: Expr, is_last: bool) -> list[list[Stmt]]:
        """What it stores for iteration `k`, computed into registers, word by word, and each where
        it stands, not just ahead of the store."""
        before, values = self._computed(k, is_last)
        values = in_pairs(values, alone=True) or values
        each = len(values) // self.words
        found: list[list[Stmt]] = []
        for number in range(self.words):
            parts, own = values[number * each : (number + 1) * each], [i32(number)]
            word = parts[0] if each == 1 else tirx.Shuffle(parts, list(range(each)))
            kept = BufferStore(words, tirx.reinterpret("int32", word), own)
            found.append([kept, device.there(tirx.BufferLoad(words, own))])
        return [[*before, *found[0]], *found[1:]]

    def _words(self, k: Expr, is_last: bool) -> tuple[list[Stmt], Expr]:
        words = len(self.run) * self.size // WORD
        first, _ = self._origins[0]
        if self.is_straight and first.is_plain and not is_last:
            return [], tirx.BufferLoad(first.registers, [ramp(0, words)])
        made = tirx.decl_buffer((words,), "int32", "made", scope="local")
        before: list[Stmt] = [AllocBuffer(made)]
        for index in range(words):
            before.append(BufferStore(made, self._word(index, k, is_last), [i32(index)]))
        return before, tirx.BufferLoad(made, [ramp(0, words)])

    def _word(self, index: int, k: Expr, is_last: bool) -> Expr:
        """A word, of bytes that may come from several: by `v_perm_b32`, at most three times."""
        if self.size >= WORD:
            each = self.size // WORD
            fetch, number = self._origins[index // each]
            return fetch.word(number * each + index % each, k, is_last)
        each = WORD // self.size
        parts = []
        for fetch, number in self._origins[index * each : (index + 1) * each]:
            parts.append((fetch, number // each, number % each * self.size))
        if len({(id(f), w) for f, w, _ in parts}) == 1 and [b for *_, b in parts] == list(
            range(0, WORD, self.size)
        ):
            return parts[0][0].word(parts[0][1], k, is_last)
        words = [fetch.word(word, k, is_last) for fetch, word, _ in parts]
        first = [byte for *_, byte in parts]
        if len(parts) == 2:
            low, high = (b | (b + 1) << 8 for b in first)
            return device.permute(words[1], words[0], low | (high + 0x0404) << 16)
        return _four_bytes(words, first)

    def _narrow(self, k: Expr, is_last: bool) -> tuple[list[Stmt], Expr]:
        """Fewer bytes than a word."""
        value: Expr = i32(0)
        for number, (fetch, place) in enumerate(self._origins):
            per_word = WORD // self.size
            word = fetch.word(place // per_word, k, is_last)
            down = 8 * self.size * (place % per_word)
            part = tirx.shift_right(word, i32(down)) if down else word
            part = part & i32((1 << 8 * self.size) - 1)
            part = tirx.shift_left(part, i32(8 * self.size * number)) if number else part
            value = value | part if number else part
        return [], tirx.Cast(f"uint{8 * self.size * len(self.run)}", value)

    def _made(self, k: Expr, is_last: bool) -> tuple[list[Stmt], Expr]:
        """All that is made of what was fetched, at once."""
        before, values = self._computed(k, is_last)
        values = in_pairs(values) or values
        made = tirx.decl_buffer((len(values),), str(values[0].ty.dtype), "made", scope="local")
        stores = [BufferStore(made, value, [i32(at)]) for at, value in enumerate(values)]
        return [*before, AllocBuffer(made), *stores], tirx.BufferLoad(made, [ramp(0, len(values))])

    def _computed(self, k: Expr, is_last: bool) -> tuple[list[Stmt], list[Expr]]:
        """Elements that are made of what was fetched, 0 where they lie past an edge, behind some
        statements."""
        dtype = str(self.buffer.dtype)
        before: list[Stmt] = []
        values: list[Expr] = []

        def fetched(load: TensorLoad) -> Expr:
            fetch, number = self._origin(load)
            return fetch.element(number, k, is_last)

        for each in self.run:
            value = of_whole_words(with_sources(each.value, fetched))
            value = substitute(value, {self.variable: k})
            for condition in each.conditions:
                wanted = Var("wanted", "bool")
                before.append(Bind(wanted, substitute(condition, {self.variable: k})))
                value = tirx.Select(wanted, value, tirx.const(0, dtype))
            values.append(value)
        return before, values


def _as_fetched(each: Element, origin: tuple[Fetch, int]) -> bool:
    """Whether an element is wanted just where its source is: others may want that, too."""
    fetch, number = origin
    (own,) = sources([each])
    return fetch.run[number].is_wanted_as(own)


def _four_bytes(words: Sequence[Expr], bytes_: Sequence[int]) -> Expr:
    """Four bytes of four words, by way of pairs of neighbouring bytes, that other words share."""
    pairs = []
    for low, high in ((0, 1), (2, 3)):
        even = bytes_[low] & ~1
        if bytes_[high] & ~1 == even:
            # Bytes even and even + 1 of both words, interleaved: the next word takes the other one.
            selector = even | (even + 4) << 8 | (even + 1) << 16 | (even + 5) << 24
            pairs.append((device.permute(words[high], words[low], selector),
                          bytes_[low] & 1, bytes_[high] & 1))  # fmt: skip
        else:
            selector = bytes_[low] | (bytes_[high] + 4) << 8
            pairs.append((device.permute(words[high], words[low], selector), 0, 0))
    (first, a, b), (second, c, d) = pairs
    chosen = [2 * a, 2 * b + 1, 4 + 2 * c, 4 + 2 * d + 1]
    selector = sum(byte << 8 * place for place, byte in enumerate(chosen))
    return device.permute(second, first, selector)
