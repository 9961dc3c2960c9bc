"""What an attention of TVM's paged KV cache is asked for, by the parameters that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tvm.tirx import Buffer, Expr, PrimFunc

from mfmadsl.passes.tir.expression import constant

_ROPE = ("rotary_mode", "rope_scale", "rope_theta", "sm_scale")
_TABLE = ("page_starts", "page_numbers", "lengths")


class CacheKind(Enum):
    """TVM's functions, by what their parameters are, in order.

    Queries q, and results o, are [query, head, depth], the logarithms l [query, head]: one query of
    each batch to decode, else those of all batches one behind the other, as q_starts [batch + 1]
    says. Pages are [page, K or V, kv_head, place, depth], or [page, place, depth] where heads have
    a latent in common; page_numbers [page of any batch] are those of batch b from page_starts[b]
    on. Without pages k and v are [key, kv_head, depth], where k_starts [batch + 1] says.
    """

    DECODE = "q", "pages", *_TABLE, "k_rope", "q_rope", "o", "l", *_ROPE
    PREFILL = "q", "q_starts", "pages", *_TABLE, "k_rope", "q_rope", "o", "l", "causal", *_ROPE
    RAGGED = (
        "q", "q_starts", "k", "v", "k_starts", "q_rope", "k_rope", "o", "l", "causal", *_ROPE,
    )  # fmt: skip
    LATENT = "q", "q_starts", "pages", *_TABLE, "o", "l", "causal", "sm_scale"


@dataclass(frozen=True)
class CacheAttention:
    """A function of the cache.

    `slides` says whether batches have lost some keys of theirs, of which `lengths` tells then:
    [3, batch], how many keys the last page has, how many of the first ones are not there, and how
    many before them are. With a `window` causal queries see so many keys up to their own place.
    """

    function: PrimFunc
    kind: CacheKind
    slides: bool = False
    window: int | None = None

    def has(self, name: str) -> bool:
        """Whether the function takes a parameter."""
        return name in self.kind.value

    def given(self, name: str) -> Expr:
        """A parameter that is a number."""
        found: Expr = self.function.params[self.kind.value.index(name)]
        return found

    def array(self, name: str) -> Buffer:
        """A parameter that is an array."""
        found: Buffer = self.function.params[self.kind.value.index(name)]
        return found

    def extents(self, name: str) -> list[int | None]:
        """The extents of an array, None where one is a symbol."""
        return [constant(extent) for extent in self.array(name).shape]
