"""A kernel's launch facts as JSON and as lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mfmadsl.report.registers import registers_json, registers_line

if TYPE_CHECKING:
    from mfmadsl.backend import Argument, Kernel


def kernel_json(kernel: Kernel, files: Sequence[list[str]]) -> dict[str, Any]:
    """All that a launcher needs; `files` are those written beside, of each launch."""
    launches = [_launch(each, own) for each, own in zip(kernel.chain(), files, strict=True)]
    following = None
    for launch in reversed(launches[1:]):
        following = {**launch, "next": following}
    return {
        **launches[0],
        "arch": kernel.arch,
        "code_object_version": kernel.code_object_version,
        "arguments": arguments_json(kernel.arguments),
        "workspaces": arguments_json(kernel.workspaces),
        "symbols": [{"name": s.name, "dtype": s.dtype} for s in kernel.symbols],
        "next": following,
    }


def _launch(kernel: Kernel, files: list[str]) -> dict[str, Any]:
    return {
        "symbol": kernel.symbol,
        "parameters": _parameters(kernel),
        "kernel_arguments": _segment(kernel),
        "grid": _numbers(kernel.extents),
        "block": list(kernel.block),
        "lds_bytes": kernel.lds_bytes,
        **registers_json(kernel.registers),
        "files": files,
    }


def _parameters(kernel: Kernel) -> list[str]:
    return list(kernel.parameters) or [a.name for a in kernel.arguments]


def _segment(kernel: Kernel) -> list[dict[str, Any]]:
    """The kernel argument segment: where in it each parameter lies, in bytes, and what it is;
    behind them come those that the runtime fills in, which are none of the caller's. Nothing is
    told of a kernel whose text has no metadata."""
    from mfmadsl.emulator.text.metadata import passed, read_metadata  # YAML; who lists needs none

    taken = passed(read_metadata(kernel.assembly, kernel.symbol).arguments)
    return [
        {"name": name, "offset": a.offset, "bytes": a.size, "kind": a.kind}
        for name, a in zip(_parameters(kernel) if taken else (), taken, strict=True)
    ]


def arguments_json(
    arguments: Iterable[Argument], values: Mapping[str, str] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Arrays, with the `values` of some by name, as `argument_text` reads them behind a shape."""
    return [
        {
            "name": a.name, "dtype": a.dtype, "shape": _numbers(a.shape),
            **({"values": values[a.name]} if a.name in values else {}),
            **({"zero": True} if a.zero else {}),
        }
        for a in arguments
    ]  # fmt: skip


def _numbers(extents: Iterable[Any]) -> list[int | str]:
    """Extents that are known at run time only become formulas."""
    return [e if isinstance(e, int) else str(e) for e in extents]


def kernel_summary(kernel: Kernel) -> str:
    """What a kernel is and takes, for people."""
    arguments = ", ".join(
        f"{a.name}: {a.dtype}[{', '.join(map(str, a.shape))}]" for a in kernel.arguments
    )
    return "\n".join(
        [
            f"kernel     {kernel.symbol}({arguments}) for {kernel.arch}",
            *_launch_lines(kernel),
            *(
                f"workspace  {a.name}: {a.dtype}[{', '.join(map(str, a.shape))}]"
                f"{', zeros before and after' if a.zero else ''}"
                for a in kernel.workspaces
            ),
            *(
                line
                for each in list(kernel.chain())[1:]
                for line in ("", f"then       {each.symbol}", *_launch_lines(each))
            ),
        ]
    )


def _launch_lines(kernel: Kernel) -> list[str]:
    scratch = kernel.registers.scratch_bytes
    return [
        f"launch     grid {_extents(kernel.extents)}, block {_extents(kernel.block)}",
        f"LDS        {kernel.lds_bytes} bytes",
        f"registers  {registers_line(kernel.registers)}",
        *([f"scratch    {scratch} bytes a lane: the tile is too large"] if scratch else []),
    ]


def _extents(extents: Sequence[object]) -> str:
    return " x ".join(map(str, extents))
