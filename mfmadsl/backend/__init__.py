"""TVM module to LLVM IR, assembly and code object."""

from mfmadsl.backend.argument import Argument
from mfmadsl.backend.error import CodegenError
from mfmadsl.backend.gpu.build import build
from mfmadsl.backend.gpu.instruction import Immediates, build_instruction
from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.backend.gpu.linker import LinkError
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
