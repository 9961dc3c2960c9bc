"""What an attention of TVM's KV cache computes, as blocks that `attention_schedule` takes.

Its logarithms have the base 2, and -5e4 is the least score: one more key has it, whose value is
zero. So a query without keys has zeros, and -5e4 as its logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import e, inf, log2

from tvm import te, tirx
from tvm.tirx import Expr, PrimFunc
from tvm.tirx.buffer import BufferType

from mfmadsl.relax.kv_cache.form import CacheAttention, CacheKind
from mfmadsl.schedule.product.row_batches import batch_of_rows
from mfmadsl.schedule.workload.attended import softmax

_LEAST = -5e4  # of what scores are multiplied with log2(e) to be
_FAR = 1 << 30  # places of keys have 32 bits


def workload(found: CacheAttention) -> PrimFunc:
    """The attention as a function with the parameters of the cache's own, but for their places in
    memory, for calls without rotary embeddings and with all arrays where they begin.

    Of rows that see no key of their batch TVM's own functions make a mean of values, with a
    logarithm that has no weight against any other; here they have zeros.
    """
    return _Workload(found).function()


@dataclass(frozen=True)
class _Workload:
    """Scores are at places (row, head, key); keys are counted from the first one of a batch that
    there is."""

    found: CacheAttention

    @cached_property
    def arrays(self) -> dict[str, te.Tensor]:
        """The arrays that are read, and those that TVM reads for rotary embeddings."""
        return {
            name: te.placeholder(list(self.found.array(name).shape), self._type(name), name)
            for name in self.found.kind.value
            if isinstance(self.found.given(name).ty, BufferType) and name not in ("o", "l")
        }

    @cached_property
    def row_batch(self) -> te.Tensor | None:
        """The batch of each row, if that is not its number."""
        if self.found.kind is CacheKind.DECODE:
            return None
        return batch_of_rows(self.arrays["q_starts"], self.arrays["q"].shape[0])

    def function(self) -> PrimFunc:
        """The whole function."""
        q, dtype = self.arrays["q"], self._type("q")
        rows, heads, depth = q.shape
        columns = self.found.array("o").shape[-1]
        d = te.reduce_axis((0, depth), name="d")

        def product(i: Expr, h: Expr, j: Expr) -> Expr:
            return te.sum(q[i, h, d].astype("float32") * self._element(0, i, h, j, d), axis=[d])

        s = te.compute((rows, heads, self._most_keys), product, name="S")
        x = te.compute(s.shape, lambda i, h, j: self._score(s[i, h, j], i, j), name="X")
        p, largest, total = softmax(x, dtype)
        j = te.reduce_axis((0, self._most_keys), name="j")

        def weighted(i: Expr, h: Expr, c: Expr) -> Expr:
            return te.sum(p[i, h, j].astype("float32") * self._element(1, i, h, j, c), axis=[j])

        t = te.compute((rows, heads, columns), weighted, name="T")
        o = te.compute(
            t.shape,
            lambda i, h, c: (t[i, h, c] * _Ends(largest[i, h], total[i, h]).share).astype(dtype),
            name="O",
        )
        logarithm = te.compute(
            (rows, heads), lambda i, h: _Ends(largest[i, h], total[i, h]).logarithm, name="L"
        )
        made = {**self.arrays, "o": o, "l": logarithm}
        names = self.found.kind.value
        given = [made[name] if name in made else self.found.given(name) for name in names]
        return te.create_prim_func(given)

    @property
    def _most_keys(self) -> Expr:
        """That a batch may have: all that there are."""
        if "k" in self.arrays:
            return self.arrays["k"].shape[0]
        return self.arrays["page_numbers"].shape[0] * self._page_size

    @property
    def _page_size(self) -> Expr:
        return self.arrays["pages"].shape[-2]

    def _type(self, name: str) -> str:
        return str(self.found.array(name).dtype)

    def _batch(self, row: Expr) -> Expr:
        return row if self.row_batch is None else self.row_batch[row]

    def _count(self, batch: Expr) -> Expr:
        """How many keys a batch has."""
        if "k" in self.arrays:
            starts = self.arrays["k_starts"]
            return starts[batch + 1] - starts[batch]
        starts, lengths = self.arrays["page_starts"], self.arrays["lengths"]
        pages = starts[batch + 1] - starts[batch]
        last: Expr = lengths[batch]
        if self.found.slides:
            last = lengths[0, batch] - lengths[1, batch] + lengths[2, batch]
        count = (pages - 1) * self._page_size + last
        return tirx.Select(tirx.NE(pages, _number(0)), count, tirx.const(0, "int32"))

    def _score(self, product: Expr, row: Expr, key: Expr) -> Expr:
        """The score of a product; -inf of a key that the row does not see."""
        batch = self._batch(row)
        count, lowest = self._count(batch), tirx.const(-inf, "float32")
        score = product * self.found.given("sm_scale")
        if self.found.has("causal"):
            starts, is_causal = self.arrays["q_starts"], self.found.given("causal") > 0
            if self.found.window is None:
                ahead = tirx.Select(is_causal, count - starts[batch + 1], _number(_FAR))
                sees = key <= row + ahead
            else:
                before = count - self.found.window - starts[batch]
                sees = key > row + tirx.Select(is_causal, before, _number(-_FAR))
            score = tirx.Select(sees, score, lowest)
        return tirx.if_then_else(key < count, score, lowest)

    def _element(self, which: int, row: Expr, head: Expr, key: Expr, column: Expr) -> Expr:
        """An element of K (0) or V (1), in float32."""
        batch = self._batch(row)
        heads = self.arrays["q"].shape[1]
        if "k" in self.arrays:
            array = self.arrays["kv"[which]]
            shared = tirx.floordiv(head, tirx.floordiv(heads, array.shape[1]))
            own = self.arrays["k_starts"][batch] + key, shared, column
            element = array[own].astype("float32")
            # The array may have nothing there.
            return tirx.if_then_else(key < self._count(batch), element, tirx.const(0, "float32"))
        place = self._place(batch, key)
        pages, starts = self.arrays["pages"], self.arrays["page_starts"]
        page = self.arrays["page_numbers"][starts[batch] + tirx.floordiv(place, self._page_size)]
        there = tirx.floormod(place, self._page_size)
        if self.found.kind is CacheKind.LATENT:
            return pages[page, there, column].astype("float32")
        shared = tirx.floordiv(head, tirx.floordiv(heads, pages.shape[2]))
        return pages[page, which, shared, there, column].astype("float32")

    def _place(self, batch: Expr, key: Expr) -> Expr:
        """Where a key is in its batch: some behind the first ones may not be there."""
        if not self.found.slides:
            return key
        lengths = self.arrays["lengths"]
        kept, gone = lengths[2, batch], lengths[1, batch] - lengths[2, batch]
        # No choice: a copy computes places of numbers that it reads once.
        is_behind = tirx.min(tirx.max(key - kept + 1, 0), 1)
        return key + is_behind * gone


@dataclass(frozen=True)
class _Ends:
    """What becomes of the largest score of a row and its sum of exponentials."""

    largest: Expr
    total: Expr

    @property
    def _most(self) -> Expr:
        most: Expr = tirx.max(self.largest * _float(log2(e)), _float(_LEAST))
        return most

    @property
    def _part(self) -> Expr:
        part: Expr = tirx.exp2(self.largest * _float(log2(e)) - self._most)
        return part

    @property
    def _sum(self) -> Expr:
        whole: Expr = self.total * self._part + tirx.exp2(_float(_LEAST) - self._most)
        return whole

    @property
    def share(self) -> Expr:
        """What a column's sum is multiplied with."""
        return self._part / self._sum

    @property
    def logarithm(self) -> Expr:
        """The logarithm of the whole sum, to the base 2."""
        logarithm: Expr = self._most + tirx.log2(self._sum)
        return logarithm


def _number(value: int) -> Expr:
    return tirx.const(value, "int32")


def _float(value: float) -> Expr:
    return tirx.const(value, "float32")
