"""What is known of an LLVM intrinsic that a `call` names."""

from __future__ import annotations

from mfmadsl.language.llvm import LLVM_READS, llvm_intrinsics
from mfmadsl.language.llvm_vector import LLVM_VECTORS
from mfmadsl.model import ARCHITECTURES

_SHOWN = 8


def calls_of(kind: str) -> list[str]:
    """The LLVM intrinsics that an entry of a kind may call."""
    known = {"intrinsic": llvm_intrinsics(), "read": LLVM_READS, "microkernel": LLVM_VECTORS}
    return sorted(known.get(kind, ()))


def call_summary(name: str) -> str | None:
    """Who has it and what it takes; None if it is none that entries call."""
    if matrix := llvm_intrinsics().get(name):
        lines = [f"LLVM 22 selects it on {', '.join(matrix.chips)}.", ""]
        lines += [
            f"- A `{a}`, B `{b}`, C `{c}` in each lane" for a, b, c in matrix.operands[:_SHOWN]
        ]
        if len(matrix.operands) > _SHOWN:
            lines.append(f"- and {len(matrix.operands) - _SHOWN} more overloads")
        return "\n".join(lines)
    if read := LLVM_READS.get(name):
        chips = ", ".join(a.name for a in ARCHITECTURES.values() if a.transposing_reads)
        return f"A lane gets {read.registers} elements of {read.bits} bits. LLVM 22: {chips}."
    if vector := LLVM_VECTORS.get(name):
        a, b, c = vector.types
        size = f"{vector.bits} bits{' a row of a tile register' if vector.tiles else ''}"
        features = " or ".join(" and ".join(f"`{f}`" for f in each) for each in vector.features)
        return f"A `{a}`, B `{b}`, C `{c}` in registers of {size}, with {features}."
    return None
