"""Which byte or half op_sel means: LLVM's intrinsics say it by a number."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from mfmadsl.emulator import emulate
from tests.emulator.sanitizer.wait_states.llvm_kernels import assembly

WORD = 0xC4B8_3CAA
INTO_BYTES = {
    "cvt.scalef32.pk.fp4.f32(i32 %w, float %f, float -1.0, float 2.0, i32 {})": 0x94,
    "cvt.scalef32.sr.fp8.f32(i32 %w, float %f, i32 0, float 2.0, i32 {})": 0x40,
    "cvt.sr.bf8.f32(float %f, i32 0, i32 %w, i32 {})": 0x44,
}
"""What becomes of 4, and of what else they take, in the byte of a word."""
FROM_BYTES = "cvt.scalef32.f32.fp8(i32 %w, float 2.0, i32 {})"
INTO_HALVES = "cvt.scalef32.f16.bf8(<2 x half> %h, i32 %w, float 2.0, i32 {}, i1 {})"


def results(calls: list[tuple[str, str]]) -> list[int]:
    """The words that calls of intrinsics give, of types as named."""
    lines = [
        "%w = load i32, ptr addrspace(1) %in",
        "%h = bitcast i32 %w to <2 x half>",
        "%fp = getelementptr i32, ptr addrspace(1) %in, i32 1",
        "%f = load float, ptr addrspace(1) %fp",
    ]
    for i, (kind, call) in enumerate(calls):
        lines += [
            f"%r{i} = call {kind} @llvm.amdgcn.{call}",
            f"%o{i} = getelementptr i32, ptr addrspace(1) %out, i32 {i}",
            f"store {kind} %r{i}, ptr addrspace(1) %o{i}",
        ]
    given = np.array([WORD, np.array(4, np.float32).view(np.uint32)], np.uint32)
    found = np.zeros(len(calls), np.uint32)
    emulate(assembly("\n".join(lines), "gfx950"), [given, found, np.int32(0)], (1,), (64,))
    return [int(word) for word in found]


def test_a_byte_of_the_target() -> None:
    calls = [(call.format(byte), code, byte) for call, code in INTO_BYTES.items()
             for byte in range(4)]  # fmt: skip
    found = results([("i32", call) for call, _, _ in calls])
    for (call, code, byte), word in zip(calls, found, strict=True):
        assert word == WORD & ~(0xFF << 8 * byte) | code << 8 * byte, call


def test_a_byte_of_the_source_and_a_half_of_the_target() -> None:
    source = np.array([WORD], np.uint32)
    found = np.array(results([("float", FROM_BYTES.format(i)) for i in range(4)]), np.uint32)
    expected = 2 * source.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert found.view(np.float32).tolist() == expected.tolist()
    places = [(byte, half) for byte in range(4) for half in range(2)]
    calls = [("<2 x half>", INTO_HALVES.format(byte, half)) for byte, half in places]
    codes = (2 * source.view(ml_dtypes.float8_e5m2).astype(np.float32)).astype(np.float16)
    for (byte, half), word in zip(places, results(calls), strict=True):
        code = int(codes[byte].view(np.uint16))
        assert word == WORD & ~(0xFFFF << 16 * half) | code << 16 * half, (byte, half)
