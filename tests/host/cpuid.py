"""CPUID and XCR0, asked by the instructions themselves, and what Intel's manual reads in them.

Software Developer's Manual, volume 2: CPUID, leaves 1 and 7; volume 1, 13.3: XCR0. Bits that AMD
has as well mean the same there (AMD64 manual, volume 3, appendix E).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import llvmlite.binding as llvm

_BITS = {
    "sse2": ("1d", 26), "avx": ("1c", 28), "avx2": ("7b", 5), "fma": ("1c", 12),
    "avx512f": ("7b", 16), "avx512bw": ("7b", 30), "avx512vl": ("7b", 31),
    "avx512dq": ("7b", 17), "avx512vnni": ("7c", 11), "avxvnni": ("71a", 4),
    "amx_tile": ("7d", 24), "amx_int8": ("7d", 25), "amx_bf16": ("7d", 22),
}  # fmt: skip
"""Leaf, subleaf if not 0, and register, and the bit in it."""

_OSXSAVE = ("1c", 27)

_TEXT = """
define void @ask(i32 %leaf, i32 %sub, ptr %to) {
  %told = call { i32, i32, i32, i32 } asm sideeffect "cpuid",
      "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 %leaf, i32 %sub)
  store { i32, i32, i32, i32 } %told, ptr %to
  ret void
}
define i32 @saved() {
  %told = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %low = extractvalue { i32, i32 } %told, 0
  ret i32 %low
}
"""


def asked() -> dict[str, int]:
    """The registers that tell of features on this machine, and XCR0, 0 where it has none."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_TEXT), machine)
    engine.finalize_object()
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(
        engine.get_function_address("ask")
    )

    def told(leaf: int, sub: int) -> tuple[int, ...]:
        registers = (ctypes.c_uint32 * 4)()
        ask(leaf, sub, ctypes.addressof(registers))
        return tuple(registers)

    last = told(0, 0)[0]
    _, _, c, d = told(1, 0)
    most, b7, c7, d7 = told(7, 0) if last >= 7 else (0, 0, 0, 0)
    found = {"1c": c, "1d": d, "7b": b7, "7c": c7, "7d": d7}
    found["71a"] = told(7, 1)[0] if most >= 1 else 0
    saved = ctypes.CFUNCTYPE(ctypes.c_uint32)(engine.get_function_address("saved"))
    found["xcr0"] = saved() if c >> _OSXSAVE[1] & 1 else 0
    return found


def features(told: Mapping[str, int], *, tiles: bool) -> set[str]:
    """The features that are there and whose registers the system saves; `tiles` says whether it
    gives tile registers to processes."""
    there = {name for name, (register, bit) in _BITS.items() if told[register] >> bit & 1}
    saved = {"sse2": 0, "avx": 0b110, "avx512": 0b1110_0110, "amx": 0x60000}
    kept = set()
    for name in there:
        kind = "avx512" if name.startswith("avx512") else name[:3] if name != "sse2" else name
        needed = saved["avx" if kind == "fma" else kind]
        if told["xcr0"] & needed == needed and (tiles or kind != "amx"):
            kept.add(name)
    return kept
