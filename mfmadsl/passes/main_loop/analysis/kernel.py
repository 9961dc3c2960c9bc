"""The kernel around a main loop: its threads, its registers, and the chip that it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from tvm.sym import Analyzer
from tvm.tirx import AttrStmt, PrimFunc, Var

from mfmadsl.model import Architecture, Read
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.main_loop.analysis.register_use import RegisterUse
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import walk


@dataclass(frozen=True)
class Threads:
    """The thread indices of a kernel: variables, by tag, and how many there are of each."""

    variables: dict[str, Var]
    extents: dict[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """How many values each variable has, by its name."""
        return {v.name: self.extents[tag] for tag, v in self.variables.items()}


@dataclass(frozen=True)
class EnclosingKernel:
    """What a loop stands in: the function, its threads, what is known of them, and the chip.

    `instructions` and `reads` are what is described of the chip: its matrix instructions, and its
    reads of the LDS in which lanes exchange elements. `register_use` says how scarce registers are.
    """

    function: PrimFunc
    threads: Threads
    analyzer: Analyzer
    chip: Architecture
    instructions: MatrixInstructions
    reads: tuple[Read, ...] = ()
    register_use: RegisterUse = RegisterUse.TWO_AHEAD

    @property
    def lean(self) -> bool:
        """Whether addresses are computed anew where they are used."""
        return self.register_use is RegisterUse.LEAN

    @property
    def lane(self) -> Var | None:
        """threadIdx.x, if that is a wave's lane."""
        is_lane = self.threads.extents.get("threadIdx.x") == self.chip.wave_size
        return self.threads.variables.get("threadIdx.x") if is_lane else None

    @cached_property
    def groups(self) -> int:
        """How many workgroups there are; one for an extent that is known at the launch only."""
        found = [1]

        def thread(node: AttrStmt) -> None:
            if node.attr_key == "thread_extent" and node.node.thread_tag.startswith("blockIdx"):
                found.append(constant(node.value) or 1)

        walk(self.function.body, (AttrStmt, thread))
        return prod(found)

    @property
    def thread_count(self) -> int:
        """The threads of a workgroup."""
        return prod(self.threads.extents.values())

    @property
    def waves(self) -> int:
        """The waves of a workgroup."""
        return ceil(self.thread_count / self.chip.wave_size)

    @property
    def registers(self) -> int:
        """How many a lane has, if a compute unit has but one workgroup."""
        return self.chip.registers // max(1, ceil(self.waves / self.chip.simds))
