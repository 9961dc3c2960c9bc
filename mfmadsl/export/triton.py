"""Triton's linear layouts: where a power of two of registers or lanes leads, as (row, column).

A linear layout sends a register and a lane to the exclusive or of the bases of the bits that are
set in their numbers (Triton 3.8, `DistributedLinearLayout` of Gluon). `AMDMFMALayout` and
`DotOperandLayout` are short for some of them: `dot_operand` and `accumulator` say for which, and
the tests ask Triton's own bindings whether that is so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from mfmadsl.export.error import ExportError
from mfmadsl.export.expand import Element, Slot, layout_of_elements
from mfmadsl.model import Intrinsic, Layout, Operand, architecture

Bases = Sequence[Sequence[int]]
SHAPES = ((16, 16), (32, 32))
"""M x N of the instructions of one block that AMDMFMALayout knows."""

_IMPORTS = """\
from triton.experimental.gluon.language import DistributedLinearLayout, DotOperandLayout
from triton.experimental.gluon.language.amd import AMDMFMALayout"""


def write(intrinsic: Intrinsic, operands: Sequence[Operand], arch: str | None) -> str:
    """Python that makes the layouts, by Triton's short names where it has them."""
    _check(intrinsic)
    parts = [f"# {intrinsic.name}, for one wave.\n{_IMPORTS}"]
    short = [line for operand in operands for line in _short(intrinsic, operand)]
    if short:
        parts.append("\n".join([f"mfma = {mfma(intrinsic, arch)}", *short]))
    return "\n\n".join([*parts, *(_linear(intrinsic, operand) for operand in operands)])


def read(text: str) -> dict[str, Layout]:
    """The layouts of the assignments to `NAME_linear`."""
    found = {}
    for statement in ast.parse(text).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        name = target.id.removesuffix("_linear")
        if name != target.id:
            given = {k.arg: ast.literal_eval(k.value) for k in statement.value.keywords}
            shape = given["shape"]
            layout = layout_of_bases(given["reg_bases"], given["lane_bases"], shape)
            found[name] = transposed(layout) if name == "scale_b" else layout
    return found


def layout_of_bases(registers: Bases, lanes: Bases, shape: Sequence[int]) -> Layout:
    """The layout of rows and columns that has these bases.

    Raises ExportError if it is not one-to-one, as that of values which several lanes hold.
    """
    rows, columns = shape

    def element(slot: Slot) -> Element:
        lane, register = slot
        row = column = 0
        for number, bases in ((lane, lanes), (register, registers)):
            for bit, (down, right) in enumerate(bases):
                if number >> bit & 1:
                    row, column = row ^ down, column ^ right
        return 0, row, column

    return layout_of_elements((1, rows, columns), 1 << len(lanes), 1 << len(registers), element)


def bases(layout: Layout) -> tuple[list[list[int]], list[list[int]]]:
    """The bases of registers and of lanes of a layout that has some."""

    def at(lane: int, register: int) -> list[int]:
        return list(layout.element(lane, register)[1:])

    registers = [at(0, 1 << bit) for bit in range(layout.elements_per_lane.bit_length() - 1)]
    return registers, [at(1 << bit, 0) for bit in range(layout.lanes.bit_length() - 1)]


def transposed(layout: Layout) -> Layout:
    """With rows and columns exchanged: Triton keeps the scales of B as those of A."""
    shape = (layout.blocks, layout.columns, layout.rows)

    def element(slot: Slot) -> Element:
        block, row, column = layout.element(*slot)
        return block, column, row

    return layout_of_elements(shape, layout.lanes, layout.elements_per_lane, element)


def version(intrinsic: Intrinsic, arch: str | None) -> int:
    """What AMDMFMALayout calls the chip: the number of its CDNA.

    Raises ExportError for a chip of another family.
    """
    chip = architecture(arch or intrinsic.chips[-1])
    family, _, number = chip.family.partition("CDNA")
    if family or not number.isdigit():
        raise ExportError(f"Triton's AMDMFMALayout has no number for {chip.name}")
    return int(number)


def mfma(intrinsic: Intrinsic, arch: str | None) -> str:
    """AMDMFMALayout of the instruction, as Python."""
    shape = [intrinsic.m, intrinsic.n, intrinsic.k]
    wide = ", element_bitwidth=64" if intrinsic.c.type.bits == 64 else ""
    return (
        f"AMDMFMALayout(version={version(intrinsic, arch)}, instr_shape={shape}, "
        f"transposed=False, warps_per_cta=[1, 1]{wide})"
    )


def k_width(operand: Operand) -> int:
    """How many consecutive k a lane holds in consecutive registers."""
    layout = operand.layout
    return layout.run_along_row() if operand.name == "a" else layout.run_along_column()


def dot_operand(operand: Operand) -> Layout | None:
    """What DotOperandLayout of `k_width` says of A or B; None if it says nothing of that shape.

    A run of k lies in a lane's registers, rows of A or columns of B and then further runs in the
    lanes, and what is left of k in further registers.
    """
    layout, width = operand.layout, k_width(operand)
    extent, k = layout.rows, layout.columns
    if operand.name == "b":
        extent, k = k, extent
    groups = layout.lanes // extent
    if layout.lanes % extent or k % (width * groups):
        return None
    along = [[0, b] for b in _powers(1, width)]
    lanes = [[b, 0] for b in _powers(1, extent)] + [[0, b] for b in _powers(width, width * groups)]
    more = [[0, b] for b in _powers(width * groups, k)]
    found = layout_of_bases(along + more, lanes, (extent, k))
    return transposed(found) if operand.name == "b" else found


def accumulator(operand: Operand) -> Layout:
    """What AMDMFMALayout says of C: lanes along a row, groups of rows in lanes and registers."""
    layout = operand.layout
    group = 1 if operand.type.bits == 64 else 4
    below = group * layout.lanes // layout.columns
    lanes = [[0, b] for b in _powers(1, layout.columns)] + [[b, 0] for b in _powers(group, below)]
    registers = [[b, 0] for b in [*_powers(1, group), *_powers(below, layout.rows)]]
    return layout_of_bases(registers, lanes, (layout.rows, layout.columns))


def _powers(first: int, end: int) -> Iterable[int]:
    """first, 2 * first, 4 * first and so on, below `end`."""
    while first < end:
        yield first
        first *= 2


def _check(intrinsic: Intrinsic) -> None:
    """Raise ExportError for what no linear layout of Triton's is."""
    if intrinsic.sparse:
        raise ExportError(
            f"{intrinsic.name} is sparse, and Triton has no layout of a sparse matrix instruction"
        )
    if intrinsic.blocks > 1:
        raise ExportError(
            f"{intrinsic.name} multiplies {intrinsic.blocks} blocks, and Triton's layouts have "
            "rows and columns only"
        )


def _linear(intrinsic: Intrinsic, operand: Operand) -> str:
    layout = transposed(operand.layout) if operand.name == "scale_b" else operand.layout
    if layout.matrix is None:
        raise ExportError(
            f"{intrinsic.name}: the map of `{operand.name}` is not linear in the bits of row, "
            "column, lane and register, as Triton's layouts are: its extents are no powers of "
            "two, or it adds where they take the exclusive or"
        )
    registers, lanes = bases(layout)
    return (
        f"{operand.name}_linear = DistributedLinearLayout(\n"
        f"    reg_bases={registers},\n    lane_bases={lanes},\n"
        f"    warp_bases=[],\n    block_bases=[],\n    shape={[layout.rows, layout.columns]},\n)"
    )


def _short(intrinsic: Intrinsic, operand: Operand) -> list[str]:
    """The operand by the names that Triton has for it, if it has any."""
    if (intrinsic.m, intrinsic.n) not in SHAPES or operand.layout.matrix is None:
        return []
    if operand.name == "c":
        return ["c = mfma"] if _lies_as(accumulator, operand) else []
    if operand.name not in ("a", "b") or not _lies_as(dot_operand, operand):
        return []
    index = "ab".index(operand.name)
    width = k_width(operand)
    layout = f"DotOperandLayout(operand_index={index}, parent=mfma, k_width={width})"
    return [f"{operand.name} = {layout}"]


def _lies_as(told: Callable[[Operand], Layout | None], operand: Operand) -> bool:
    """Whether the operand lies as a short name says."""
    try:
        return told(operand) == operand.layout
    except ExportError:  # it says nothing of so many lanes
        return False
