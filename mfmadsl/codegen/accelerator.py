"""An accelerator's module: its loop nest as text."""

from __future__ import annotations

from typing import NamedTuple

from mfmadsl.codegen.names import named
from mfmadsl.codegen.render import rendered
from mfmadsl.model import Accelerator


def accelerator_text(accelerator: Accelerator) -> str:
    """The source of its module."""
    extents = [("i", accelerator.m), ("j", accelerator.n), ("k", accelerator.k)]
    return rendered(
        "accelerator.py.jinja",
        named(accelerator.name, [("COMPUTE", ["compute"])]),
        ["M", "N", "K", "A_DTYPE", "B_DTYPE", "OUT_DTYPE", "A_SCOPE", "B_SCOPE", "C_SCOPE",
         "FUNCTION", "NAMES", "compute", "register"],
        accelerator=accelerator,
        a=accelerator.a,
        b=accelerator.b,
        c=accelerator.c,
        product=_nest(extents),
    )  # fmt: skip


class _Nest(NamedTuple):
    """A loop nest over a tile, as text."""

    names: str
    extents: str
    values: str
    kinds: str
    kept: str


def _nest(loops: list[tuple[str, int]]) -> _Nest:
    """Loops over all axes, with a block that has none for an axis of one value.

    TVM drops those from a block, but not their loops, before it compares with a description.
    """
    kept = [name for name, extent in loops if extent > 1]
    return _Nest(
        names=", ".join(name for name, _ in loops),
        extents=", ".join(str(extent) for _, extent in loops),
        values=", ".join(f"v{name}" for name in kept),
        kinds="".join("R" if name == "k" else "S" for name in kept),
        kept=", ".join(kept),
    )
