"""What other projects say of the same instructions.

Triton is asked itself. Of the others the constants were read from their sources, and lie in
`constants` with the repository, the files and the commits that they were read from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from mfmadsl.export import bindings, ck, iree
from mfmadsl.export.error import ExportError
from mfmadsl.model import Intrinsic, Layout


@dataclass(frozen=True)
class Peer:
    """A project: how it is called, what it calls an instruction, and where it says an element lies.

    `layouts` takes an instruction and the chip that it is asked for, and raises ExportError where
    the project says nothing of it.
    """

    name: str
    called: Callable[[Intrinsic], str]
    layouts: Callable[[Intrinsic, str | None], dict[str, Layout]]


IREE_TYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fnuz": "F8E4M3FNUZ",
    "float8_e5m2fnuz": "F8E5M2FNUZ",
    "float8_e4m3fn": "F8E4M3FN",
    "float8_e5m2": "F8E5M2",
    "int8": "I8",
    "int32": "I32",
}
_IREE_SCALED = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
"""Types of this library's that IREE's scaled instructions take."""


def iree_name(intrinsic: Intrinsic) -> str:
    """The name of the case of IREE's enumerations."""
    m, n, k = intrinsic.m, intrinsic.n, intrinsic.k
    if intrinsic.scales:
        return f"MFMA_SCALE_F32_{m}x{n}x{k}_B32"
    a, b, c = (
        IREE_TYPES.get(o.type.name, o.type.name) for o in (intrinsic.a, intrinsic.b, intrinsic.c)
    )
    blocks = f"x{intrinsic.blocks}B" if intrinsic.blocks > 1 else ""
    return f"MFMA_{c}_{m}x{n}x{k}{blocks}_{a}" + (f"_{b}" if a != b else "")


def ck_name(intrinsic: Intrinsic) -> str:
    """The compiler's builtin that CK calls, and the types where it takes several."""
    builtin = f"__builtin_{intrinsic.call.removeprefix('llvm.').replace('.', '_')}"
    if intrinsic.scales or intrinsic.unscaled:
        return f"{builtin} {intrinsic.a.type.short}_{intrinsic.b.type.short}"
    return builtin


def _of_iree(intrinsic: Intrinsic, arch: str | None) -> dict[str, Layout]:
    name = iree_name(intrinsic)
    known = constants("iree")["intrinsics"]
    types = {intrinsic.a.type.name, intrinsic.b.type.name}
    if intrinsic.sparse or name not in known or (intrinsic.scales and types - {*_IREE_SCALED}):
        raise _nothing("IREE", intrinsic, "iree")
    return {
        operand: iree.expanded(
            iree.SubgroupLayout(*map(tuple, numbers)),
            operand,
            iree.dimensions(intrinsic, operand),
        )
        for operand, numbers in known[name].items()
    }


def _of_ck(intrinsic: Intrinsic, arch: str | None) -> dict[str, Layout]:
    own = constants("ck")["instructions"].get(ck_name(intrinsic))
    if own is None:
        raise _nothing("CK Tile", intrinsic, "ck")
    told = {**ck.shape_constants(intrinsic), **own}
    return {operand: ck.expanded(operand, told) for operand in ck.OPERANDS}


def _nothing(project: str, intrinsic: Intrinsic, name: str) -> ExportError:
    told = constants(name)
    commits = ", ".join(sorted({commit[:12] for commit in told["sources"].values()}))
    return ExportError(
        f"{project} says nothing of {intrinsic.name} ({told['repository']} at {commits})"
    )


@cache
def constants(name: str) -> Mapping[str, Any]:
    """The file of a project's constants."""
    text = (files("mfmadsl.export") / "constants" / f"{name}.json").read_text("utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def _triton_name(intrinsic: Intrinsic) -> str:
    return "AMDMFMALayout"


PEERS: Mapping[str, Peer] = {
    "triton": Peer("Triton", _triton_name, bindings.ask),
    "iree": Peer("IREE", iree_name, _of_iree),
    "ck": Peer("CK Tile", ck_name, _of_ck),
}
"""The projects that layouts are compared with, by what the command line calls them."""
