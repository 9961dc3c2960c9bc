"""Attentions whose queries of all batches lie one behind the other, and perhaps the keys, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.schedule.flash_attention.attended import Array, Case


@dataclass(frozen=True)
class PackedCase(Case):
    """A case of which batch b has the first `q_lengths[b]` queries, and `lengths[b]` keys.

    There are `behind` more rows of Q.
    """

    packed: str = "queries"
    q_lengths: tuple[int, ...] = ()
    behind: int = 0

    def described(self) -> dict[str, Any]:
        """The arguments of `attention`."""
        found = super().described() | {"packed": self.packed}
        if "queries" not in self.symbolic:
            found["queries"] = sum(self.q_lengths) + self.behind
        if self.packed == "all":
            found["lengths"] = False
            if "keys" not in self.symbolic:
                found["keys"] = sum(self.lengths or ())
        return found

    @property
    def own_queries(self) -> Any:
        """How many queries each batch has, [batch, 1, 1, 1]."""
        return np.array(self.q_lengths)[:, None, None, None]

    def arrays(self) -> dict[str, Array]:
        """The arguments by name, in their order."""
        found = super().arrays()
        if self.packed == "all":
            del found["lengths"]
        of_keys = ("k", "v", "k_scale", "v_scale") if self.packed == "all" else ()
        for name in of_keys:
            if name in found and (self.scales == "token" or name in "kv"):
                found[name] = self._one_behind_the_other(found[name], self.lengths or (), 0)
        for name in ("q", "o", "l", "bias"):
            if name in found:
                found[name] = self._rows(name, found[name])
        starts = {"q_starts": _starts(self.q_lengths)}
        if self.packed == "all":
            starts["k_starts"] = _starts(self.lengths or ())
        after = ["table", "lengths", "bias", "o", "l"]
        first = {name: array for name, array in found.items() if name not in after}
        return {**first, **starts, **{name: found[name] for name in after if name in found}}

    def compare(self, o: Array, logarithm: Array) -> None:
        """Compare O and L with float64. Rows behind the last batch are as they were."""
        whole, sums, _ = self.expected()
        found, logarithms = whole.copy(), sums.copy()
        last = 0
        for b, count in enumerate(self.q_lengths):
            found[b, :, :count] = o[:, last : last + count]
            logarithms[b, :, :count] = logarithm[:, last : last + count]
            last += count
        assert (o[:, last:].astype(np.float32) == 7).all()
        super().compare(found, logarithms)

    def lying(self, array: Array) -> Array:
        """An array as the layout has it, and back; one without batches, too."""
        turned = array if self.layout == "bhsd" else array.swapaxes(-3, -2)
        return np.ascontiguousarray(turned)

    def _rows(self, name: str, array: Array) -> Array:
        if name in "qo":
            return self._one_behind_the_other(array, self.q_lengths, self.behind)
        packed = _packed(array, self.q_lengths, self.behind, axis=1)
        if name == "bias" and self.packed == "all":
            keys = sum(self.lengths or ())
            wide = np.full((*packed.shape[:-1], max(keys, self.keys)), np.nan, packed.dtype)
            wide[..., : self.keys] = packed
            return np.ascontiguousarray(wide[..., :keys])
        return packed

    def _one_behind_the_other(self, array: Array, lengths: tuple[int, ...], behind: int) -> Array:
        """Q, K, V, O or scales of places, as the layout has them."""
        return _packed(array, lengths, behind, axis=1 if self.layout == "bhsd" else 0)


def _packed(array: Array, lengths: tuple[int, ...], behind: int, axis: int) -> Array:
    """The first elements along an axis of what each batch has, and some more of the last ones."""
    parts = [np.take(array[b], range(count), axis) for b, count in enumerate(lengths)]
    parts.append(np.take(array[-1], np.zeros(behind, int), axis))
    return np.concatenate(parts, axis)


def _starts(lengths: tuple[int, ...]) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
