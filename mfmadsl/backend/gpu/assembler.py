"""Assembly text to an object file.

llvmlite's LLVM has no assembler for AMD GPUs. TVM's has one, and assembles what a module says in
`module asm`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import tvm

_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) - set('"\\')
_MODULE = """target triple = "{triple}"
module asm "{assembly}"
!llvm.module.flags = !{{!0, !1}}
!0 = !{{i32 4, !"tvm_target", !"{target}"}}
!1 = !{{i32 1, !"amdhsa_code_object_version", i32 {version}}}
"""


def assembled(assembly: str, triple: str, arch: str, version: int) -> bytes:
    """The object file of LLVM's own text; `version` is that of AMD's code objects, times 100.

    LLVM ends the process where it cannot read the text: call it isolated.
    """
    target = _quoted(json.dumps({"kind": "llvm", "mcpu": arch, "mtriple": triple}))
    module = _MODULE.format(
        triple=triple, assembly=_quoted(assembly), target=target, version=version
    )
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        source, made = Path(folder, "kernel.ll"), Path(folder, "kernel.o")
        source.write_text(module)
        tvm.runtime.load_module(str(source)).write_to_file(str(made), "o")
        return made.read_bytes()


def _quoted(text: str) -> str:
    """The text as it stands between LLVM's quotes."""
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"\\{byte:02X}" for byte in text.encode())
