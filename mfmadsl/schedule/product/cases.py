"""A product of a symbolic extent in several copies, each of which is scheduled for some extents.

`passes/kernel/cases.py` has what becomes of them: a launch runs one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir.analysis import get_sblock_access_region
from tvm.tirx import Expr, PrimFunc, Stmt, Var
from tvm.tirx.analysis import undefined_vars
from tvm_ffi.serialization import from_json_graph_str, to_json_graph_str

from mfmadsl.passes.kernel.cases import EXTENT, PRODUCT, REST, UP_TO, WHERE
from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.expression import among
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.added_nest import unique
from mfmadsl.schedule.product.dataflow import accesses, fused_consumers, holds
from mfmadsl.schedule.product.launch_symbols import arguments_of
from mfmadsl.schedule.product.nest import (
    Nest,
    block_names,
    blocks_in,
    nests,
)


@dataclass(frozen=True)
class CaseBlocks:
    """The names of blocks of a copy of a product: of all that is in it, and of the product."""

    case: str
    product: str


def with_copies(
    function: PrimFunc, nest: Nest, extent: Expr, count: int
) -> tuple[PrimFunc, list[CaseBlocks]]:
    """The function with so many copies of a product, with what is fused with it.

    `extent` tells which one a launch takes. Copy n, from 1, of block `C` is `C_n`, in a block
    `C_case_n`; the last one keeps its names.
    """
    inside = _fused(function, nest)
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    outside = [s for s in statements(function) if not _is_among(s, inside)]
    others = [each for each in accesses(function) if _is_among(each.statement, outside)]
    shared = [buffer for access in others for buffer in (*access.reads, *access.writes)]
    own = [buffer for buffer in root.alloc_buffers if not holds(shared, buffer)]
    left = [buffer for buffer in root.alloc_buffers if holds(shared, buffer)]
    bare = SBlock([], [], [], "case", in_sequence(inside), None, own)
    known = {each: each for each in [*arguments_of(function), *left]}
    reads, writes = get_sblock_access_region(bare, known)[:2]
    bare = SBlock([], reads, writes, "case", bare.body, None, own)
    taken = block_names(function)
    cases, found = list[CaseBlocks](), list[Stmt]()
    for number in range(1, count + 1):
        block, names = bare, {each: each for each in block_names(function)}
        if number < count:
            block = _copied(bare)
            names = {each: unique(f"{each}_{number}", taken) for each in names}
        case = CaseBlocks(unique(f"{nest.name}_case_{number}", taken), names[nest.name])
        cases.append(case)
        told = {EXTENT: extent, PRODUCT: nest.name, **({REST: 1} if number == count else {})}
        found.append(SBlockRealize([], True, _named(block, case.case, names, told)))
    body: list[Stmt] = []
    for statement in statements(function):
        if statement.same_as(nest.statement):
            body += found
        elif _is_among(statement, outside):
            body.append(statement)
    return with_root(function, with_parts(root, body=in_sequence(body), allocated=left)), cases


def of_cases(
    functions: Sequence[PrimFunc], extent: Expr, limits: Sequence[Sequence[int]],
    where: Expr | None = None,
) -> PrimFunc:  # fmt: skip
    """One function of several that compute the same of the same parameters: each but the last is
    for extents up to its limits, as a `Case` has them, and only where a condition holds, if there
    is one; the last one takes what is left."""
    found: list[Stmt] = []
    for number, function in enumerate(functions):
        assert isinstance(function.body, SBlockRealize)
        name = f"case_{number + 1}"
        told: dict[str, object] = {EXTENT: extent, PRODUCT: "case"}
        if number < len(limits) and limits[number]:
            told[UP_TO] = list(limits[number])
        if number == len(functions) - 1:
            told[REST] = 1
        elif where is not None:
            told[WHERE] = where
        case = with_parts(_copied(function.body.block), name=name, annotations=told)
        found.append(SBlockRealize([], True, case))
    return with_root(functions[0], SBlock([], [], [], "root", in_sequence(found)))


def _fused(function: PrimFunc, nest: Nest) -> list[Stmt]:
    """A product's statement, those before it that compute its factors only, and its epilogue."""
    consumers = fused_consumers(function, nest.block.writes[0].source)
    inside = [nest.statement, *(consumer.statement for consumer in consumers)]
    every, plain = accesses(function), [each.statement for each in nests(function)]
    for access in reversed(every):
        result = any(holds(function.params, buffer) for buffer in access.writes)
        if result or access.bound or not _is_among(access.statement, plain):
            continue
        readers = [each for each in every if any(holds(each.reads, b) for b in access.writes)]
        if readers and all(_is_among(reader.statement, inside) for reader in readers):
            inside.append(access.statement)
    return [access.statement for access in every if _is_among(access.statement, inside)]


def _copied(block: SBlock) -> SBlock:
    """A block once more, with loops, buffers and blocks of its own."""
    again = from_json_graph_str(to_json_graph_str(block))  # TVM's own writes it twice
    outer = dict(zip((v.__chandle__() for v in _free(again)), _free(block), strict=True))
    copied: SBlock = mapped(again, (Var, lambda v: outer.get(v.__chandle__(), v)))
    return copied


def _named(
    case: SBlock, name: str, names: Mapping[str, str], annotations: Mapping[str, object]
) -> SBlock:
    """A case with its name and annotations, and with other names of the blocks in it."""

    def renamed(block: SBlock) -> SBlock:
        return with_parts(block, name=names[str(block.name_hint)])

    body = mapped(case.body, (SBlock, renamed))
    return with_parts(case, name=name, body=body, annotations=annotations)


def _free(block: SBlock) -> list[Var]:
    """The variables that a block takes from around it, in the order of their uses."""
    own = [axis.var for each in blocks_in(block) for axis in each.iter_vars]
    found: list[Var] = []
    for variable in undefined_vars(block, []):
        if not among(variable, [*own, *found]):
            found.append(variable)
    return found


def _is_among(statement: Stmt, several: Sequence[Stmt]) -> bool:
    return any(statement.same_as(each) for each in several)
