"""The annotations of loops that passes are steered by; docs/own-schedule.md explains each."""

from __future__ import annotations

from tvm import ir
from tvm.tirx import Expr, For, PrimFunc

from mfmadsl.model import OVERLAPS
from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.walk import walk

PIPELINE = "mfmadsl.pipeline"
"""The annotation of a loop that the pipeline is to take; its value is the number of stages."""

SWIZZLE = "mfmadsl.swizzle"
"""The annotation of a loop that says 0 if its tiles are to lie in the LDS as they are."""

OVERLAP = "mfmadsl.overlap"
"""The annotation of a loop that says what comes while the matrix cores work, one of `OVERLAPS`."""

EDGES = "mfmadsl.edges"
"""The annotation of a loop that names tiles, with spaces between them, whose rows past an edge may
hold anything, because nobody looks at what becomes of them. The edge is the outermost condition of
the copy into the tile, without what says where K ends."""

MOVING_EDGES = "mfmadsl.moving_edges"
"""The annotation of a loop that says 1 if conditions in its variable are such edges of these tiles,
too: nobody looks at what an iteration has there, and no load asks for it."""

AHEAD = "mfmadsl.ahead"
"""The annotation of an unrolled loop that says 1 if its loads are to come before all else in it.
Its elements are up to an edge, without gaps, and at least one of them is before it."""

GROUP, DIES, WORKGROUPS, BLOCKS_AT_A_TIME = (
    f"mfmadsl.grid.{name}" for name in ("group", "dies", "workgroups", "blocks_at_a_time")
)
"""Annotations of the grid: rows of tiles in a block of them, dies, and workgroups at most."""

CYCLES = "mfmadsl.cycles"
"""The annotation of a TensorIntrin's block that says how many cycles a matrix core works on its
instruction: {LLVM's function: {chip: cycles}}; and that of a loop, {LLVM's function: cycles}."""

REMARK = "mfmadsl.remark"
"""The attribute of a function that says why its kernel is slower than one would think."""

_MOST = (1 << 31) - 1
_NUMBERS = {
    PIPELINE: (0, 4), SWIZZLE: (0, 1), AHEAD: (0, 1), MOVING_EDGES: (0, 1),
    GROUP: (1, _MOST), DIES: (1, _MOST), WORKGROUPS: (1, _MOST), BLOCKS_AT_A_TIME: (1, _MOST),
}  # fmt: skip


def check_annotations(function: PrimFunc) -> None:
    """Raise LoweringError for an annotation of the project's that says nothing to a pass."""
    loops: list[dict[str, Expr]] = []

    def loop(node: For) -> None:
        loops.append({str(key): value for key, value in (node.annotations or {}).items()})

    walk(function.body, (For, loop))
    for name, value in [each for own in loops for each in own.items()]:
        if name == OVERLAP:
            if word(value) not in OVERLAPS:
                raise LoweringError(
                    f"annotation {name}: is one of {', '.join(OVERLAPS)}, not {value}"
                )
        elif name == EDGES:
            if not isinstance(value, str | ir.StringImm):
                raise LoweringError(f"annotation {name}: is names of tiles, not {value}")
        elif name in _NUMBERS:
            least, most = _NUMBERS[name]
            number = value if isinstance(value, int) else getattr(value, "value", None)
            if not isinstance(number, int) or not least <= number <= most:
                highest = "2^31 - 1" if most == _MOST else str(most)
                few = most - least < 2
                limit = f"{least} or {most}" if few else f"a number from {least} to {highest}"
                raise LoweringError(f"annotation {name}: is {limit}, not {value}")
        elif name.startswith("mfmadsl."):
            known = ", ".join([*_NUMBERS, EDGES, OVERLAP])
            raise LoweringError(f"no annotation is called {name}: there are {known}")
    for own in loops:
        if OVERLAP in own:
            _check_overlap(word(own[OVERLAP]), own.get(PIPELINE))


def _check_overlap(overlap: str, stages: Expr | None) -> None:
    """It goes with a pipeline; one of a single place, if no fragments are read ahead."""
    if stages is None:
        raise LoweringError(f"annotation {OVERLAP}: stands on the loop of {PIPELINE} only")
    if not OVERLAPS[overlap].is_staged and int(stages) != 1:
        raise LoweringError(f'annotation {OVERLAP}: "{overlap}" needs {PIPELINE} of 1')


def word(value: Expr | str) -> str:
    """The text of an annotation, if it is one."""
    return str(value.value) if isinstance(value, ir.StringImm) else str(value)
