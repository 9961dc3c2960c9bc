"""ds_swizzle_b32: what assemblers call a pattern, and which lane each lane reads."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.code_object.disassemble import disassemble
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.swizzle import swizzle_pattern, swizzled_lanes
from mfmadsl.model import architecture
from scripts.instruction_table import assemble
from tests.emulator.waves import put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)

MACROS = [
    "swizzle(QUAD_PERM, 0, 1, 2, 3)", "swizzle(QUAD_PERM,3,2,0,1)",
    'swizzle(BITMASK_PERM,"01pip")', 'swizzle(BITMASK_PERM,"ppppp")',
    'swizzle(BITMASK_PERM,"11000")',
    *(f"swizzle(SWAP,{size})" for size in (1, 2, 4, 8, 16)),
    *(f"swizzle(REVERSE,{size})" for size in (2, 4, 8, 16, 32)),
    *(f"swizzle(BROADCAST,{size},{size - 1})" for size in (2, 4, 8, 16, 32)),
    "swizzle(FFT,0)", "swizzle(FFT,31)", "swizzle(FFT,5)",
    "swizzle(ROTATE,0,1)", "swizzle(ROTATE,1,31)", "swizzle(ROTATE,0,0)",
]  # fmt: skip
"""In the spelling of LLVM's assembler."""


def test_macros_are_the_numbers_that_the_assembler_makes_of_them() -> None:
    codes = assemble([f"ds_swizzle_b32 v1, v2 offset:{each}" for each in MACROS], "gfx942")
    for macro, code in zip(MACROS, codes, strict=True):
        assert code is not None, macro
        one, *_ = disassemble(code, architecture("gfx942"))
        number = int(one.text.rpartition("offset:")[2]) if "offset" in one.text else 0
        assert swizzle_pattern(macro) == number, macro
        assert swizzle_pattern(str(number)) == number


@pytest.mark.parametrize(
    ("pattern", "source"),
    [
        ("swizzle(SWAP,16)", lambda i: i ^ 16),
        ("swizzle(REVERSE,8)", lambda i: i ^ 7),
        ("swizzle(BROADCAST,4,2)", lambda i: i // 4 * 4 + 2),
        ("swizzle(QUAD_PERM,1,1,3,0)", lambda i: i // 4 * 4 + (1, 1, 3, 0)[i % 4]),
        ('swizzle(BITMASK_PERM,"0pi1p")', lambda i: i // 32 * 32 + ((i & 0b01101 | 2) ^ 0b00100)),
        ("swizzle(ROTATE,0,3)", lambda i: i // 32 * 32 + (i + 3) % 32),
        ("swizzle(ROTATE,1,3)", lambda i: i // 32 * 32 + (i - 3) % 32),
        ("swizzle(FFT,0)", lambda i: i // 32 * 32 + int(f"{i % 32:05b}"[::-1], 2)),
        ("swizzle(FFT,31)", lambda i: i),
        # The lower two bits stay; what is left of the reversed number moves down by two.
        ("swizzle(FFT,3)", lambda i: i // 32 * 32 | int(f"{i % 32:05b}"[::-1], 2) >> 2 | i & 3),
        (0xC000 | 2 << 5 | 0b11100, lambda i: i // 4 * 4 + (i + 2) % 4),  # within groups of four
    ],
)
def test_lanes_read(pattern: str | int, source: object) -> None:
    expected = [source(i) for i in range(64)]  # type: ignore[operator]
    assert swizzled_lanes(swizzle_pattern(str(pattern))).tolist() == expected
    waves = wave()
    put(waves, {"v1": LANE})
    run(waves, f"ds_swizzle_b32 v0, v1 offset:{pattern}")
    assert vector(waves, 0).tolist() == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "65536", "-1", "swizzle(SWAP,3)", "swizzle(SWAP,32)", "swizzle(REVERSE,1)", "swizzle(SWAP)",
        "swizzle(BROADCAST,4,4)", "swizzle(QUAD_PERM,0,1,2)", "swizzle(QUAD_PERM,0,1,2,4)",
        'swizzle(BITMASK_PERM,"0011")', 'swizzle(BITMASK_PERM,"0011x")', "swizzle(FFT,32)",
        "swizzle(ROTATE,2,1)", "swizzle(TURN,1)", "swizzle(SWAP,x)", "swap(1)",
    ],
)  # fmt: skip
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(EmulationError, match="offset is a number of 16 bits, or swizzle"):
        run(wave(), f"ds_swizzle_b32 v0, v1 offset:{pattern}")
