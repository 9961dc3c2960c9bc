"""Attention as one kernel, or as two products and a softmax between them, each with its own.

TVM legalizes `relax.nn.attention` as one function of all three, of which no rule makes a fast
kernel. What `attention_schedule` takes becomes a workload for it. Of the rest (float32, a depth
that is not known) the products read queries, keys and values as they lie, [batch, length, head,
depth], so that nothing is transposed; scores and their softmax are in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.target import Target
from tvm.tirx import Expr

from mfmadsl.error import MfmadslError
from mfmadsl.passes.tir.expression import constant
from mfmadsl.relax.rewrite import rewritten
from mfmadsl.schedule.flash_attention.schedule import attention_tiling
from mfmadsl.schedule.workload.attended import AttentionForm, AttentionTensors, attended

_OPS = [tvm.ir.Op.get(f"relax.nn.{name}") for name in ("attention", "attention_bias")]


def part_attention(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with attention as calls of PrimFuncs, but for that of a sliding window, which TVM
    refuses."""
    return rewritten(module, _Attention(module, str(target.attrs.get("mcpu", ""))))


@mutator
class _Attention(PyExprMutator):
    def __init__(self, module: tvm.IRModule, arch: str) -> None:
        super().__init__(module)
        self._arch = arch

    def visit_call_(self, call: relax.Call) -> Expr:
        call = self.visit_expr_post_order(call)
        if call.op not in _OPS or call.attrs.window_size is not None:
            return call
        q, k, v, *bias = call.args
        depth = None if q.ty.shape is None else constant(q.ty.shape.values[-1])
        if depth is None:
            return call
        scale, mask = call.attrs.scale, call.attrs.causal_mask
        factor = depth**-0.5 if scale is None else float(scale.value)
        emit_te = self.builder_.emit_te
        whole = _Whole(factor, mask)
        if whole.is_ours(call.args, self._arch):
            result: Expr = emit_te(whole.tensor, q, k, v, *bias, primfunc_name_hint="attention")
            return result
        return self._in_parts(call, factor)

    def _in_parts(self, call: relax.Call, factor: float) -> Expr:
        q, k, v, *bias = call.args
        mask, emit, emit_te = call.attrs.causal_mask, self.builder_.emit, self.builder_.emit_te
        scores = emit_te(_scaled_scores, q, k, factor, mask, primfunc_name_hint="attention_scores")
        for each in bias:
            scores = emit(relax.op.add(scores, relax.op.astype(each, "float32")))
        weights = emit(relax.op.astype(relax.op.nn.softmax(scores), str(q.ty.dtype)))
        result: Expr = emit_te(_values, weights, v, primfunc_name_hint="attention_values")
        return result


@dataclass(frozen=True)
class _Whole:
    """An attention of a scale and a mask, as one function."""

    scale: float
    mask: str | None

    def tensor(self, q: te.Tensor, k: te.Tensor, v: te.Tensor, *bias: te.Tensor) -> te.Tensor:
        """Its result, of tensors."""
        ahead = None if self.mask is None else _ahead(q.shape[1], k.shape[1], self.mask)
        form = AttentionForm("bshd", self.scale, ahead=ahead, out_dtype=str(q.dtype))
        given = AttentionTensors(q, k, v, bias[0] if bias else None)
        return attended(given, form)[0]

    def is_ours(self, arguments: Sequence[Any], arch: str) -> bool:
        """Whether `attention_schedule` takes it for arguments of such shapes."""
        if any(each.ty.shape is None for each in arguments):
            return False
        given = [
            te.placeholder(each.ty.shape.values, dtype=str(each.ty.dtype), name=name)
            for name, each in zip(("q", "k", "v", "bias"), arguments, strict=False)
        ]
        try:
            attention_tiling(te.create_prim_func([*given, self.tensor(*given)]), arch)
        except MfmadslError:
            return False
        return True


def _ahead(queries: Expr, keys: Expr, mask: str) -> Expr:
    """How many keys behind its own place a query sees: as TVM has them, the first query sees one
    key, or the last one all keys."""
    return tirx.abs(queries - keys) if mask == "BottomRight" else tirx.const(0, "int32")


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

    def scaled(b: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        value = scores[b, h, i, j] * tirx.const(scale, "float32")
        if mask is None:
            return value
        seen = j <= i + _ahead(queries, keys, mask)
        return tirx.Select(seen, value, tirx.min_value("float32"))

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
