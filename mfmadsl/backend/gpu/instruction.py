"""A kernel of one matrix instruction, to see what LLVM and the emulator make of an entry."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mfmadsl.backend.argument import Argument
from mfmadsl.backend.error import CodegenError
from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.backend.gpu.llvm import emit
from mfmadsl.backend.isolate import ProcessEndedError, run_isolated
from mfmadsl.emulator.text.registers import registers_of
from mfmadsl.error import ArgumentError
from mfmadsl.model import (
    Intrinsic,
    Modifiers,
    Operand,
    architecture,
    check_modifiers,
)
from mfmadsl.model.signature import formats, overload, register_type, trailing
from mfmadsl.passes import LoweringError

_SYMBOL = "instruction"


@dataclass(frozen=True)
class Immediates:
    """The constants in an instruction; 0 is the plain one.

    `cbsz` and `abid` broadcast blocks of A or choose a sparse index, `blgp` rearranges the lanes
    of B or, for f64 on gfx942 and newer, negates A (1), B (2) and C (4). `byte_a` and `byte_b` say
    which byte of the scale registers is used.
    """

    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    byte_a: int = 0
    byte_b: int = 0


PLAIN = Immediates()


def build_instruction(intrinsic: Intrinsic, arch: str, immediates: Immediates = PLAIN) -> Kernel:
    """A kernel that loads an instruction's registers, runs it once, and stores the result over C.

    Its arguments are the operands A, B, C, then the index or the two scales: arrays of 32-bit
    words of shape (lanes of a wave, registers). Raises LoweringError where the chip lacks the
    instruction, or the instruction a modifier.
    """
    chip = architecture(arch)
    arch = chip.name
    if arch not in intrinsic.chips:
        chips = ", ".join(intrinsic.chips)
        raise LoweringError(f"{arch} has no {intrinsic.name}: it is an instruction of {chips}")
    _check(intrinsic, arch, immediates)
    ir = instruction_ir(intrinsic, immediates)
    try:
        code = run_isolated(lambda: emit(ir, _SYMBOL, arch))
    except ProcessEndedError as error:
        raise CodegenError(f"{arch}: {error}") from None
    return Kernel(
        symbol=_SYMBOL,
        arch=arch,
        llvm_ir=ir,
        assembly=code.assembly,
        optimized=code.optimized,
        arguments=tuple(
            Argument(o.name, "uint32", (chip.wave_size, o.register_count))
            for o in intrinsic.operands.values()
        ),
        extents=(1, 1, 1),
        block=(chip.wave_size, 1, 1),
        lds_bytes=0,
        registers=registers_of(code.assembly, _SYMBOL),
    )


def _check(intrinsic: Intrinsic, arch: str, immediates: Immediates) -> None:
    """LLVM takes constants that an instruction has no room for, and drops them."""
    blgp = immediates.blgp
    if blgp and "neg" in intrinsic.modifiers:
        if not architecture(arch).negates:
            raise LoweringError(f"{intrinsic.name} negates nothing on {arch}")
        blgp = 0
    try:
        check_modifiers(intrinsic, Modifiers(immediates.cbsz, immediates.abid, blgp))
    except ArgumentError as error:
        raise LoweringError(str(error)) from None


def instruction_ir(intrinsic: Intrinsic, immediates: Immediates = PLAIN) -> str:
    """The LLVM IR of that kernel."""
    operands = list(intrinsic.operands.values())
    types = {o.name: str(register_type(intrinsic, o)) for o in operands}
    values = {o.name: f"{types[o.name]} %{o.name}" for o in operands}
    arguments = _arguments(intrinsic, values, immediates)
    # The declaration has the types alone: of "i32 %index" and "i32 0" alike it is "i32".
    declared = ", ".join(argument.rpartition(" ")[0] for argument in arguments)
    parameters = ", ".join(f"ptr addrspace(1) noalias %{o.name}_registers" for o in operands)
    call, result = overload(intrinsic), types["c"]
    lanes = intrinsic.wave_size
    lines = [
        f"define amdgpu_kernel void @{_SYMBOL}({parameters}) #0 {{",
        "  %lane = call i32 @llvm.amdgcn.workitem.id.x()",
        *(line for o in operands for line in _load(o, types[o.name])),
        f"  %d = call {result} @{call}({', '.join(arguments)})",
        f"  store {result} %d, ptr addrspace(1) %c_address, align 4",
        "  ret void",
        "}",
        "declare i32 @llvm.amdgcn.workitem.id.x()",
        f"declare {result} @{call}({declared})",
        f'attributes #0 = {{ "amdgpu-flat-work-group-size"="{lanes},{lanes}" }}',
    ]
    return "\n".join(lines) + "\n"


def _load(operand: Operand, dtype: str) -> list[str]:
    name = operand.name
    return [
        f"  %{name}_address = getelementptr [{operand.register_count} x i32], "
        f"ptr addrspace(1) %{name}_registers, i32 %lane",
        f"  %{name} = load {dtype}, ptr addrspace(1) %{name}_address, align 4",
    ]


def _arguments(intrinsic: Intrinsic, values: dict[str, str], immediates: Immediates) -> list[str]:
    """What the intrinsic is called with, after A, B and C what its kind takes."""
    numbers = asdict(immediates)
    if intrinsic.scales:
        numbers["format_a"], numbers["format_b"] = formats(intrinsic)
    known = {**values, **{name: f"i32 {number}" for name, number in numbers.items()}}
    return [known[name] for name in ("a", "b", "c", *trailing(intrinsic))]
