"""Four sums of differences of bytes (CDNA3 ISA, V_MQSAD_U32_U8)."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from tests.emulator.waves import put, run, vector, wave


@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942", "gfx950"])
def test_four_sums_are_added_to_four_words(arch: str) -> None:
    """Byte by byte; a byte of the reference that is 0 does not count, sums may go over 2**32."""
    generator = np.random.default_rng(1)
    windows, reference = generator.integers(0, 256, (64, 8)), generator.integers(0, 4, (64, 4)) * 77
    addends = generator.integers(2**31, 2**32, (64, 4), dtype=np.uint32)
    addends[::5] = 2**32 - 1 - np.arange(4)
    waves = wave()
    put(waves, {"v[4:5]": windows.astype(np.uint8).view(np.uint64)[:, 0],
                "v6": reference.astype(np.uint8).view(np.uint32)[:, 0]})  # fmt: skip
    for place in range(4):
        put(waves, {f"v{8 + place}": addends[:, place].copy()})
    run(waves, "v_mqsad_u32_u8 v[0:3], v[4:5], v6, v[8:11]", arch)
    for place in range(4):
        apart = np.abs(windows[:, place : place + 4] - reference) * (reference != 0)
        expected = (addends[:, place] + apart.sum(axis=1)) % 2**32
        np.testing.assert_array_equal(vector(waves, place), expected)


@pytest.mark.parametrize(
    "line",
    ["v_mqsad_u32_u8 v[4:7], v[4:5], v10, v[12:15]", "v_mqsad_u32_u8 v[4:7], v[0:1], v7, v[12:15]",
     "v_mqsad_u32_u8 v[4:7], v[0:1], v2, v[6:9]", "v_qsad_pk_u16_u8 v[4:5], v[0:1], v2, v[4:5]",
     "v_mqsad_pk_u16_u8 v[4:5], v[0:1], v5, v[6:7]"],
)  # fmt: skip
def test_no_source_may_be_in_the_target(line: str) -> None:
    """LLVM never lets it, as the sums are written one after another."""
    with pytest.raises(EmulationError, match="in the target, which is written before it is read"):
        run(wave(), line, "gfx950")


@pytest.mark.parametrize(
    ("operands", "reason"),
    [
        ("v[0:2], v[4:5], v6, v[8:11]", "not 4 registers"),
        ("v[0:3], v[4:5], v6, v[8:9]", "not 4 registers"),
        ("v[0:3], v[4:5], v6, v[8:11] clamp", "unknown instruction"),
        ("v[0:3], v[4:5], v6", "it takes 4 operands, not 3"),
    ],
)
def test_what_is_refused(operands: str, reason: str) -> None:
    with pytest.raises(EmulationError, match=reason):
        run(wave(), f"v_mqsad_u32_u8 {operands}", "gfx942")
