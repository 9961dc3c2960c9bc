"""A product of scaled floats made the one that modules describe, of bytes."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, Expr, IterVar, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.added_nest import element_wise, replaced, unique
from mfmadsl.schedule.product.dataflow import check_compact, check_written_once
from mfmadsl.schedule.product.described import (
    Form,
    axes_of,
    described_types,
    forms,
    group_of,
    in_batches,
)
from mfmadsl.schedule.product.nest import (
    Nest,
    block_names,
    is_sum,
    line,
    loads,
    nests,
    same,
    substitute,
)
from mfmadsl.schedule.product.scaled_sum import ScaledSum, scaled_sum
from mfmadsl.schedule.product.sum_of_products import uses
from mfmadsl.schedule.product.unread import without_unread

_ONE = 127  # the scale that is 1 (OCP Microscaling Formats v1.0, 5.4.1)


def as_bytes(function: PrimFunc, arch: str) -> PrimFunc:
    """The function with a sum of scaled floats as one of bytes, or as it is where it has none.

    A parameter of elements of fewer than eight bits becomes one of the bytes in which they lie.
    What the chip has no scaled instruction for stays, too, where no such instruction could take it:
    elements of eight bits, in groups that are not whole or of an extent that is a symbol.

    Raises ScheduleError, with the name of the block, for scales of other groups or places.
    """
    types = {str(parameter.dtype) for parameter in function.params if hasattr(parameter, "dtype")}
    if not types & {each for pair in described_types(sparse=False) for each in pair}:
        return function
    for nest in nests(function):
        if is_sum(nest) and (found := scaled_sum(function, nest)) is not None:
            if _is_plain_only(found, arch):
                return function
            check_compact(function)
            check_written_once(function)
            return _rewritten(function, found)
    return function


def _is_plain_only(found: ScaledSum, arch: str) -> bool:
    a, _, b, _ = found.factors
    types = str(a.source.dtype), str(b.source.dtype)
    if types in described_types(sparse=False, arch=arch) or min(map(bits_of, types)) < 8:
        return False
    (form,) = (each for each in forms(sparse=False) if each.types == types)
    extents = [constant(axis.dom.extent) for axis in found.axes]
    return None in extents or (extents[-1] or 0) % group_of(form.intrinsic) != 0


def _rewritten(function: PrimFunc, found: ScaledSum) -> PrimFunc:
    """The function with the sum of bytes in the place of the sum of floats."""
    a, _, b, _ = found.factors
    extents = [constant(axis.dom.extent) for axis in found.axes]
    if None in extents:
        raise found.nest.refusal("multiplies scaled elements of an extent that is a symbol")
    *batch, m, n, k = (extent or 0 for extent in extents)
    types = str(a.source.dtype), str(b.source.dtype)
    (form,) = (each for each in forms(sparse=False) if each.types == types)
    group = group_of(form.intrinsic)
    if k % group:
        raise found.nest.refusal(f"sums over {k}, which is no multiple of {group}: pad with zeros")
    workload = form.workload((m, n, k))
    if batch:
        workload = in_batches(workload, batch[0])
    taken = block_names(function)
    own = {str(each.name): each for each in workload.params}
    before: list[Stmt] = []
    packed: list[tuple[Buffer, Buffer]] = []
    for name, load in zip(form.columns, found.factors, strict=True):
        axes = list(axes_of(own[name].shape))
        *which, row, column = (axis.var for axis in axes)
        if load is not None and bits_of(load.source.dtype) < 8:
            known = [new for old, new in packed if old.same_as(load.source)]
            (given,) = known or [_packed(function, found, load)]
            if not known:
                packed.append((load.source, given))
            value: Expr = tirx.BufferLoad(given, [*which, row, column])
        else:
            value = _octet_of(found, form, name, load, (*which, row, column))
        places = [axis.var for axis in axes]
        block = unique(f"{name}_bytes", taken)
        before.append(element_wise(block, axes, own[name], places, value))
    (nest,) = nests(workload)
    c, result = own["C"], found.nest.store.buffer
    axes = list(axes_of(result.shape))
    places = [axis.var for axis in axes]
    name = unique(f"{found.nest.name}_sum", taken)
    after = element_wise(name, axes, result, places, tirx.BufferLoad(c, places))
    whole = replaced(function, found.nest, [*before, nest.statement, after], list(own.values()))
    return without_unread(_with_parameters(whole, packed), found.inside)


def _octet_of(
    found: ScaledSum, form: Form, name: str, load: TensorLoad | None, places: Sequence[Var]
) -> Expr:
    """The bits of an element or a scale, of a row and the number of it there."""
    if load is None:  # one side has no scales: each is 1
        return tirx.const(_ONE, "uint8")
    *lead, k = found.axes
    axis = lead[-2] if name.endswith("A") else lead[-1]
    *which, row, column = places
    at: dict[Var, Expr] = {axis.var: row}
    at |= {each.var: own for each, own in zip(lead[:-2], which, strict=True)}
    group = group_of(form.intrinsic)
    first = column * group if name.startswith("SCALE") else column
    if name.startswith("SCALE"):
        _check_group(found, load, k, group)
    indices = [Analyzer().simplify(substitute(i, {**at, k.var: first})) for i in load.indices]
    value: Expr = tirx.BufferLoad(load.source, indices)
    return value if str(value.ty.dtype) == "uint8" else tirx.reinterpret("uint8", value)


def _check_group(found: ScaledSum, load: TensorLoad, k: IterVar, group: int) -> None:
    """Refuse a scale that is not the same for all k of a group."""
    first, inner = tirx.Var("group", "int32"), tirx.Var("inner", "int32")
    analyzer = Analyzer()
    analyzer.bind(first, Range(0, int(k.dom.extent) // group))
    analyzer.bind(inner, Range(0, group))
    for index in load.indices:
        of_any, of_first = (
            substitute(index, {k.var: first * group + x}) for x in (inner, tirx.const(0, "int32"))
        )
        if not analyzer.can_prove_equal(of_any, of_first):
            raise found.nest.refusal(
                f"has the scale `{line(load)}`, which is not of {group} neighbouring"
                f" `{k.var.name}`, as scaled instructions have them"
            )


def _packed(function: PrimFunc, found: ScaledSum, load: TensorLoad) -> Buffer:
    """The bytes of a parameter whose elements have fewer than eight bits."""
    own, name = load.source, str(load.source.name)
    *lead, k = found.axes
    plain = [*(axis.var for axis in lead[:-2]), *load.indices[-2:]]
    sides = [axis.var for axis in lead[-2:] if uses(load, axis.var)]
    if not any(own.same_as(parameter) for parameter in function.params):
        raise found.nest.refusal(
            f"multiplies `{name}`, elements of {bits_of(own.dtype)} bits that are no parameter"
        )
    if not same(list(load.indices), plain) or not same(list(plain[-2:]), [*sides, k.var]):
        raise found.nest.refusal(
            f"reads `{line(load)}`: rows of elements of {bits_of(own.dtype)} bits lie along the sum"
        )
    inside = [found.nest, *(each for each in found.inside if not _is_kept(function, each, found))]
    for nest in nests(function):
        is_own = any(nest.block.same_as(each.block) for each in inside)
        if not is_own and any(each.source.same_as(own) for each in loads(nest.block)):
            raise ScheduleError(
                f"workload: block `{nest.name}` reads `{name}`, too, of which the product takes"
                " the bytes"
            )
    *rows, length = own.shape
    bits = (constant(length) or 0) * bits_of(own.dtype)
    if not bits or bits % 8:
        raise found.nest.refusal(f"reads `{name}`, whose rows are no known number of whole bytes")
    return tirx.decl_buffer([*rows, bits // 8], "uint8", name)


def _with_parameters(function: PrimFunc, packed: Sequence[tuple[Buffer, Buffer]]) -> PrimFunc:
    """The function with parameters of bytes in place of others."""
    parameters = [
        next((new for old, new in packed if old.same_as(each)), each) for each in function.params
    ]
    return PrimFunc(parameters, function.body, function.ret_type, attrs=function.attrs)


def _is_kept(function: PrimFunc, nest: Nest, found: ScaledSum) -> bool:
    """Whether others than the product read what a block before it computes."""
    own = [found.nest, *found.inside]
    others = (n for n in nests(function) if not any(n.block.same_as(each.block) for each in own))
    reading = (load for each in others for load in loads(each.block))
    return any(load.source.same_as(nest.store.buffer) for load in reading)
