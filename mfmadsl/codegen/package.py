"""The `__init__.py` of a folder of generated modules."""

from __future__ import annotations

from collections.abc import Sequence

from mfmadsl.codegen.render import MARKER

_TEXT = '''"""Matrix-core intrinsics for TVM: each module is imported when it is first used.

{marker}
"""

# ruff: noqa: I001, RUF022 (names are in the order of their letters)

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING
{imports}
__all__ = [
{names}]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    return import_module(f"{{__name__}}.{{name}}")


__dir__ = __all__.copy
'''


def package_text(modules: Sequence[str]) -> str:
    """The source of a package that imports these modules, each when it is first used."""
    imports = "".join(f"    from . import {name} as {name}\n" for name in modules)
    return _TEXT.format(
        marker=MARKER,
        imports=f"\nif TYPE_CHECKING:\n{imports}" if imports else "",
        names="".join(f'    "{name}",\n' for name in modules),
    )
