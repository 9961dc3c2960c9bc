"""TVM module to LLVM IR, assembly and code object."""

from mfmadsl.emulator.registers import Registers
from mfmadsl.passes import LoweringError
from mfmadsl.target.build import CodegenError, build
from mfmadsl.target.instruction import Immediates, build_instruction
from mfmadsl.target.kernel import Argument, Kernel
from mfmadsl.target.linker import LinkError, find_linker

__all__ = [
    "Argument",
    "CodegenError",
    "Immediates",
    "Kernel",
    "LinkError",
    "LoweringError",
    "Registers",
    "build",
    "build_instruction",
    "find_linker",
]
