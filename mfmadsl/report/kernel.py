"""A kernel's launch facts as JSON and as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mfmadsl.report.registers import registers_json, registers_line

if TYPE_CHECKING:
    from mfmadsl.target import Kernel


def kernel_json(kernel: Kernel, files: list[str]) -> dict[str, Any]:
    """All that a launcher needs; `files` are those written beside."""
    return {
        "symbol": kernel.symbol,
        "arch": kernel.arch,
        "arguments": [
            {"name": a.name, "dtype": a.dtype, "shape": list(a.shape)} for a in kernel.arguments
        ],
        "grid": [e if isinstance(e, int) else str(e) for e in kernel.extents],
        "block": list(kernel.block),
        "lds_bytes": kernel.lds_bytes,
        **registers_json(kernel.registers),
        "files": files,
    }


def kernel_summary(kernel: Kernel) -> str:
    """The same facts for people."""
    arguments = ", ".join(
        f"{a.name}: {a.dtype}[{', '.join(map(str, a.shape))}]" for a in kernel.arguments
    )
    scratch = kernel.registers.scratch_bytes
    return "\n".join(
        [
            f"kernel     {kernel.symbol}({arguments}) for {kernel.arch}",
            f"launch     grid {_extents(kernel.extents)}, block {_extents(kernel.block)}",
            f"LDS        {kernel.lds_bytes} bytes",
            f"registers  {registers_line(kernel.registers)}",
            *([f"scratch    {scratch} bytes a lane: the tile is too large"] if scratch else []),
        ]
    )


def _extents(extents: Sequence[object]) -> str:
    return " x ".join(map(str, extents))
