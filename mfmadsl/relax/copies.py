"""What is copied of a product's result into arrays that are there, in the product's kernel.

TVM's fusion leaves functions alone that write in place, as into a key-value cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import tvm
from tvm import relax
from tvm.target import Target
from tvm.tirx import Expr, PrimFunc

from mfmadsl.passes.tir.expression import constant
from mfmadsl.relax.joined import is_plain_call
from mfmadsl.relax.prologue import is_product
from mfmadsl.relax.rule import scheduled_product
from mfmadsl.schedule.product.result_copies import with_copies
from mfmadsl.schedule.product.row_statistics import row_statistics

_IN_PLACE = tvm.ir.Op.get("relax.call_tir_inplace")
_ROWS = 16  # of a result, up to which its lanes store elements one by one


def fuse_copies(module: tvm.IRModule, target: Target, apart: dict[str, str]) -> tvm.IRModule:
    """The module with each product and what is copied of its few rows as one PrimFunc.

    Those are left apart of which `gemm_schedule` would not make a kernel together; `apart` gets the
    reasons.
    """
    functions = [
        (variable, function)
        for variable, function in module.functions_items()
        if isinstance(function, relax.Function) and "Primitive" not in (function.attrs or {})
    ]
    builder = relax.BlockBuilder(module)
    for variable, function in functions:
        body = function.body
        if not isinstance(body, relax.SeqExpr):
            continue
        blocks = [_joined(block, builder, target, apart) for block in body.blocks]
        if any(new is not old for new, old in zip(blocks, body.blocks, strict=True)):
            seq = relax.SeqExpr(blocks, body.body)
            builder.update_func(
                variable,
                relax.Function(
                    function.params, seq, function.ret_ty, function.is_pure, function.attrs
                ),
            )
    found: tvm.IRModule = relax.transform.DeadCodeElimination()(builder.get())
    return found


@dataclass(frozen=True)
class _Copying:
    """Bindings of a block: of a product, and behind it of a function that copies of its result, a
    parameter of it called `source`, into `targets`."""

    product: int
    copy: int
    source: int
    targets: tuple[Expr, ...]


def _joined(
    block: relax.BindingBlock, builder: relax.BlockBuilder, target: Target, apart: dict[str, str]
) -> relax.BindingBlock:
    """The block with products that copy for themselves; the builder gets the new functions."""
    if not isinstance(block, relax.DataflowBlock):
        return block
    bindings = list(block.bindings)
    for place in range(len(bindings)):
        found = _copying(bindings, place, builder.get())
        if found is None:
            continue
        refusal = _refusal(bindings, found, builder.get())
        made = refusal or _together(bindings, found, builder, target)
        if isinstance(made, str):
            copy, product = (_name(bindings[each]) for each in (found.copy, found.product))
            apart[copy] = f"apart from {product}: {made}"
            continue
        bindings[found.copy] = made[-1]
        bindings[found.product : found.product + 1] = made[:-1]
        return _joined(relax.DataflowBlock(bindings), builder, target, apart)
    return block


def _name(binding: relax.VarBinding) -> str:
    """What the function is called that a binding calls."""
    return str(binding.value.args[0].name_hint)


def _refusal(bindings: Sequence[relax.VarBinding], found: _Copying, module: tvm.IRModule) -> str:
    """Why copies are better made by themselves; empty if not."""
    if _is_used(bindings[: found.copy], found.product, found.targets):
        return "an array that it writes is used between them"
    function = module[bindings[found.product].value.args[0]]
    rows = [constant(extent) for extent in function.params[-1].shape[:-1]]
    few = f"up to {_ROWS} are copied in a product's kernel"
    if None in rows:
        return f"its number of rows is a symbol: {few}"
    count = prod(each or 0 for each in rows)
    return "" if count <= _ROWS else f"it has {count} rows: {few}"


def _copying(
    bindings: Sequence[relax.VarBinding], place: int, module: tvm.IRModule
) -> _Copying | None:
    """What a binding copies in place of the result of a product before it."""
    call = bindings[place].value
    if not isinstance(call, relax.Call) or call.op != _IN_PLACE or len(call.args) != 2:
        return None
    given, changed = list(call.args[1].fields), [int(n) for n in call.attrs.inplace_indices]
    others = [n for n in range(len(given)) if n not in changed]
    # Each array is changed, in its order, and the only other one is what is copied.
    if len(others) != 1 or changed != [n for n in range(len(given)) if n != others[0]]:
        return None
    product = _made_by(bindings, place, given[others[0]], module)
    targets = tuple(given[n] for n in changed)
    if product is None:
        return None
    return _Copying(product, place, others[0], targets)


def _made_by(
    bindings: Sequence[relax.VarBinding], place: int, value: Expr, module: tvm.IRModule
) -> int | None:
    """The binding of a product whose result a value is, perhaps in other extents."""
    for number in reversed(range(place)):
        if not bindings[number].var.same_as(value):
            continue
        made = bindings[number].value
        if not is_plain_call(made):
            return None
        function = module.functions.get(made.args[0])
        if not isinstance(function, PrimFunc):
            return None
        if len(made.args[1].fields) == 1 and relax.analysis.has_reshape_pattern(function):
            return _made_by(bindings, number, made.args[1].fields[0], module)
        is_ours = is_product(function) or row_statistics(function) is not None
        return number if is_ours else None
    return None


def _is_used(bindings: Sequence[relax.VarBinding], product: int, arrays: Sequence[Expr]) -> bool:
    """Whether arrays are made, or touched, where a product is or behind it."""
    for binding in bindings[product:]:
        used: list[Expr] = [binding.var]
        relax.analysis.post_order_visit(binding.value, used.append)
        if any(each.same_as(array) for each in used for array in arrays):
            return True
    return False


def _together(
    bindings: Sequence[relax.VarBinding],
    found: _Copying,
    builder: relax.BlockBuilder,
    target: Target,
) -> list[relax.VarBinding] | str:
    """The bindings in the place of a product's, and the one in that of the function that copies;
    where both would be no kernel of ours, why."""
    product, copy = bindings[found.product], bindings[found.copy]
    variables = [product.value.args[0], copy.value.args[0]]
    made, copying = (builder.get()[each] for each in variables)
    function = with_copies(made, copying, found.source)
    if function is None:
        return "it does more than to copy each element to one place of each array"
    name = "_".join(str(each.name_hint) for each in variables)
    name = f"fused_{name.removeprefix('fused_')}"
    if refusal := scheduled_product(name, function, target)[1].reason:
        return refusal
    variable = builder.add_func(function, name)
    given = [*product.value.args[1].fields, *found.targets]
    count = len(found.targets)
    changed = [*range(len(given) - count, len(given)), -1]
    types = [*(each.ty for each in found.targets), product.var.ty]
    called = relax.op.call_tir_inplace(variable, relax.Tuple(given), changed, types)
    every = relax.DataflowVar(f"{product.var.name}_and_copies", relax.TupleType(types))
    parts = [relax.TupleGetItem(every, n) for n in range(count + 1)]
    return [
        relax.VarBinding(every, called),
        relax.VarBinding(product.var, parts[-1]),
        relax.VarBinding(copy.var, relax.Tuple(parts[:-1])),
    ]
