"""`build_for_cpu`: a scheduled TVM module to a function of this machine's CPU, or to its code."""

from __future__ import annotations

import ctypes
import re

import tvm
from tvm.ir import Call
from tvm.s_tir import SBlock, Schedule
from tvm.target import Target
from tvm.tirx import BufferStore, PrimFunc

from mfmadsl.argument import check_type
from mfmadsl.backend.argument import arguments_of, symbols_of
from mfmadsl.backend.cpu.kernel import CpuKernel
from mfmadsl.backend.cpu.pipeline import CPU_PIPELINE
from mfmadsl.backend.error import CodegenError
from mfmadsl.backend.isolate import ProcessEndedError, run_isolated
from mfmadsl.host.cpu import (
    cpu_features,
    cpu_target,
    features_of,
    host_cpu,
    host_features,
)
from mfmadsl.host.tile_permission import may_use_tiles
from mfmadsl.model import FEATURES, Cpu
from mfmadsl.model.cpu import llvm_feature
from mfmadsl.passes import LoweringError
from mfmadsl.passes.tir.expression import name_of
from mfmadsl.passes.tir.walk import walk
from mfmadsl.prim_func import prim_func
from mfmadsl.tvm_refusal import tvm_refusal

_ADDRESS = re.compile(r'!"0x[0-9a-f]+')


def build_for_cpu(mod: PrimFunc | tvm.IRModule | Schedule, cpu: Cpu | None = None) -> CpuKernel:
    """Generate machine code for a CPU, this machine's if none is given.

    `mod` is a Schedule, a PrimFunc, or an IRModule with one function or with `main`. What is made
    for another CPU can be looked at, but runs only if this one has all that it has.

    Raises LoweringError for a function that TVM cannot lower, or that calls one that is not there,
    and CodegenError, with LLVM's message, where LLVM ends its process. Yours lives on.
    """
    function = prim_func("mod", mod.mod if isinstance(mod, Schedule) else mod, LoweringError)
    cpu = host_cpu() if cpu is None else cpu
    check_type("cpu", cpu, Cpu, "a Cpu, as `mfmadsl.model.cpu.cpu(name)` gives it")
    arguments = arguments_of(function)
    if symbols := symbols_of(function):
        raise LoweringError(f"mod: extent `{symbols[0].name}` is a symbol: give it a number")
    _check_calls(function)
    symbol = str(function.attrs.get("global_symbol", "main")) if function.attrs else "main"
    module = tvm.IRModule({symbol: function.with_attr("global_symbol", symbol)})
    target = cpu_target(cpu)
    try:
        # LLVM answers an instruction that the CPU lacks by ending the process.
        llvm_ir, assembly = run_isolated(lambda: _texts(module, target))
    except ProcessEndedError as error:
        raise CodegenError(f"{cpu.name}: {error}") from None
    runs = _runs_here(target) and ("ldtilecfg" not in assembly or may_use_tiles())
    run = _compiled(module, target)[symbol] if runs else None
    outputs = _written(function)
    return CpuKernel(symbol, cpu.name, llvm_ir, assembly, arguments, outputs, run)


def _compiled(module: tvm.IRModule, target: Target) -> tvm.runtime.Executable:
    with tvm_refusal("mod", LoweringError):
        return tvm.compile(module, target=target, tir_pipeline=CPU_PIPELINE)


def _texts(module: tvm.IRModule, target: Target) -> tuple[str, str]:
    code = _compiled(module, target).mod
    return _numbered(str(code.inspect_source("ll"))), str(code.inspect_source("s"))


def _numbered(llvm_ir: str) -> str:
    """TVM calls its classes of aliases by the addresses of buffers, which differ in each run."""
    names: dict[str, str] = {}
    return _ADDRESS.sub(lambda found: names.setdefault(found[0], f'!"buffer.{len(names)}'), llvm_ir)


def _runs_here(target: Target) -> bool:
    """Whether this CPU has all instructions that LLVM may use for the target.

    It may have more than what it is called by, which stands in the target for it.
    """
    lacking = features_of(target) - features_of(cpu_target())
    lacking -= {each for each, there in host_features().items() if there}
    lacking |= features_of(target) & (set(map(llvm_feature, FEATURES)) - cpu_features(host_cpu()))
    return not lacking


def _check_calls(function: PrimFunc) -> None:
    """Refuse a call of what is not there: to look for it would end the process."""
    here = ctypes.CDLL(None)
    calls: list[Call] = []
    walk(function.body, (Call, calls.append))
    for call in calls:
        if name_of(call) in ("call_extern", "call_pure_extern"):
            name = getattr(call.args[0], "value", "")
            if not hasattr(here, name):
                raise LoweringError(
                    f"mod: calls `{name}`, which no library of this process has: load it with"
                    " ctypes.CDLL(..., mode=ctypes.RTLD_GLOBAL) first"
                )


def _written(function: PrimFunc) -> frozenset[str]:
    """The arguments that the function writes."""
    stores: list[BufferStore] = []
    blocks: list[SBlock] = []
    walk(function.body, (BufferStore, stores.append))
    walk(function.body, (SBlock, blocks.append))
    written = [store.buffer for store in stores]
    written += [region.source for block in blocks for region in block.writes]
    return frozenset(
        argument.name
        for argument in function.params
        if any(argument.same_as(buffer) for buffer in written)
    )
