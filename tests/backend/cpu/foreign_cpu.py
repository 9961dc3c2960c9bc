"""Kernels for a CPU that this one is not: the very code, with what it lacks computed otherwise.

The LLVM IR of a kernel is what TVM made of it for that CPU, optimised. Calls of instructions that
this CPU may lack are replaced: dot products of bytes by LLVM IR of their pseudo code, instructions
of tile registers by calls of `TileRegisters`. LLVM makes of all the rest what this CPU can do.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy.typing as npt
import tvm_ffi
from tvm.libinfo import find_libtvm_runtime
from tvm_ffi.libinfo import find_libtvm_ffi

from mfmadsl import CpuKernel
from tests.backend.cpu.tile_registers import TileRegisters

_DECLARED = re.compile(r"^declare (.+?) @(llvm\.x86\.[\w.]+)\((.*)\).*$", re.MULTILINE)
_CPU = re.compile(r'"target-(cpu|features)"(="[^"]*")?')
_POINTERS = ("TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace", "TVMBackendParallelLaunch")
_KINDS = {"i8": ctypes.c_uint8, "ptr": ctypes.c_size_t, "i64": ctypes.c_int64}


def run_anywhere(kernel: CpuKernel, *arrays: npt.NDArray[Any]) -> None:
    """Call the kernel as it is if this CPU runs it, and as `run_elsewhere` does if not."""
    if kernel.run is None:
        run_elsewhere(kernel, *arrays)
    else:
        kernel(*arrays)


def run_elsewhere(kernel: CpuKernel, *arrays: npt.NDArray[Any]) -> None:
    """Call the kernel, made for any x86-64, with arrays. Raises what an instruction raises."""
    failures: list[Exception] = []
    callbacks: list[object] = []
    tiles = TileRegisters()
    names: dict[str, str] = {}

    def replaced(found: re.Match[str]) -> str:
        result, name, arguments = found.groups()
        names[name] = f"elsewhere.{id(tiles)}.{name.removeprefix('llvm.')}"
        if "vpdpbusd" in name:
            return _dot_product(names[name], result)
        types = [_KINDS[each.split()[0]] for each in arguments.split(", ") if each]
        callback = ctypes.CFUNCTYPE(None, *types)(_kept(tiles.instructions[name], failures))
        callbacks.append(callback)
        llvm.add_symbol(names[name], ctypes.cast(callback, ctypes.c_void_p).value)
        parameters = ", ".join(each.split()[0] for each in arguments.split(", ") if each)
        return f"declare {result} @{names[name]}({parameters})"

    text = _CPU.sub('"elsewhere"', _DECLARED.sub(replaced, kernel.llvm_ir))
    text = re.sub(r"^target triple = .*$", "", text, flags=re.MULTILINE)
    for name, own in names.items():
        text = text.replace(f"@{name}(", f"@{own}(")
    engine = _engine(text)
    address = engine.get_function_address(f"__tvm_ffi_{kernel.symbol}")
    run = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=engine)
    replace(kernel, run=run)(*arrays)
    if failures:
        raise failures[0]


def _kept(instruction: Callable[..., None], failures: list[Exception]) -> Callable[..., None]:
    """An exception would be lost in a callback of C."""

    def call(*arguments: int) -> None:
        try:
            instruction(*arguments)
        except Exception as error:
            failures.append(error)

    return call


def _engine(text: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for library in (find_libtvm_ffi(), find_libtvm_runtime()):
        llvm.load_library_permanently(str(library))
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    for name in _POINTERS:
        if f"@__{name} " in text:
            pointer = ctypes.c_void_p.from_address(engine.get_global_value_address(f"__{name}"))
            pointer.value = llvm.address_of_symbol(name)
    return engine


def _dot_product(name: str, result: str) -> str:
    """VPDPBUSD: of four bytes without a sign times four with one the sum, added; it wraps."""
    lanes = int(result.strip("<>").split()[0])
    wide = f"<{4 * lanes} x i32>"
    lines = [
        f"define internal {result} @{name}({result} %c, <{4 * lanes} x i8> %a, "
        f"<{4 * lanes} x i8> %b) {{",
        f"  %u = zext <{4 * lanes} x i8> %a to {wide}",
        f"  %s = sext <{4 * lanes} x i8> %b to {wide}",
        f"  %p = mul {wide} %u, %s",
    ]
    total = "%c"
    for byte in range(4):
        places = ", ".join(f"i32 {4 * lane + byte}" for lane in range(lanes))
        lines.append(
            f"  %p{byte} = shufflevector {wide} %p, {wide} poison, <{lanes} x i32> <{places}>"
        )
        lines.append(f"  %t{byte} = add {result} {total}, %p{byte}")
        total = f"%t{byte}"
    return "\n".join([*lines, f"  ret {result} {total}", "}"])
