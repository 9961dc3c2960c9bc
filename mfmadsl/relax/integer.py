"""Products of bytes that a model writes in int32, with zero points: as products of int8.

ONNX's MatMulInteger comes as (int32(A) - a0) x (int32(B) - b0), of bytes with or without a sign.
Matrix cores multiply int8. A byte without a sign is 128 more than one that has it, which its zero
point takes up, and with the zero points apart

    sum (A - a0) (B - b0) = sum A B - b0 * sum A - a0 * sum B + K a0 b0

is one product of int8, with sums of rows and columns behind it. What the instructions add up may
wrap around, so that it is off by 2^32; the rest is int64, cut to 32 bits at the end: exact wherever
the model's own sum fits. TVM tells LLVM that 32 bits never wrap, so that their difference would be
anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant
from mfmadsl.relax.rewrite import rewritten

_MATMUL, _CAST, _SUBTRACT = (
    tvm.ir.Op.get(f"relax.{name}") for name in ("matmul", "astype", "subtract")
)
_BYTES = ("int8", "uint8")
_MATRIX = 2  # axes of a matrix
_HALF = 128  # what a byte without a sign has more than the int8 of the same bits, flipped


@dataclass(frozen=True)
class _Factor:
    """A factor, of bytes, less a zero point in int64, if there is one; `depth` of them are summed
    along an axis."""

    values: Expr
    zero: Expr | None
    axis: int
    depth: int


def multiply_bytes(module: tvm.IRModule) -> tvm.IRModule:
    """The module with products of int8 in place of those of bytes that are cast to int32."""
    return rewritten(module, _Products(module))


@mutator
class _Products(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> Expr:
        call = self.visit_expr_post_order(call)
        if call.op != _MATMUL or str(call.ty.dtype) != "int32":
            return call
        a, b = (self._factor(each, axis) for each, axis in zip(call.args, (-1, -2), strict=True))
        if a is None or b is None:
            return call
        return self._product(self._signed(a), self._signed(b))

    def _made(self, expression: Expr, op: tvm.ir.Op) -> relax.Call | None:
        """The call that makes a value, if it is one of that operator."""
        made = self.lookup_binding(expression) if isinstance(expression, relax.Var) else expression
        return made if isinstance(made, relax.Call) and made.op == op else None

    def _factor(self, factor: Expr, axis: int) -> _Factor | None:
        """What a factor in int32, summed along an axis, is made of; None if it is not of bytes."""
        less = self._made(factor, _SUBTRACT)
        whole, zero = (factor, None) if less is None else less.args
        cast = self._made(whole, _CAST)
        if cast is None or str(cast.args[0].ty.dtype) not in _BYTES:
            return None
        extents = _extents(cast.args[0])
        depth = constant(extents[axis]) if len(extents) >= _MATRIX else None
        if depth is None or (zero is not None and not _is_one_along(zero, axis)):
            return None
        wide = None if zero is None else self._wide(zero)
        return _Factor(cast.args[0], wide, axis, depth)

    def _wide(self, value: Expr) -> Expr:
        wide: Expr = self.builder_.emit(relax.op.astype(value, "int64"))
        return wide

    def _signed(self, factor: _Factor) -> _Factor:
        """The factor in int8."""
        if str(factor.values.ty.dtype) == "int8":
            return factor
        values = self.builder_.emit_te(_flipped, factor.values, primfunc_name_hint="int8_of_uint8")
        less: Expr = relax.const(-_HALF, "int64")
        if factor.zero is not None:
            less = self.builder_.emit(relax.op.add(factor.zero, less))
        return replace(factor, values=values, zero=less)

    def _product(self, a: _Factor, b: _Factor) -> Expr:
        emit = self.builder_.emit
        result: Expr = emit(relax.op.matmul(a.values, b.values, out_dtype="int32"))
        if a.zero is None and b.zero is None:
            return result
        result = self._wide(result)
        for factor, other in ((a, b), (b, a)):
            if other.zero is not None:
                # What both zero points make is taken off once.
                sums = self._sums(factor, factor.zero if factor is a else None)
                result = emit(relax.op.subtract(result, emit(relax.op.multiply(sums, other.zero))))
        signed: Expr = relax.op.astype(result, "int32")
        return signed

    def _sums(self, factor: _Factor, zero: Expr | None) -> Expr:
        """Sums of a factor along K, less as many zero points."""
        emit = self.builder_.emit
        wide = emit(relax.op.astype(factor.values, "int32"))
        sums = self._wide(emit(relax.op.sum(wide, axis=factor.axis, keepdims=True)))
        if zero is None:
            return sums
        depth = relax.const(factor.depth, "int64")
        less: Expr = emit(relax.op.subtract(sums, emit(relax.op.multiply(zero, depth))))
        return less


def _extents(array: Expr) -> list[Expr]:
    """Its shape; nothing where that is not known."""
    shape = getattr(array.ty, "shape", None)
    return [] if shape is None else list(shape.values)


def _is_one_along(zero: Expr, axis: int) -> bool:
    """Whether a zero point is the same for all that is summed."""
    if getattr(zero.ty, "shape", None) is None:
        return False
    extents = _extents(zero)
    if len(extents) < -axis:  # it broadcasts along the axes that it lacks
        return True
    return constant(extents[axis]) == 1


def _flipped(values: te.Tensor) -> te.Tensor:
    """Bytes less 128."""
    half = tirx.const(_HALF, "uint8")
    return te.compute(
        values.shape, lambda *place: tirx.reinterpret("int8", values(*place) ^ half), name="int8"
    )
