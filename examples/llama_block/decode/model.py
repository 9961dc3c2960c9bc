"""One token's way through a block of a Llama in Relax: weights of four bits, grouped queries.

Gate and up lie row by row in turn, and rotations are of neighbouring columns, so that both are made
in the kernel of the product before them. The cache is written where it lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.script import tirx as T  # noqa: N812 - as TVM has it

GROUP = 32
"""Elements of a row of weights that have one scale."""

PER_WORD = 8
"""Elements of a word."""

ZERO = 7
"""What is stored for 0, as MLC-LLM's q4f16 has it: elements are from -7 to 8."""


@dataclass(frozen=True)
class Sizes:
    """Elements of a token and between the products of the MLP; heads of queries and of keys."""

    width: int
    heads: int
    key_heads: int
    hidden: int
    head: int = 128

    @property
    def columns(self) -> int:
        """Of queries, keys and values, one after the other."""
        return (self.heads + 2 * self.key_heads) * self.head

    @property
    def products(self) -> dict[str, tuple[int, int]]:
        """The weights of each product: rows, and elements of a row."""
        return {
            "qkv": (self.columns, self.width),
            "out": (self.width, self.heads * self.head),
            "gate_up": (2 * self.hidden, self.width),
            "down": (self.width, self.hidden),
        }

    @property
    def parameters(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The shape and type of each, in the order in which `step` takes them."""
        found: dict[str, tuple[tuple[int, ...], str]] = {}
        for norm in ("norm1", "norm2"):
            found[norm] = ((self.width,), "float16")
        for name, (n, k) in self.products.items():
            found[f"{name}.words"] = ((n, k // PER_WORD), "uint32")
            found[f"{name}.scales"] = ((n, k // GROUP), "float16")
        return found


MODELS = {
    "8b": Sizes(4096, 32, 8, 14336),
    "70b": Sizes(8192, 64, 8, 28672),
    "tiny": Sizes(256, 4, 2, 512, 64),
}
"""Of Llama 3, and one that is soon run under the sanitizer."""


def module(sizes: Sizes) -> tvm.IRModule:
    """`step(x, table, keys, values, *parameters)` with y[1, width], the token behind the block.

    x[1, width] is the token, table[known, 2, head / 2] has the cosines and sines of each position.
    keys and values are [known, key heads, head]; the last of them are the token's own, and written.
    """
    known = tirx.Var("known", "int64")
    cache = (known, sizes.key_heads, sizes.head)
    shapes = {
        "x": ((1, sizes.width), "float16"),
        "table": ((known, 2, sizes.head // 2), "float32"),
        "keys": (cache, "float16"),
        "values": (cache, "float16"),
        **sizes.parameters,
    }
    given = {name: relax.Var(name, relax.TensorType(*shape)) for name, shape in shapes.items()}
    builder = relax.BlockBuilder()
    with builder.function("step", list(given.values())):
        with builder.dataflow():
            result = builder.emit_output(_Block(sizes, builder, given).result())
        builder.emit_func_output(result)
    found: tvm.IRModule = builder.get()
    return found


@dataclass(frozen=True)
class _Block:
    sizes: Sizes
    builder: relax.BlockBuilder
    given: dict[str, relax.Var]

    def result(self) -> relax.Var:
        x, keys, values = (self.given[name] for name in ("x", "keys", "values"))
        qkv = self._made(_rotated(self.sizes), self._product("qkv", self._norm("norm1", x)),
                         self.given["table"])  # fmt: skip
        qkv = self._emit(relax.op.reshape(qkv, (-1, self.sizes.head)))
        write = self.builder.add_func(_write(self.sizes), "write")
        written = relax.call_tir_inplace(write, [qkv, keys, values], [1, 2], [keys.ty, values.ty])
        pair = self._emit(written)
        keys, values = (self._emit(relax.TupleGetItem(pair, n)) for n in range(2))
        attended = self._made(_attention(self.sizes), qkv, keys, values)
        attended = self._emit(relax.op.reshape(attended, (1, -1)))
        x = self._emit(relax.op.add(x, self._product("out", attended)))
        gated = self._made(_gated, self._product("gate_up", self._norm("norm2", x)))
        return self._emit(relax.op.add(x, self._product("down", gated)))

    def _emit(self, value: Any) -> relax.Var:
        emitted: relax.Var = self.builder.emit(value)
        return emitted

    def _made(self, expression: Any, *arrays: relax.Var) -> relax.Var:
        name = expression.__name__.strip("_")
        made: relax.Var = self.builder.emit_te(expression, *arrays, primfunc_name_hint=name)
        return made

    def _norm(self, name: str, x: relax.Var) -> relax.Var:
        return self._emit(relax.op.nn.rms_norm(x, self.given[name], axes=-1, epsilon=1e-5))

    def _product(self, name: str, x: relax.Var) -> relax.Var:
        stored = (self.given[f"{name}.{part}"] for part in ("words", "scales"))
        weights = self.builder.emit_te(_dequantised, *stored, primfunc_name_hint=name)
        return self._emit(relax.op.matmul(x, relax.op.permute_dims(weights)))


def _dequantised(words: te.Tensor, scales: te.Tensor) -> te.Tensor:
    rows, packed = words.shape

    def element(j: Any, k: Any) -> Any:
        down = ((k % PER_WORD) * 4).astype("uint32")
        nibble = (words[j, k // PER_WORD] >> down) & tirx.const(15, "uint32")
        return (nibble.astype("float16") - tirx.const(ZERO, "float16")) * scales[j, k // GROUP]

    return te.compute((rows, packed * PER_WORD), element, "dequantised")


def _rotated(sizes: Sizes) -> Any:
    """Queries and keys, turned by the angles of the last position, and values as they are."""

    def rotated(qkv: te.Tensor, table: te.Tensor) -> te.Tensor:
        last = table.shape[0] - 1

        def element(i: Any, j: Any) -> Any:
            own = qkv[i, j].astype("float32")
            even, odd = (qkv[i, j // 2 * 2 + n].astype("float32") for n in range(2))
            cosine, sine = (table[last, n, j % sizes.head // 2] for n in range(2))
            turned = tirx.Select(j % 2 < 1, even * cosine - odd * sine, odd * cosine + even * sine)
            is_value = j >= (sizes.heads + sizes.key_heads) * sizes.head
            return tirx.Select(is_value, own, turned).astype("float16")

        return te.compute(qkv.shape, element, "rotated")

    return rotated


def _write(sizes: Sizes) -> tirx.PrimFunc:
    """Store the token's keys and values behind those of others."""
    heads, key_heads, head = sizes.heads, sizes.key_heads, sizes.head

    @T.prim_func(private=True, s_tir=True)  # type: ignore[untyped-decorator]
    def write(qkv: T.handle, k: T.handle, v: T.handle) -> None:
        T.func_attr({"op_pattern": 8})
        known = T.int64()
        own = T.match_buffer(qkv, (T.int64(heads + 2 * key_heads), T.int64(head)), "float16")
        keys = T.match_buffer(k, (known, T.int64(key_heads), T.int64(head)), "float16")
        values = T.match_buffer(v, (known, T.int64(key_heads), T.int64(head)), "float16")
        for h, d in T.grid(T.int64(key_heads), T.int64(head)):
            with T.sblock("write"):
                vh, vd = T.axis.remap("SS", [h, d])
                keys[known - T.int64(1), vh, vd] = own[T.int64(heads) + vh, vd]
                values[known - T.int64(1), vh, vd] = own[T.int64(heads + key_heads) + vh, vd]

    found: tirx.PrimFunc = write
    return found


def _attention(sizes: Sizes) -> Any:
    """What each head of the queries makes of the cache; those of a group share keys and values."""
    group, scale = sizes.heads // sizes.key_heads, tirx.const(sizes.head**-0.5, "float32")

    def attention(qkv: te.Tensor, keys: te.Tensor, values: te.Tensor) -> te.Tensor:
        heads, known = (sizes.key_heads, group), keys.shape[0]
        d = te.reduce_axis((0, sizes.head), "d")
        t = te.reduce_axis((0, known), "t")

        def product(b: Any, i: Any, t: Any) -> Any:
            query, key = qkv[b * group + i, d], keys[t, b, d]
            return te.sum(query.astype("float32") * key.astype("float32"), axis=[d])

        products = te.compute((*heads, known), product, "products")
        scores = te.compute(products.shape, lambda *at: products[at] * scale, "scores")
        largest = te.compute(heads, lambda *at: te.max(scores[(*at, t)], axis=[t]), "largest")
        weights = te.compute(
            scores.shape, lambda *at: tirx.exp(scores[at] - largest[at[:-1]]), "weights"
        )
        t = te.reduce_axis((0, known), "t")
        total = te.compute(heads, lambda *at: te.sum(weights[(*at, t)], axis=[t]), "total")

        def weighted(b: Any, i: Any, c: Any) -> Any:
            weight = weights[b, i, t].astype("float16").astype("float32")
            return te.sum(weight * values[t, b, c].astype("float32"), axis=[t])

        sums = te.compute((*heads, sizes.head), weighted, "sums")
        return te.compute(
            sums.shape, lambda *at: (sums[at] / total[at[:-1]]).astype("float16"), "attended"
        )

    return attention


def _gated(y: te.Tensor) -> te.Tensor:
    rows, columns = y.shape

    def element(i: Any, g: Any) -> Any:
        gate, up = (y[i, 2 * g + n].astype("float32") for n in range(2))
        return (gate * tirx.sigmoid(gate) * up).astype("float16")

    return te.compute((rows, columns // 2), element, "gated")
