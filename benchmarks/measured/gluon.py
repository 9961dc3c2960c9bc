"""Compiles the kernels of `figures`, in a process of its own, for Triton brings an LLVM that TVM's
must not meet:

    python -m benchmarks.measured.gluon FOLDER [KERNEL-CHIP-TYPE...]

writes FOLDER/KERNEL-CHIP-TYPE.s, and .json with LDS bytes and waves, of all or of some; and where
all are asked for the settings of Triton's matmul of tiles of 256 x 256 x 64, as
`benchmarks.gemm.triton_kernels` does. What lies there already is not compiled again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.gemm import triton_kernels
from benchmarks.measured import gluon_gfx942, gluon_gfx950
from benchmarks.triton_compile import compiled, keep

DTYPES = {"f16": "fp16", "bf16": "bf16", "bf8": "fp8e5"}
WITHOUT_ACCUMULATION = {"llvm_fn_attrs": (("amdgpu-agpr-alloc", "0,0"),)}
DIES, GROUP = 8, 4


@dataclass(frozen=True)
class Kernel:
    """A function of Gluon's, and how it is compiled."""

    name: str
    arch: str
    kinds: tuple[str, ...]
    function: Any
    waves: int
    constants: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def compile(self, kind: str) -> Any:
        operand = DTYPES[kind]
        out = "fp16" if kind == "bf8" else operand
        pointers = {"a_ptr": f"*{operand}", "b_ptr": f"*{operand}", "c_ptr": f"*{out}"}
        constants = dict(self.constants)
        if self.arch == "gfx950":
            constants["SIZE"] = 1 if kind == "bf8" else 2
        arguments = {**pointers, **dict.fromkeys(("M", "N", "K"), "i32")}
        options = {"num_warps": self.waves, **self.options}
        return compiled(self.function, self.arch, arguments, constants, options, ())


_ONE_DIE = {"DIES": 1, "GROUP": 1}
_NEAR = {"DIES": DIES, "GROUP": GROUP}
KERNELS = (
    Kernel("one-stage", "gfx950", ("f16",), gluon_gfx950.straight, 4, {"STAGES": 1, **_ONE_DIE}),
    Kernel("two-stages", "gfx950", ("f16",), gluon_gfx950.straight, 4, {"STAGES": 2, **_ONE_DIE}),
    Kernel("ping-pong", "gfx950", ("f16", "bf16", "bf8"), gluon_gfx950.ping_pong, 8, _NEAR,
           WITHOUT_ACCUMULATION),
    Kernel("ping-pong", "gfx942", ("f16", "bf16"), gluon_gfx942.ping_pong, 8,
           {"PER_PHASE": 1, **_NEAR}, WITHOUT_ACCUMULATION),
    Kernel("colliding", "gfx942", ("f16",), gluon_gfx942.ping_pong, 8,
           {"PER_PHASE": 2, **_NEAR}, WITHOUT_ACCUMULATION),
)  # fmt: skip


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    for kernel in KERNELS:
        for kind in kernel.kinds:
            name = f"{kernel.name}-{kernel.arch}-{kind}"
            path = folder / f"{name}.json"
            if (name in names or not names) and not path.exists():
                keep(path, partial(kernel.compile, kind))
    if names:
        return
    for setting in triton_kernels.settings("gfx950"):
        path = folder / f"gfx950.bf16.bt-{setting}.json"
        if (setting.tile, setting.row_bytes) == ((256, 256), 128) and not path.exists():
            make = partial(triton_kernels.compile_gemm, "gfx950", "bf16", True, setting)
            keep(path, make)


if __name__ == "__main__":
    main()
