"""A block of a Llama in Relax: RMSNorm, attention with a cache of keys and values, gated MLP.

Two lengths are known at run time only: how many tokens are new, and how many the cache holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import tvm
from tvm import relax, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec
from tvm.relax.frontend.nn.core import wrap_nested


@dataclass(frozen=True)
class Sizes:
    """Elements of a token, heads of the attention, elements between the products of the MLP."""

    width: int = 128
    heads: int = 4
    hidden: int = 256

    @property
    def head(self) -> int:
        return self.width // self.heads


class Block(nn.Module):  # type: ignore[misc]
    """`prefill` takes the first tokens, `extend` those that follow a cache."""

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        self.sizes, self.dtype_ = sizes, dtype
        width, hidden = sizes.width, sizes.hidden
        norm = {"axes": -1, "epsilon": 1e-5, "bias": False, "dtype": dtype}
        linear = {"bias": False, "dtype": dtype}
        self.norm1, self.norm2 = nn.RMSNorm(width, **norm), nn.RMSNorm(width, **norm)
        self.qkv = nn.Linear(width, 3 * width, **linear)
        self.out = nn.Linear(width, width, **linear)
        self.gate = nn.Linear(width, hidden, **linear)
        self.up = nn.Linear(width, hidden, **linear)
        self.down = nn.Linear(hidden, width, **linear)

    def prefill(self, x: nn.Tensor) -> tuple[nn.Tensor, nn.Tensor, nn.Tensor]:
        """x[1, new, width] to (y[1, new, width], keys, values), both [1, new, heads, head]."""
        q, k, v = self._heads(x)
        return self._rest(x, q, k, v), k, v

    def extend(
        self, x: nn.Tensor, keys: nn.Tensor, values: nn.Tensor
    ) -> tuple[nn.Tensor, nn.Tensor, nn.Tensor]:
        """As `prefill`, after the tokens whose keys and values are given; with those of all."""
        q, k, v = self._heads(x)
        keys, values = op.concat([keys, k], dim=1), op.concat([values, v], dim=1)
        return self._rest(x, q, *_as_long(keys, values)), keys, values

    def _heads(self, x: nn.Tensor) -> list[nn.Tensor]:
        batch, new, _ = x.shape
        shape = (batch, new, self.sizes.heads, self.sizes.head)
        parts = op.split(self.qkv(self.norm1(x)), 3, axis=-1)
        return [op.reshape(each, shape) for each in parts]

    def _rest(self, x: nn.Tensor, q: nn.Tensor, k: nn.Tensor, v: nn.Tensor) -> nn.Tensor:
        x = x + self.out(op.reshape(_causal(q, k, v), x.shape))
        y = self.norm2(x)
        return x + self.down(op.silu(self.gate(y)) * self.up(y))


def _as_long(*tensors: nn.Tensor) -> list[nn.Tensor]:
    """The tensors [batch, length, ...], of a length of its own: TVM's CPU build takes no sums."""
    length, builder = tirx.Var("all", "int64"), relax.BlockBuilder.current()
    found = []
    for each in tensors:
        batch, _, *rest = each.shape
        shape = relax.TensorType([batch, length, *rest], each.dtype)
        found.append(nn.Tensor(_expr=builder.match_cast(each._expr, shape)))
    return found


def _causal(q: nn.Tensor, k: nn.Tensor, v: nn.Tensor) -> nn.Tensor:
    """No token sees a later one; the new tokens are the last."""
    call = relax.op.nn.attention(*(each._expr for each in (q, k, v)), causal_mask="BottomRight")
    return wrap_nested(call, "attention")


def module(sizes: Sizes, dtype: str) -> tuple[tvm.IRModule, dict[str, tuple[int, ...]]]:
    """The module with `prefill` and `extend`, and the shapes of its parameters, by name."""
    cache = spec.Tensor([1, "known", sizes.heads, sizes.head], dtype)
    tokens = spec.Tensor([1, "new", sizes.width], dtype)
    exported, parameters = Block(sizes, dtype).export_tvm(
        {"prefill": {"x": tokens}, "extend": {"x": tokens, "keys": cache, "values": cache}}
    )
    shapes = {name: tuple(int(e) for e in p.shape) for name, p in parameters}
    return exported, shapes
