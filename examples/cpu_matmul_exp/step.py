"""What a step of the ladder is, and the code that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import tvm
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.target.codegen import llvm_get_system_cpu

from examples.cpu_matmul_exp.chain import Size, loops

Scheduling: TypeAlias = Callable[[Schedule], object]
Making: TypeAlias = Callable[[Size], tvm.IRModule]
Called: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """A step: `make` gives the module for a size, whose function `main` takes A, B, C and F.

    `pipeline` is the name of the passes that lower it.
    """

    name: str
    change: str
    make: Making
    pipeline: str = "default"


def scheduled(scheduling: Scheduling) -> Making:
    """What makes a module of the three nests of loops by a function that schedules them."""

    def make(size: Size) -> tvm.IRModule:
        sch = loops(size)
        scheduling(sch)
        return sch.mod

    return make


def this_cpu(threads: int) -> Target:
    """The CPU that this runs on, by its name: `native` would be the oldest one, silently.

    `num-cores` is what MetaSchedule asks for.
    """
    return Target({"kind": "llvm", "mcpu": llvm_get_system_cpu(), "num-cores": threads})


def compiled(module: tvm.IRModule, target: Target, pipeline: str = "default") -> Called:
    """The machine code of a module: takes TVM's tensors, or what DLPack takes for one."""
    code: Called = tvm.compile(module, target=target, tir_pipeline=pipeline)["main"]
    return code
