"""Changes of a schedule that was made already, drawn at random: one primitive each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm_ffi
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import ForKind

from mfmadsl.schedule.product.nest import loads

PIPELINE, GRID = "mfmadsl.pipeline", "mfmadsl.grid."
Generator = np.random.Generator


class _NothingThereError(Exception):
    """The schedule has nothing that a change is of."""


def changed(sch: Schedule, generator: Generator, count: int) -> tuple[Schedule, list[str]]:
    """The schedule after so many changes, of those that TVM allows, and what they are called."""
    made: list[str] = []
    for _ in range(count):
        name = _one_of(generator, tuple(CHANGES))
        other = Schedule(sch.mod)
        try:
            CHANGES[name](other, generator)
        except Exception as error:  # of any type that TVM has
            if isinstance(error, _NothingThereError) or hasattr(error, "__tvm_ffi_error__"):
                continue
            raise
        sch = other
        made.append(name)
    return sch, made


def _one_of(generator: Generator, choices: Any) -> Any:
    if not choices:
        raise _NothingThereError
    return choices[int(generator.integers(len(choices)))]


def _blocks(sch: Schedule, part: str = "") -> list[SBlockRV]:
    """The blocks with such a part in their names, but those that stand in others."""
    names: list[str] = []
    tvm_ffi.structural_walk(
        sch.mod["main"].body, (s_tir.SBlock, lambda block: names.append(block.name_hint))
    )
    found = [sch.get_sblock(name) for name in dict.fromkeys(names) if part in name]
    return [block for block in found if sch.get_loops(block)]


def _pipelined(sch: Schedule) -> LoopRV:
    for block in _blocks(sch):
        for loop in sch.get_loops(block):
            if PIPELINE in sch.get(loop).annotations:
                return loop
    raise _NothingThereError


def _annotated(key: str, *values: Any) -> Callable[[Schedule, Generator], None]:
    """Annotate the main loop otherwise; None takes the annotation away."""

    def change(sch: Schedule, generator: Generator) -> None:
        loop, value = _pipelined(sch), _one_of(generator, values)
        if key in sch.get(loop).annotations:
            sch.unannotate(loop, key)
        if value is not None:
            sch.annotate(loop, key, value)

    return change


def _copy(sch: Schedule, generator: Generator) -> tuple[SBlockRV, list[LoopRV]]:
    """A block that copies, and its loops within those of threads."""
    block = _one_of(generator, [b for b in _blocks(sch, "shared") if _is_copy(sch, b)])
    loops = sch.get_loops(block)
    last = max(
        (n for n, loop in enumerate(loops) if sch.get(loop).kind == ForKind.THREAD_BINDING),
        default=-1,
    )
    return block, loops[last + 1 :]


def _is_copy(sch: Schedule, block: SBlockRV) -> bool:
    return str(sch.get(block).writes[0].source.scope()) == "shared"


def _vectorize(sch: Schedule, generator: Generator) -> None:
    sch.vectorize(_one_of(generator, _copy(sch, generator)[1][-1:]))


def _unroll(sch: Schedule, generator: Generator) -> None:
    sch.unroll(_one_of(generator, _copy(sch, generator)[1]))


def _split(sch: Schedule, generator: Generator) -> None:
    loop = _one_of(generator, _copy(sch, generator)[1])
    sch.split(loop, [None, _one_of(generator, (2, 3, 4))])


def _reorder(sch: Schedule, generator: Generator) -> None:
    loops = _copy(sch, generator)[1]
    sch.reorder(*(loops[n] for n in generator.permutation(len(loops))))


def _reorder_more(sch: Schedule, generator: Generator) -> None:
    """Loops of a copy, with those of its threads, in any order."""
    block, _ = _copy(sch, generator)
    loops = sch.get_loops(block)
    bound = [n for n, loop in enumerate(loops) if sch.get(loop).annotations]
    loops = loops[bound[-1] + 1 :] if bound else loops
    sch.reorder(*(loops[n] for n in generator.permutation(len(loops))))


def _fuse(sch: Schedule, generator: Generator) -> None:
    sch.fuse(*_copy(sch, generator)[1][-2:])


def _unroll_steps(sch: Schedule, generator: Generator) -> None:
    """A loop of any block."""
    block = _one_of(generator, _blocks(sch))
    loops = [loop for loop in sch.get_loops(block) if not sch.get(loop).annotations]
    sch.unroll(_one_of(generator, loops))


def _align_storage(sch: Schedule, generator: Generator) -> None:
    block, _ = _copy(sch, generator)
    sch.storage_align(block, 0, -2, 32, _one_of(generator, (4, 8, 16)))


def _through_registers(sch: Schedule, generator: Generator) -> None:
    """Each element of a copy goes to a register first.

    But of a gathered one TVM would read the places past their end.
    """
    block, _ = _copy(sch, generator)
    if any(loads(axis.min) for region in sch.get(block).reads for axis in region.region):
        raise _NothingThereError
    sch.compute_at(sch.cache_read(block, 0, "local"), sch.get_loops(block)[-1])


def _double_buffer(sch: Schedule, generator: Generator) -> None:
    block, _ = _copy(sch, generator)
    sch.annotate(block, "double_buffer_scope", 0)


CHANGES: dict[str, Callable[[Schedule, Generator], None]] = {
    "stages": _annotated(PIPELINE, 1, 2, 3, 4, 5),
    "no pipeline": _annotated(PIPELINE, None),
    "no edges": _annotated("mfmadsl.edges", None),
    "swizzle": _annotated("mfmadsl.swizzle", 0, 1, None),
    "group": _annotated(GRID + "group", 1, 2, 3, 5, None),
    "dies": _annotated(GRID + "dies", 1, 2, 3, 8, None),
    "workgroups": _annotated(GRID + "workgroups", 1, 2, 3, 304, None),
    "vectorize": _vectorize,
    "unroll": _unroll,
    "split": _split,
    "reorder": _reorder,
    "reorder more": _reorder_more,
    "fuse": _fuse,
    "unroll steps": _unroll_steps,
    "align storage": _align_storage,
    "through registers": _through_registers,
    "double buffer": _double_buffer,
}
