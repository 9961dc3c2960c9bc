"""A chip of a family that is known needs a record, and nothing else of the emulator's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mfmadsl.backend import build_instruction
from mfmadsl.emulator import emulate
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.language import library
from mfmadsl.model import ARCHITECTURES

NEW = {"gfx908": "gfx907", "gfx90a": "gfx90b", "gfx942": "gfx943", "gfx950": "gfx959"}


@pytest.fixture(autouse=True)
def _chips(monkeypatch: pytest.MonkeyPatch) -> None:
    for old, new in NEW.items():
        monkeypatch.setitem(ARCHITECTURES, new, replace(ARCHITECTURES[old], name=new))


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("mfma_f32_32x32x8_f16", "gfx908"),
        ("mfma_f32_16x16x16_bf16", "gfx90a"),
        ("mfma_f64_16x16x4_f64", "gfx90a"),
        ("mfma_f32_16x16x32_fp8_fp8", "gfx942"),
        ("smfmac_f32_16x16x32_f16", "gfx942"),
        ("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp4", "gfx950"),
    ],
)
def test_its_kernels_run_as_those_of_its_family(name: str, arch: str) -> None:
    intrinsic = next(i for i in library().values() if i.name == name and arch in i.chips)
    text = build_instruction(intrinsic, arch).assembly
    generator = np.random.default_rng(7)
    words = [
        generator.integers(0, 1 << 32, (64, o.register_count), np.uint64).astype(np.uint32)
        for o in intrinsic.operands.values()
    ]
    found = []
    for target in (text, text.replace(arch, NEW[arch])):
        args = [array.copy() for array in words]
        run = emulate(target, args, (1,), (64,))
        timed = profile(target, args, (1,), (64,))
        assert sanitize(target, args, (1,), (64,)).faults == ()
        found.append((args[2].tolist(), run.approximate, timed.timing.cycles, timed.allocated))
    assert found[0] == found[1]
    assert found[0][0] != words[2].tolist()
