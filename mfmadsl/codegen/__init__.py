"""Model to the text of a Python module."""

from mfmadsl.codegen.module import MARKER, module_text
from mfmadsl.codegen.write import write_modules

__all__ = [
    "MARKER",
    "module_text",
    "write_modules",
]
