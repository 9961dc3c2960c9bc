"""A generated module without a file: compiled in memory and imported."""

from __future__ import annotations

import linecache
import sys
from types import ModuleType

from mfmadsl.argument import check_type
from mfmadsl.codegen import module_text
from mfmadsl.language import find
from mfmadsl.model import Accelerator, Intrinsic

_PREFIX = "mfmadsl.generated."


def load_intrinsic(intrinsic: Intrinsic | Accelerator | str) -> ModuleType:
    """The module that `mfmadsl compile` would write for an entry, imported.

    A string names an entry of the library (ArgumentError if there is none). The module is made once
    for each intrinsic and found again in `sys.modules`. Raises ModuleError if there can be none.
    """
    spoken = "an Intrinsic, an Accelerator, or the name of an intrinsic"
    check_type("intrinsic", intrinsic, (Intrinsic, Accelerator, str), spoken)
    if isinstance(intrinsic, str):
        intrinsic = find(intrinsic)
    text = module_text(intrinsic)
    name = _PREFIX + intrinsic.name
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__dict__.get("__source__") == text:
        return loaded
    module = ModuleType(name)
    module.__file__ = f"<{name}>"
    module.__dict__["__source__"] = text
    # The TVMScript parser reads functions back through `inspect`, which asks linecache.
    lines = text.splitlines(keepends=True)
    linecache.cache[module.__file__] = (len(text), None, lines, module.__file__)
    sys.modules[name] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module
