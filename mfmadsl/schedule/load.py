"""A generated module without a file: compiled in memory and imported."""

from __future__ import annotations

import linecache
import sys
from types import ModuleType

from mfmadsl.argument import check_type
from mfmadsl.codegen import module_name, module_text
from mfmadsl.language import find, microkernels
from mfmadsl.model import Accelerator, Intrinsic, Microkernel

_PACKAGE = "mfmadsl.generated"
"""The package of the runtime, which modules find beside themselves."""


def load_intrinsic(
    intrinsic: Intrinsic | Accelerator | Microkernel | str, k_pack: int = 1
) -> ModuleType:
    """The module that `mfmadsl compile --k-pack` would write for an entry, imported.

    A string names an entry of the library (ArgumentError if there is none). With `k_pack`, it is
    the module of the tile of so many instructions, whose K is `k_pack` times that of one
    (ArgumentError if they make no tile). The module is made once for each intrinsic and `k_pack`,
    and found again in `sys.modules`. Raises ModuleError if there can be none.
    """
    spoken = "an Intrinsic, a Microkernel, an Accelerator, or a name of the library"
    check_type("intrinsic", intrinsic, (Intrinsic, Accelerator, Microkernel, str), spoken)
    if isinstance(intrinsic, str):
        intrinsic = microkernels().get(intrinsic) or find(intrinsic)
    text = module_text(intrinsic, k_pack)
    name = f"{_PACKAGE}.{module_name(intrinsic, k_pack)}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__dict__.get("__source__") == text:
        return loaded
    module = ModuleType(name)
    module.__file__, module.__package__ = f"<{name}>", _PACKAGE
    module.__dict__["__source__"] = text
    # The TVMScript parser reads functions back through `inspect`, which asks linecache.
    lines = text.splitlines(keepends=True)
    linecache.cache[module.__file__] = (len(text), None, lines, module.__file__)
    sys.modules[name] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module
