"""Several kernels of one product: for which extents each is, and how they come into a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_extent, check_list, check_type
from mfmadsl.error import ArgumentError
from mfmadsl.model import Architecture, Intrinsic, Tiling
from mfmadsl.passes.kernel.cases import UP_TO
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.selection import cases, symbolic_extent
from mfmadsl.schedule.matrix_core.tiling.cases import Case
from mfmadsl.schedule.product.cases import CaseBlocks, with_copies
from mfmadsl.schedule.product.nest import Nest
from mfmadsl.schedule.product.normalise import Product, normalise


def checked(tiling: Tiling | Sequence[Case]) -> list[Case]:
    """The cases, or the one for all extents.

    Raises ArgumentTypeError or ArgumentError for what is neither, and where it is left open which
    case an extent takes.
    """
    if isinstance(tiling, Tiling):
        return [Case(tiling)]
    check_list("tiling", tiling, "a Tiling, or a list of Case")
    found = list(tiling)
    for case in found:
        check_type("tiling", case, Case, "a Tiling, or a list of Case")
        check_type("tiling", case.tiling, Tiling, "a Tiling in each Case")
        check_list("tiling: up_to", case.up_to, "a tuple of extents")
    limits = [check_extent("tiling: up_to", limit) for case in found for limit in case.up_to]
    if not found or not all(case.up_to for case in found[:-1]):
        raise ArgumentError("tiling: each Case but the last, which takes the rest, has some up_to")
    if len(set(limits)) < len(limits):
        raise ArgumentError(
            f"tiling: an extent is the up_to of one Case only, but there are {limits}"
        )
    return found


def only_tiling(tiling: Tiling | Sequence[Case] | None) -> Tiling | None:
    """The tiling that is asked for, of a product that has no cases.

    Raises ScheduleError where several are, and as `checked` does.
    """
    if tiling is None or isinstance(tiling, Tiling):
        return tiling
    found = checked(tiling)
    if len(found) > 1:
        raise ScheduleError(
            "tiling: scaled and sparse products have no cases, since their extents are known: give"
            " one Tiling"
        )
    return found[0].tiling


def cases_for(
    function: PrimFunc, nest: Nest, intrinsic: Intrinsic | str | None,
    tiling: Tiling | Sequence[Case] | None, chip: Architecture, one_launch: bool = True,
) -> list[Case]:  # fmt: skip
    """The cases that are asked for, or chosen: one where M, N and K are known, or several of them
    are not. Chosen are those of a split K in `one_launch`, or others only.

    Raises ScheduleError for what is no product, and as `checked` does.
    """
    if tiling is not None:
        return checked(tiling)
    product = _product(function, nest)
    plainly = one_launch and product.ends_plainly
    return cases(replace(product, ends_plainly=plainly), intrinsic, chip)


def with_case_blocks(
    function: PrimFunc, nest: Nest, count: int
) -> tuple[PrimFunc, list[CaseBlocks]]:
    """The function with so many copies of its product, one for each case.

    Raises ScheduleError where no launch could choose among them.
    """
    extent = symbolic_extent(_product(function, nest))
    if extent is None:
        raise nest.refusal(
            "has no cases: they are for a product of which one of M, N and K is symbolic"
        )
    return with_copies(function, nest, extent, count)


def _product(function: PrimFunc, nest: Nest) -> Product:
    sch = Schedule(function)
    return normalise(sch, sch.get_sblock(nest.name))


def annotate_case(sch: Schedule, case: Case, blocks: CaseBlocks) -> SBlockRV:
    """Tell the passes for which extents a case is; the block of its product."""
    if case.up_to:
        sch.annotate(sch.get_sblock(blocks.case), UP_TO, list(case.up_to))
    return sch.get_sblock(blocks.product)
