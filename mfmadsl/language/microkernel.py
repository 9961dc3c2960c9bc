"""Rules for micro-kernels: that their instructions compute the product which they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from mfmadsl.language.checker import check_fields, check_single_shape, repeated
from mfmadsl.language.diagnostic import Diagnostic, LanguageError, Span
from mfmadsl.language.element import element_type
from mfmadsl.language.llvm_vector import LLVM_VECTORS, LlvmVector
from mfmadsl.language.naming import check_microkernel_name
from mfmadsl.language.operand import Found
from mfmadsl.language.steps import WrongProduct, find_steps
from mfmadsl.language.syntax import (
    CallField,
    FormulaField,
    LayoutItem,
    MicrokernelField,
    MicrokernelItem,
    NamesField,
    OperandField,
    Placement,
)
from mfmadsl.language.vector_expression import check_expression
from mfmadsl.language.vector_placement import place_vectors
from mfmadsl.model import EXTENT_OF, FEATURES, INDICES, TILE_ROWS, ElementType, Microkernel
from mfmadsl.model import VectorOperand as Operand
from mfmadsl.model.cpu import VECTOR_BITS, vector_bits
from mfmadsl.model.microkernel import available_registers, group, registers_needed
from mfmadsl.nearest import did_you_mean

_REQUIRED = ("shape", "a", "b", "c", "features")
_FLOATS = ("float32", "float64")  # of which a vector is added and multiplied as it is


def check_microkernel(item: MicrokernelItem, layouts: Mapping[str, LayoutItem]) -> Microkernel:
    """The model of a micro-kernel. Raises LanguageError with all that is wrong with it."""
    found: list[Diagnostic] = []
    fields = check_fields("microkernel", item.name, item.fields, _REQUIRED, found)
    shape = check_single_shape("a micro-kernel", fields.get("shape"), found)
    instruction = _instruction(item, fields, found)
    features = _features(fields.get("features"), found)
    types = _types(item, instruction, found)
    if found or shape is None:
        raise _mistakes(found)
    found += check_microkernel_name(item.name, shape, types)
    found += _check_needs(fields, instruction, features)
    operands = _operands(item, shape, types, layouts, instruction, found)
    if found:
        raise _mistakes(found)
    a, b, c = (operands[name] for name in "abc")
    tiles = instruction is not None and instruction.tiles
    found += _check_width(fields, operands, instruction, features)
    if not found:
        found += _check_registers(item, operands, features, tiles)
    if found:
        raise _mistakes(found)
    steps = find_steps(a, b, c, tiles)
    if isinstance(steps, WrongProduct):
        span = _placed(fields[steps.operand]).span
        hint = "C[i, j] += A[i, k] * B[k, j], by what lies in one element of the registers"
        raise LanguageError([Diagnostic("product", steps.message, span, hint)])
    call = fields.get("call")
    return Microkernel(
        item.name.text,
        item.doc,
        **shape,
        a=a,
        b=b,
        c=c,
        call=call.text if isinstance(call, CallField) else "",
        arguments=instruction.arguments if instruction else ("c", "a", "b"),
        features=features,
        steps=steps,
        tiles=tiles,
    )


def _mistakes(found: Found) -> LanguageError:
    return LanguageError(sorted(found, key=lambda d: d.span.start))


def _instruction(
    item: MicrokernelItem, fields: Mapping[str, MicrokernelField], found: Found
) -> LlvmVector | None:
    """What LLVM calls; None for an expression, and for what is wrong."""
    call, expression = fields.get("call"), fields.get("expression")
    if (call is None) == (expression is None):
        given = "both `call` and `expression`" if call else "neither `call` nor `expression`"
        message = f"microkernel `{item.name.text}` has {given}"
        hint = "say by which one a step is done"
        found.append(Diagnostic("field", message, item.name.span, hint))
    if isinstance(expression, FormulaField):
        found += check_expression(expression)
    if not isinstance(call, CallField):
        return None
    if call.text not in LLVM_VECTORS:
        near = get_close_matches(call.text, LLVM_VECTORS, 1, 0.8)
        hint = f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(LLVM_VECTORS)}"
        message = f'"{call.text}" is no LLVM intrinsic that micro-kernels are made of'
        found.append(Diagnostic("call", message, call.span, hint))
    return LLVM_VECTORS.get(call.text)


def _features(field: MicrokernelField | None, found: Found) -> tuple[str, ...]:
    if not isinstance(field, NamesField):
        return ()
    found += repeated(field.names, "feature")
    for name in field.names:
        if name.text not in FEATURES:
            message = f"`{name.text}` is no feature of a CPU that is known here"
            hint = did_you_mean(name.text, FEATURES)
            found.append(Diagnostic("feature", message, name.span, hint))
    return tuple(name.text for name in field.names)


def _types(
    item: MicrokernelItem, instruction: LlvmVector | None, found: Found
) -> dict[str, ElementType]:
    """The element type of each operand, which is the instruction's, or one of vectors."""
    types: dict[str, ElementType] = {}
    for field in item.fields:
        if not isinstance(field, OperandField):
            continue
        for other in field.types[1:]:
            message = "an operand of a micro-kernel has elements of one type"
            found.append(Diagnostic("type", message, other.span, "write a micro-kernel for each"))
        dtype = element_type(field.types[0], found)
        if dtype is None:
            continue
        name = field.name.text
        types[name] = dtype
        if instruction:
            wanted = instruction.types["abc".index(name)]
            if dtype.name != wanted:
                message = f"`{name}` is {dtype}, but the instruction takes {wanted}"
                found.append(Diagnostic("type", message, field.types[0].span))
        elif dtype.name not in _FLOATS or dtype != types.get("a", dtype):
            message = f"`{name}` cannot be {dtype}"
            hint = f"all operands of an expression are {' or all '.join(_FLOATS)}"
            found.append(Diagnostic("type", message, field.types[0].span, hint))
    return types


def _check_needs(
    fields: Mapping[str, MicrokernelField], instruction: LlvmVector | None, features: Sequence[str]
) -> Iterator[Diagnostic]:
    """Whether CPUs with these features have what LLVM is to call."""
    call, stated = fields.get("call"), fields["features"]
    if instruction and isinstance(call, CallField) and not instruction.runs_with(features):
        ways = " or ".join(" and ".join(each) for each in instruction.features)
        message = f'"{call.text}" needs {ways}'
        hint = f"the entry has {', '.join(features)}"
        yield Diagnostic("feature", message, stated.name.span, hint)


def _operands(
    item: MicrokernelItem,
    shape: Mapping[str, int],
    types: Mapping[str, ElementType],
    layouts: Mapping[str, LayoutItem],
    instruction: LlvmVector | None,
    found: Found,
) -> dict[str, Operand]:
    """Those whose indices and placements are right."""
    operands: dict[str, Operand] = {}
    for field in item.fields:
        if not isinstance(field, OperandField):
            continue
        name = field.name.text
        before = len(found)
        _check_indices(field, found)
        _check_broadcast(field, instruction, found)
        if len(found) > before:
            continue
        elements = instruction.bits // types[name].bits if instruction else None
        if field.broadcast:
            elements = group(types[name], types["c"])
        extents = {i.name.text: shape[EXTENT_OF[i.name.text]] for i in field.indices}
        try:
            layout = place_vectors(field, extents, layouts, elements)
        except LanguageError as error:
            found += error.diagnostics
            continue
        operands[name] = Operand(name, types[name], layout, field.broadcast)
    return operands


def _check_indices(field: OperandField, found: Found) -> None:
    first, second = field.indices
    wanted = INDICES[field.name.text]
    if (first.name.text, second.name.text) != wanted or first.group * second.group != 1:
        span = Span(first.span.source, first.span.start, second.span.end)
        message = f"`{field.name.text}` is indexed [{', '.join(wanted)}]"
        found.append(Diagnostic("indices", message, span, "C[i, j] += A[i, k] * B[k, j]"))


def _check_broadcast(field: OperandField, instruction: LlvmVector | None, found: Found) -> None:
    span = field.placement.span
    if field.broadcast and field.name.text == "c":
        message = "the elements of a sum's register are sums of their own: none is broadcast"
        found.append(Diagnostic("broadcast", message, span))
    elif field.broadcast and instruction and instruction.tiles:
        message = "a row of a tile register is loaded whole: nothing is broadcast"
        found.append(Diagnostic("broadcast", message, span))


def _check_width(
    fields: Mapping[str, MicrokernelField],
    operands: Mapping[str, Operand],
    instruction: LlvmVector | None,
    features: Sequence[str],
) -> Iterator[Diagnostic]:
    """Whether registers are those that CPUs have, all of one width; tiles are full."""
    bits = operands["c"].elements * operands["c"].type.bits
    span = _placed(fields["c"]).span
    if instruction and instruction.tiles:
        for name, operand in operands.items():
            if operand.registers % TILE_ROWS:
                message = (
                    f"`{name}` fills {operand.registers} rows, where a tile register has "
                    f"{TILE_ROWS}"
                )
                yield Diagnostic("registers", message, _placed(fields[name]).span)
    elif not instruction:
        if bits not in VECTOR_BITS.values():
            message = f"a register of C would have {bits} bits"
            hint = f"vector registers have {', '.join(map(str, VECTOR_BITS.values()))}"
            yield Diagnostic("element", message, span, hint)
        elif bits > vector_bits(features):
            message = f"a register of C has {bits} bits, more than CPUs with these features have"
            hint = f"{', '.join(features)} is {vector_bits(features)}"
            yield Diagnostic("feature", message, span, hint)
        for name, operand in operands.items():
            if not operand.broadcast and operand.elements != operands["c"].elements:
                message = (
                    f"a register of `{name}` has {operand.elements} elements, one of `c` "
                    f"{operands['c'].elements}"
                )
                yield Diagnostic("element", message, _placed(fields[name]).span)


def _check_registers(
    item: MicrokernelItem, operands: Mapping[str, Operand], features: tuple[str, ...], tiles: bool
) -> Iterator[Diagnostic]:
    """Whether all that the steps take at once has room."""
    a, b, c = (operands[name] for name in "abc")
    by_expression = not any(isinstance(field, CallField) for field in item.fields)
    needed = registers_needed(a, b, c, "" if by_expression else "call", tiles)
    bits = c.elements * c.type.bits
    available = available_registers(features, bits, tiles)
    if needed > available:
        kind = "tile" if tiles else "vector"
        sums = c.registers // (TILE_ROWS if tiles else 1)
        message = f"{needed} {kind} registers are needed, {sums} of them for the sums"
        hint = f"CPUs with {', '.join(features)} have {available} of {bits} bits"
        hint = f"AMX has {available} tile registers" if tiles else hint
        yield Diagnostic("registers", message, _placed(_field(item, "c")).span, hint)


def _field(item: MicrokernelItem, name: str) -> MicrokernelField:
    return next(field for field in item.fields if field.name.text == name)


def _placed(field: MicrokernelField) -> Placement:
    assert isinstance(field, OperandField)
    return field.placement
