"""Model to the text of a Python module."""

from mfmadsl.codegen.limits import ModuleError
from mfmadsl.codegen.module import module_name, module_text
from mfmadsl.codegen.render import MARKER
from mfmadsl.codegen.runtime import RUNTIME, runtime_texts
from mfmadsl.codegen.write import write_modules

__all__ = [
    "MARKER",
    "RUNTIME",
    "ModuleError",
    "module_name",
    "module_text",
    "runtime_texts",
    "write_modules",
]
