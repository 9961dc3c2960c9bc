"""Model to the text of a Python module."""

from mfmadsl.codegen.module import MARKER, module_text
from mfmadsl.codegen.write import OutputError, write_file, write_modules

__all__ = [
    "MARKER",
    "OutputError",
    "module_text",
    "write_file",
    "write_modules",
]
