"""`build`: a scheduled TVM module to machine code for one chip."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import tvm
from tvm.ir import GlobalVar
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.target.codegen import llvm_lookup_intrinsic_id
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_flag
from mfmadsl.backend.argument import (
    arguments_of,
    arrivals_of,
    requirements_of,
    symbols_of,
    workspaces_of,
)
from mfmadsl.backend.error import CodegenError
from mfmadsl.backend.gpu.described import described_instructions, described_reads
from mfmadsl.backend.gpu.kernel import CODE_OBJECT_VERSIONS, Kernel, check_code_object_version
from mfmadsl.backend.gpu.llvm import (
    TRIPLE,
    MachineCode,
    align_lds,
    asks_for_options,
    emit,
    fence_barriers,
    loses_address_space,
    pass_bfloat,
    prepare_process,
    set_code_object_version,
    set_group_size,
)
from mfmadsl.backend.gpu.lower import (
    LoweredKernel,
    device_module,
    in_order,
    parameter_names,
    split,
    symbol_of,
)
from mfmadsl.backend.gpu.names import named_apart
from mfmadsl.backend.isolate import ProcessEndedError, run_isolated, run_side_by_side
from mfmadsl.emulator.text.metadata import read_metadata
from mfmadsl.emulator.text.registers import Registers, used_registers
from mfmadsl.error import SlowLoopWarning
from mfmadsl.model import DEFAULT_ARCH, Architecture, architecture
from mfmadsl.passes import LoweringError
from mfmadsl.passes.kernel.cases import marked_cases
from mfmadsl.passes.kernel.factor import with_factors
from mfmadsl.passes.kernel.last_workgroup import counted
from mfmadsl.passes.main_loop.analysis.register_use import RegisterUse
from mfmadsl.passes.tir.annotation import REMARK
from mfmadsl.prim_func import prim_func
from mfmadsl.runtime import without_devices
from mfmadsl.tvm_refusal import tvm_refusal

_ADDRESS = re.compile(r'!"0x[0-9a-f]+')
_DECLARED = re.compile(r"^declare [^@\n]*@([\w.$]+)\(", re.MULTILINE)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Emitted:
    """A kernel's machine code, with the LLVM IR that it is made of."""

    launch: LoweredKernel
    llvm_ir: str
    code: MachineCode
    registers: Registers


def build(
    mod: PrimFunc | tvm.IRModule | Schedule, arch: str = DEFAULT_ARCH, explain: bool = False,
    code_object_version: int = CODE_OBJECT_VERSIONS[0],
) -> Kernel:  # fmt: skip
    """Generate machine code for a scheduled kernel; no GPU is needed.

    `mod` is a Schedule, a PrimFunc, or an IRModule with one function or with `main`; `arch` is one
    of gfx908, gfx90a, gfx942, gfx950, or a product that has one, such as MI300X. The kernel's
    arguments stand in the order of the function's parameters; of those with one name, the second is
    called `x_1`. What the function is called, its `global_symbol`, the kernel is called with
    `_kernel` behind it. Version 5 of AMD's code objects is what any ROCm of today loads; the other
    one is 6.

    If the module becomes several kernels, those after the first are `next` to each other. A loop
    annotated for a pass that does not understand it is left as it is, right and slow; the kernel's
    `remarks` say why, and so does a SlowLoopWarning, or with `explain` a line on standard error;
    and so is told what a schedule converts because the chip has no instruction for it.

    Raises ArgumentError for an unknown chip or version, LoweringError for a module that is no
    kernel, exceeds the chip's threads or LDS, or calls a function that no GPU has, and
    CodegenError, with LLVM's message, where LLVM ends its process. Yours lives on.
    """
    chip = architecture(arch)
    function, arrivals = counted(named_apart(_function(mod)))
    check_flag("explain", explain)
    version = check_code_object_version(code_object_version)
    arguments = arguments_of(function)
    workspaces = (*workspaces_of(function), *arrivals_of(arrivals))
    described_instructions(chip.name), described_reads(chip.name)  # a child's would be lost
    try:
        emitted = run_isolated(lambda: _emit(function, chip, version))
    except ProcessEndedError as error:
        raise CodegenError(f"{chip.name}: {error}") from None
    given = (str(function.attrs[REMARK]),) if function.attrs and REMARK in function.attrs else ()
    kernel = None
    for each in reversed(emitted):
        launch, code = each.launch, each.code
        remarks = (*given, *launch.remarks) if each is emitted[0] else launch.remarks
        kernel = Kernel(
            symbol=launch.symbol,
            arch=chip.name,
            llvm_ir=each.llvm_ir,
            assembly=code.assembly,
            optimized=code.optimized,
            arguments=arguments,
            extents=launch.grid,
            block=launch.block,
            lds_bytes=launch.lds_bytes,
            registers=each.registers,
            parameters=launch.parameters,
            workspaces=workspaces,
            symbols=symbols_of(function),
            next=kernel,
            remarks=remarks,
            spans=launch.spans,
            condition=launch.condition,
            requirements=requirements_of(function),
            code_object_version=version,
        )
        for remark in remarks:
            if explain:
                print(f"{launch.symbol}: {remark}", file=sys.stderr)
            else:
                warnings.warn(f"{launch.symbol}: {remark}", SlowLoopWarning, stacklevel=2)
    assert kernel is not None
    return kernel


def _function(mod: PrimFunc | tvm.IRModule | Schedule) -> PrimFunc:
    given = mod.mod if isinstance(mod, Schedule) else mod
    return marked_cases(with_factors(prim_func("mod", given, LoweringError)))


def _emit(function: PrimFunc, chip: Architecture, version: int) -> list[Emitted]:
    with tvm_refusal(f"function `{symbol_of(function)}`", LoweringError):
        names, parts = parameter_names(function), split(function, chip)
        kernels = [(name, in_order(kernel, names)) for name, kernel in parts.kernels]
        conditions = parts.conditions
    return [
        replace(each, launch=replace(each.launch, condition=conditions.get(each.launch.symbol, 1)))
        for each in emit_kernels(kernels, chip, version)
    ]


def emit_kernels(
    kernels: Sequence[tuple[GlobalVar, PrimFunc]], chip: Architecture, version: int
) -> list[Emitted]:
    """Machine code for the kernels of `split`, in code objects of that version.

    It may end the process, or leave traces in it: call it isolated. Raises as `build` does.
    """
    # By LLVM's name of the target, TVM's builder for LLVM finds the code generator for AMD's GPUs.
    # TVM's builder for ROCm would emit machine code, too, for a linker that it wants to call.
    generator = tvm.get_global_func("tvm.codegen.llvm.target_rocm")
    tvm.register_global_func("tvm.codegen.llvm.target_amdgcn", generator, override=True)
    called = ", ".join(f"`{name.name_hint}`" for name, _ in kernels)
    with without_devices(), tvm_refusal(called, LoweringError):
        found = _each([partial(_best, *each, chip, version) for each in kernels])
        # LLVM's options are those of all modules of a code object.
        asking = [each.llvm_ir for each in found if asks_for_options(each.llvm_ir)]
        if not asking or len(asking) == len(found):
            return found
        return _each([partial(_best, *each, chip, version, asking) for each in kernels])


def _each(functions: Sequence[Callable[[], Result]]) -> list[Result]:
    """What each function gives; several are computed at once."""
    return [functions[0]()] if len(functions) == 1 else run_side_by_side(functions)


def _best(
    name: GlobalVar, kernel: PrimFunc, chip: Architecture, version: int, others: Sequence[str] = ()
) -> Emitted:
    """The machine code of a kernel, in a code object with other modules of LLVM IR; how many
    registers it takes LLVM alone can tell."""
    ir, launch = _lowered(name, kernel, chip, version)
    prepare_process([ir, *others])
    found, tried = _emitted(ir, launch, chip), ir
    for register_use in (RegisterUse.ONE_AHEAD, RegisterUse.LEAN):
        if not _spilled_to_memory(found):
            break
        other, launch = _lowered(name, kernel, chip, version, register_use)
        if other != tried:
            found = min(found, _emitted(other, launch, chip), key=_spilled_to_memory)
            tried = other
    return found


def _spilled_to_memory(kernel: Emitted) -> int:
    """Registers; scalar ones that go to lanes of others cost little."""
    return kernel.registers.spilled if kernel.registers.scratch_bytes else 0


def _lowered(
    name: GlobalVar, kernel: PrimFunc, chip: Architecture, version: int,
    register_use: RegisterUse = RegisterUse.TWO_AHEAD,
) -> tuple[str, LoweredKernel]:  # fmt: skip
    """A kernel as LLVM IR, and its launch."""
    device, launch = device_module(name, kernel, chip, register_use)
    _check_limits(launch, chip)
    ir = _generate(device, chip)
    if loses_address_space(ir):
        raise LoweringError(
            "a buffer in shared memory is a view of another one, which TVM 0.27 takes for global "
            "memory: give each its own allocation"
        )
    ir = fence_barriers(set_group_size(pass_bfloat(ir), launch.threads))
    if not launch.places_lds:
        ir = align_lds(ir)
    _check_calls(ir)
    return set_code_object_version(ir, version), launch


def _emitted(ir: str, launch: LoweredKernel, chip: Architecture) -> Emitted:
    code = emit(ir, launch.symbol, chip.name)
    # With the room between buffers, each of which is aligned.
    counts = read_metadata(code.assembly, launch.symbol).counts
    launch = replace(launch, lds_bytes=counts["group_segment_fixed_size"])
    registers = used_registers(code.assembly, launch.symbol, counts, {})
    return Emitted(launch, ir, code, registers)


def _check_calls(ir: str) -> None:
    """Nobody links a kernel: what it calls is LLVM's, or comes with it."""
    for name in _DECLARED.findall(ir):
        if name.startswith("llvm."):
            if not llvm_lookup_intrinsic_id(name):
                raise LoweringError(f"LLVM has no intrinsic `{name}`: no code can be made of it")
        elif not name.startswith("mfmadsl."):
            raise LoweringError(f"the kernel calls `{name}`, a function that the GPU does not have")


def _generate(device: tvm.IRModule, chip: Architecture) -> str:
    target = Target({"kind": "llvm", "mcpu": chip.name, "mtriple": TRIPLE})
    try:
        module = tvm.get_global_func("target.build.llvm")(device, target)
    except tvm.error.InternalError as error:
        raise CodegenError(f"{chip.name}: {_reason(str(error))}") from None
    return _named_in_order(str(module.inspect_source("ll")))


def _named_in_order(ir: str) -> str:
    """LLVM IR in which memory that does not overlap is not named by where TVM has the buffer."""
    names: dict[str, str] = {}
    return _ADDRESS.sub(lambda m: names.setdefault(m[0], f'!"buffer {len(names)}'), ir)


def _reason(message: str) -> str:
    """What LLVM's verifier objects to, of all that TVM says."""
    _, _, errors = message.partition("following errors:")
    lines = [" ".join(line.split()) for line in errors.splitlines() if line.strip()]
    said = [line for line in lines if "load" not in line.split()[:3]]
    return "LLVM refuses the module: " + " ".join(said[:2] or [message.splitlines()[0]])


def _check_limits(launch: LoweredKernel, chip: Architecture) -> None:
    if launch.threads > chip.max_threads:
        raise LoweringError(
            f"a block of {launch.threads} threads exceeds the {chip.max_threads} of {chip.name}"
        )
    if launch.lds_bytes > chip.lds_bytes:
        raise LoweringError(
            f"a block takes {launch.lds_bytes} bytes of LDS, more than the {chip.lds_bytes} "
            f"of {chip.name}"
        )
