"""How the host's part of a function, which TVM has made, launches kernels of ours.

TVM passes what a kernel takes in the order of names, and the grid that was scheduled. A kernel of
ours takes it in the order of the function's parameters, and a pass has given it another grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.ir import Call, Op, PointerType, StringImm
from tvm.tirx import AssertStmt, Evaluate, Expr, PrimFunc, SeqStmt, Stmt, Var

from mfmadsl.backend.extent import Extent, Formula
from mfmadsl.backend.gpu.lower import LAUNCH, LoweredKernel
from mfmadsl.passes.main_loop.moves.address import SPAN_LIMIT
from mfmadsl.passes.tir.expression import name_of
from mfmadsl.passes.tir.walk import mapped

LAUNCH_PARAMETERS = "tirx.kernel_launch_params"
"""TVM's attribute of a kernel: the extents that are passed behind its parameters."""

_ADD = Op.get("tirx.handle_add_byte_offset")
_AXES = ("x", "y", "z")
_OPERATORS: dict[str, Any] = {
    "add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul, "floordiv": tirx.FloorDiv,
    "floormod": tirx.FloorMod, "lshift": tirx.LShift, "rshift": tirx.RShift, "min": tirx.Min,
    "max": tirx.Max, "lt": tirx.LT, "gt": tirx.GT,
}  # fmt: skip


@dataclass(frozen=True)
class HostLaunch:
    """A kernel: as TVM's host code launches it, as it takes its parameters, and its launch."""

    before: PrimFunc
    after: PrimFunc
    launch: LoweredKernel

    @property
    def extents(self) -> dict[str, Extent]:
        """What is passed behind the parameters, by TVM's names."""
        grid = zip(_AXES, self.launch.grid, strict=True)
        block = zip(_AXES, self.launch.block, strict=True)
        found: dict[str, Extent] = {f"blockIdx.{axis}": extent for axis, extent in grid}
        return found | {f"threadIdx.{axis}": extent for axis, extent in block}


def nothing_done(launched: HostLaunch) -> PrimFunc:
    """A kernel that does nothing, from which TVM takes what the host has to pass."""
    kernel = launched.after.with_attr(LAUNCH_PARAMETERS, list(launched.extents))
    return kernel.with_body(Evaluate(tirx.const(0, "int32")))


def launching(
    host: PrimFunc, launches: Sequence[HostLaunch], offsets: Mapping[str, Expr] | None = None
) -> PrimFunc:
    """The host's function with each kernel launched as it is to be.

    `offsets` are the bytes that are added to the pointers of arrays, by the names of these. Where a
    tile of a kernel would span more than its offsets can tell, it raises ValueError.
    """
    known = {each.launch.symbol: each for each in launches}

    def statement(node: Evaluate) -> Stmt:
        call = node.value
        if not isinstance(call, Call) or name_of(call) != LAUNCH:
            return node
        name = call.args[0]
        assert isinstance(name, StringImm)
        return _launch(call, known[str(name.value)], offsets or {})

    return host.with_body(mapped(host.body, (Evaluate, statement)))


def _launch(call: Call, launched: HostLaunch, offsets: Mapping[str, Expr]) -> Stmt:
    name, *given = call.args
    before = launched.before.params
    values = {p.__chandle__(): value for p, value in zip(before, given, strict=False)}
    symbols = {str(p.name): value for p, value in zip(before, given, strict=False)}
    arguments = [
        name,
        *(_moved(values[p.__chandle__()], p, offsets) for p in launched.after.params),
        *(_expression(extent, symbols) for extent in launched.extents.values()),
    ]
    attributes = type(call.attrs)(launch_params=list(launched.extents))
    launch = Evaluate(Call(call.op, arguments, attrs=attributes, ret_ty=call.ty))
    checks: list[Stmt] = []
    for buffer, span in launched.launch.spans:
        fits = _expression(span, symbols) < tirx.const(SPAN_LIMIT, "int64")
        said = f"`{buffer}`: a tile spans 2^31 bytes or more, which offsets of 31 bits cannot tell"
        checks.append(AssertStmt(fits, StringImm("ValueError"), [StringImm(said)]))
    return SeqStmt([*checks, launch]) if checks else launch


def _moved(value: Expr, parameter: Var, offsets: Mapping[str, Expr]) -> Expr:
    """A pointer to where an array begins, or another value as it is."""
    name = str(parameter.name).removesuffix("_ptr")
    if not isinstance(parameter.ty, PointerType) or name not in offsets:
        return value
    return Call(_ADD, [value, offsets[name]], attrs=None, ret_ty=value.ty)


def _expression(extent: Extent, symbols: Mapping[str, Expr]) -> Expr:
    """An extent, in 64 bits, of what the host passes."""
    if isinstance(extent, Formula):
        sides = (_expression(side, symbols) for side in (extent.left, extent.right))
        made: Expr = _OPERATORS[extent.operator](*sides)
        return tirx.Cast("int64", made) if str(made.ty.dtype) == "bool" else made
    if isinstance(extent, str):
        value = symbols[extent]
        return value if str(value.ty.dtype) == "int64" else tirx.Cast("int64", value)
    return tirx.const(extent, "int64")
