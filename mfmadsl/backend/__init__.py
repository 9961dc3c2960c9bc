"""TVM module to LLVM IR, assembly and code object."""

from mfmadsl.backend.build import CodegenError, build
from mfmadsl.backend.instruction import Immediates, build_instruction
from mfmadsl.backend.kernel import Argument, Kernel
from mfmadsl.backend.linker import LinkError
from mfmadsl.emulator.text.registers import Registers
from mfmadsl.environment.linker import find_linker
from mfmadsl.passes import LoweringError

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
