"""Matrix instructions in native code give the interpreter's bits."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import Waves
from tests.emulator.native.both import (
    copied,
    differences,
    interpret,
    known,
    random_waves,
    run_natively,
)

TEXTS = [
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[8:11]"),
    ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[2:5]"),
    ("gfx942", "v_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]"),
    ("gfx942", "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 1.0"),
    ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], 0"),
    ("gfx942", "v_mfma_f32_32x32x16_bf8_fp8 a[0:15], v[4:5], a[6:7], a[4:19]"),
    ("gfx942", "v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], v[8:11]"),
    ("gfx942", "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[8:11]"),
    ("gfx942", "v_mfma_i32_16x16x32_i8 v[0:3], v[4:5], v[6:7], v[8:11]"),
    ("gfx90a", "v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[8:11]"),
    ("gfx90a", "v_mfma_f32_32x32x8bf16_1k a[0:15], v[4:5], v[6:7], a[0:15]"),
    ("gfx90a", "v_mfma_i32_32x32x8i8 a[0:15], v4, v6, a[0:15]"),
    ("gfx908", "v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[8:11]"),
    ("gfx908", "v_mfma_f32_16x16x8bf16 a[0:3], v4, v6, a[8:11]"),
    ("gfx950", "v_mfma_i32_16x16x64_i8 v[0:3], v[4:7], v[8:11], v[12:15]"),
]


def numbers(waves: Waves, seed: int) -> None:
    """Put numbers into registers: of usual sizes, or of all sizes, or any bits."""
    generator = np.random.default_rng(seed)
    shape = waves.vector.shape
    if seed % 3 == 1:
        halves = generator.standard_normal((*shape, 2)).astype(np.float16)
        waves.vector[...] = halves.view(np.uint32)[..., 0]
        singles = generator.standard_normal(shape, np.float32)
        waves.accumulation[...] = singles.view(np.uint32)
    if seed % 3 == 2:
        waves.vector[...] &= generator.integers(0, 1 << 32, shape, np.uint32)
        waves.accumulation[...] &= np.uint32(0xBFFF_FFFF)


@pytest.mark.parametrize(("arch", "text"), TEXTS)
def test_same_bits(arch: str, text: str) -> None:
    machine = Machine(arch)
    each = known(text, machine)
    assert each is not None
    for seed in range(12):
        one = copied(random_waves(seed % 4, machine.mode))
        numbers(one, seed)
        other = copied(one)
        interpret(one, [each.instruction], machine)
        assert run_natively(other, [each.step]) == 1
        assert not differences(one, other)
