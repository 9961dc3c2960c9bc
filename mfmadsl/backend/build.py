"""`build`: a scheduled TVM module to machine code for one chip."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace

import tvm
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.target.codegen import llvm_lookup_intrinsic_id
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_flag
from mfmadsl.backend.isolate import ProcessEndedError, run_isolated
from mfmadsl.backend.kernel import Kernel
from mfmadsl.backend.llvm import (
    TRIPLE,
    MachineCode,
    align_lds,
    emit,
    fence_barriers,
    loses_address_space,
    pass_bfloat,
    set_group_size,
)
from mfmadsl.backend.lower import (
    Launch,
    arguments_of,
    lower,
    symbols_of,
    workspaces_of,
)
from mfmadsl.backend.names import named_apart
from mfmadsl.emulator.text.metadata import read_metadata
from mfmadsl.emulator.text.registers import Registers, used_registers
from mfmadsl.error import MfmadslError
from mfmadsl.language import reads
from mfmadsl.model import DEFAULT_ARCH, Architecture, architecture
from mfmadsl.passes import LoweringError
from mfmadsl.prim_func import prim_func
from mfmadsl.tvm_refusal import tvm_refusal

_DECLARED = re.compile(r"^declare [^@\n]*@([\w.$]+)\(", re.MULTILINE)


class CodegenError(MfmadslError, RuntimeError):
    """LLVM refused the kernel; the message is LLVM's."""


@dataclass(frozen=True)
class _Emitted:
    launch: Launch
    llvm_ir: str
    code: MachineCode
    registers: Registers


def build(
    mod: PrimFunc | tvm.IRModule | Schedule, arch: str = DEFAULT_ARCH, explain: bool = False
) -> Kernel:
    """Generate machine code for a scheduled kernel; no GPU is needed.

    `mod` is a Schedule, a PrimFunc, or an IRModule with one function or with `main`; `arch` is one
    of gfx908, gfx90a, gfx942, gfx950. The kernel's arguments stand in the order of the function's
    parameters; of those with one name, the second is called `x_1`.

    If the module becomes several kernels, those after the first are `next` to each other. A loop
    annotated for a pass that does not understand it is left as it is, and right; the kernel's
    `remarks` say why, and with `explain` they are printed to standard error.

    Raises ArgumentError for an unknown chip, LoweringError for a module that is no kernel, exceeds
    the chip's threads or LDS, or calls a function that no GPU has, and CodegenError, with LLVM's
    message, where LLVM ends its process. Yours lives on.
    """
    chip = architecture(arch)
    function = named_apart(_function(mod))
    check_flag("explain", explain)
    arguments, workspaces = arguments_of(function), workspaces_of(function)
    reads()  # what the child reads of files is lost with it
    try:
        emitted = run_isolated(lambda: _emit(function, chip))
    except ProcessEndedError as error:
        raise CodegenError(f"{arch}: {error}") from None
    kernel = None
    for each in reversed(emitted):
        launch, code = each.launch, each.code
        kernel = Kernel(
            symbol=launch.symbol,
            arch=arch,
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
            remarks=launch.remarks,
            spans=launch.spans,
        )
        for remark in launch.remarks if explain else ():
            print(f"{launch.symbol}: {remark}", file=sys.stderr)
    assert kernel is not None
    return kernel


def _function(mod: PrimFunc | tvm.IRModule | Schedule) -> PrimFunc:
    return prim_func("mod", mod.mod if isinstance(mod, Schedule) else mod, LoweringError)


def _emit(function: PrimFunc, chip: Architecture) -> list[_Emitted]:
    """All that may end the process, or leave traces in it: runs in the child."""
    # By LLVM's name of the target, TVM's builder for LLVM finds the code generator for AMD's GPUs.
    # TVM's builder for ROCm would emit machine code, too, for a linker that it wants to call.
    generator = tvm.get_global_func("tvm.codegen.llvm.target_rocm")
    tvm.register_global_func("tvm.codegen.llvm.target_amdgcn", generator, override=True)
    with tvm_refusal("mod", LoweringError):
        kernels = [_emit_kernel(*each, chip) for each in lower(function, chip)]
        if not any(map(_spilled_to_memory, kernels)):
            return kernels
        # How many registers it takes LLVM alone can tell.
        others = [_emit_kernel(*each, chip) for each in lower(function, chip, lean=True)]
        pairs = zip(kernels, others, strict=True)
        return [min(pair, key=_spilled_to_memory) for pair in pairs]


def _spilled_to_memory(kernel: _Emitted) -> int:
    """Registers; scalar ones that go to lanes of others cost little."""
    return kernel.registers.spilled if kernel.registers.scratch_bytes else 0


def _emit_kernel(device: tvm.IRModule, launch: Launch, chip: Architecture) -> _Emitted:
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
    code = emit(ir, launch.symbol, chip.name)
    # With the room between buffers, each of which is aligned.
    counts = read_metadata(code.assembly, launch.symbol).counts
    launch = replace(launch, lds_bytes=counts["group_segment_fixed_size"])
    registers = used_registers(code.assembly, launch.symbol, counts, {})
    return _Emitted(launch, ir, code, registers)


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
    return str(module.inspect_source("ll"))


def _reason(message: str) -> str:
    """What LLVM's verifier objects to, of all that TVM says."""
    _, _, errors = message.partition("following errors:")
    lines = [" ".join(line.split()) for line in errors.splitlines() if line.strip()]
    said = [line for line in lines if "load" not in line.split()[:3]]
    return "LLVM refuses the module: " + " ".join(said[:2] or [message.splitlines()[0]])


def _check_limits(launch: Launch, chip: Architecture) -> None:
    if launch.threads > chip.max_threads:
        raise LoweringError(
            f"a block of {launch.threads} threads exceeds the {chip.max_threads} of {chip.name}"
        )
    if launch.lds_bytes > chip.lds_bytes:
        raise LoweringError(
            f"a block takes {launch.lds_bytes} bytes of LDS, more than the {chip.lds_bytes} "
            f"of {chip.name}"
        )
