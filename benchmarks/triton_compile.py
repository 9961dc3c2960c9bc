"""Compiling a kernel of Triton's offline, and keeping what came of it beside others.

Imported only in processes of their own, for Triton brings an LLVM that TVM's must not meet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource


def compiled(
    function: Any, arch: str, arguments: Mapping[str, str], constants: Mapping[str, Any],
    options: Mapping[str, Any], any_number: Collection[str],
) -> Any:  # fmt: skip
    """The kernel of a function of Triton's, or of Gluon's, for these types of its arguments, which
    are multiples of 16 but for those that may be `any_number`."""
    signature = {**arguments, **dict.fromkeys(constants, "constexpr")}
    attributes = {
        (position,): [["tt.divisibility", 16]]
        + ([["tt.pointer_range", 32]] if name.endswith("ptr") else [])
        for position, name in enumerate(signature)
        if name not in (*constants, *any_number)
    }
    language = GluonASTSource if function.is_gluon() else ASTSource
    source = language(function, signature, dict(constants), attributes)
    return triton.compile(source, GPUTarget("hip", arch, 64), dict(options))


def keep(path: Path, make: Callable[[], Any]) -> None:
    """Write a kernel's assembly, and as JSON its LDS bytes and waves, or why there is none."""
    try:
        kernel = make()
        facts = {"lds_bytes": kernel.metadata.shared, "waves": kernel.metadata.num_warps}
        path.with_suffix(".s").write_text(kernel.asm["amdgcn"])
    except Exception as error:  # a setting that Triton refuses is no contender
        facts = {"refused": f"{type(error).__name__}: {error}"[:200]}
    path.write_text(json.dumps(facts))
