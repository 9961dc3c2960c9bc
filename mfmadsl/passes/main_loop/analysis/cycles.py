"""What TensorIntrins say of their matrix instructions, handed on to the loop that they stand in.

A generated TensorIntrin annotates its block with the cycles of its instruction on each chip. Blocks
are gone before the pipeline comes to the loop, whose annotation stays.
"""

from __future__ import annotations

from tvm.s_tir import SBlock
from tvm.tirx import For, PrimFunc

from mfmadsl.model import Architecture
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.tir.annotation import CYCLES, PIPELINE
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk


def hand_on_cycles(function: PrimFunc, chip: Architecture) -> PrimFunc:
    """The function whose annotated loops say what the blocks in them say for the chip."""

    def loop(node: For) -> For:
        annotations = dict(node.annotations or {})
        if PIPELINE not in annotations or CYCLES in annotations:
            return node
        found = _stated(node, chip)
        if not found:
            return node
        return For(
            node.loop_var, node.min, node.extent, node.kind, node.body, node.thread_binding,
            {**annotations, CYCLES: found},
        )  # fmt: skip

    return with_body(function, mapped(function.body, (For, loop)))


def _stated(loop: For, chip: Architecture) -> dict[str, int]:
    """Cycles by the function that is called: the most, of blocks that call the same."""
    found: dict[str, int] = {}

    def block(node: SBlock) -> None:
        for function, by_chip in (node.annotations or {}).get(CYCLES, {}).items():
            if chip.name in by_chip:
                cycles = int(by_chip[chip.name])
                found[str(function)] = max(found.get(str(function), 0), cycles)

    walk(loop.body, (SBlock, block))
    return found


def stated_instructions(loop: For, known: MatrixInstructions) -> MatrixInstructions:
    """What is known of matrix instructions, corrected by what a loop's annotation says."""
    stated = (loop.annotations or {}).get(CYCLES, {})
    return MatrixInstructions({**known.cycles, **{str(f): int(n) for f, n in stated.items()}})
