"""TVM module to LLVM IR, assembly and code object."""

from mfmadsl.target.build import CodegenError, build
from mfmadsl.target.kernel import Argument, Kernel, Registers
from mfmadsl.target.linker import LinkError, find_linker
from mfmadsl.target.lower import LoweringError

__all__ = [
    "Argument",
    "CodegenError",
    "Kernel",
    "LinkError",
    "LoweringError",
    "Registers",
    "build",
    "find_linker",
]
