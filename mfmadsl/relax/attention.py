"""Attention as two products and a softmax between them, each of which has its own kernel.

TVM legalizes `relax.nn.attention` as one function of all three, of which no rule makes a fast
kernel. The products here read queries, keys and values as they lie, [batch, length, head, depth],
so that nothing is transposed; scores and their softmax are in float32.
"""

from __future__ import annotations

import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant
from mfmadsl.relax.rewrite import rewritten

_OPS = [tvm.ir.Op.get(f"relax.nn.{name}") for name in ("attention", "attention_bias")]


def part_attention(module: tvm.IRModule) -> tvm.IRModule:
    """The module with attention in parts, but for that of a sliding window, which TVM refuses."""
    return rewritten(module, _Attention(module))


@mutator
class _Attention(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> Expr:
        call = self.visit_expr_post_order(call)
        if call.op not in _OPS or call.attrs.window_size is not None:
            return call
        q, k, v, *bias = call.args
        depth = None if q.ty.shape is None else constant(q.ty.shape.values[-1])
        if depth is None:
            return call
        dtype = str(q.ty.dtype)
        scale, mask = call.attrs.scale, call.attrs.causal_mask
        factor = depth**-0.5 if scale is None else float(scale.value)
        emit, emit_te = self.builder_.emit, self.builder_.emit_te
        scores = emit_te(_scaled_scores, q, k, factor, mask, primfunc_name_hint="attention_scores")
        for each in bias:
            scores = emit(relax.op.add(scores, relax.op.astype(each, "float32")))
        weights = emit(relax.op.astype(relax.op.nn.softmax(scores), dtype))
        result: Expr = emit_te(_values, weights, v, primfunc_name_hint="attention_values")
        return result


def _scaled_scores(q: te.Tensor, k: te.Tensor, scale: float, mask: str | None) -> te.Tensor:
    """Products of queries and keys [batch, head, query, key]; -inf for keys that are masked."""
    batch, queries, heads, depth = q.shape
    keys = k.shape[1]
    d = te.reduce_axis((0, depth), name="d")
    scores = te.compute(
        (batch, heads, queries, keys),
        lambda b, h, i, j: te.sum(
            q[b, i, h, d].astype("float32") * k[b, j, h, d].astype("float32"), axis=[d]
        ),
        name="scores",
    )
    # As TVM has them: the first query sees one key, or the last one all keys.
    ahead = tirx.abs(queries - keys) if mask == "BottomRight" else 0

    def scaled(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        value = scores[b, h, i, j] * tirx.const(scale, "float32")
        if mask is None:
            return value
        return tirx.Select(j <= i + ahead, value, tirx.min_value("float32"))

    return te.compute(scores.shape, scaled, name="scaled")


def _values(weights: te.Tensor, v: te.Tensor) -> te.Tensor:
    """The values [batch, query, head, depth] that weights [batch, head, query, key] take."""
    batch, heads, queries, keys = weights.shape
    j = te.reduce_axis((0, keys), name="j")
    return te.compute(
        (batch, queries, heads, v.shape[3]),
        # A sum of a narrow type is kept in float32, and rounded at the end.
        lambda b, i, h, d: te.sum(weights[b, h, i, j] * v[b, j, h, d], axis=[j]),
        name="values",
    )
