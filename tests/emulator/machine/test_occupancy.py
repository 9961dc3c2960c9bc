"""What fits on a compute unit."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mfmadsl.emulator.profiler import chip_of, occupancy
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.emulator.text.registers import asked_scalar_registers, asked_vector_registers
from mfmadsl.model import ARCHITECTURES
from tests.emulator.resource_kernel import Resources, assembly, said

LDS_GRANULE = {"gfx950": 1280}  # LLVM's guide, COMPUTE_PGM_RSRC2: LDS_SIZE
# VGPRs of a SIMD and how they are given out, from the same guide, and HIP's count of waves.
HIP_DEVICES = {"gfx908": (256, 4, 10), "gfx90a": (512, 8, 8), "gfx942": (512, 8, 8),
               "gfx950": (512, 8, 8)}  # fmt: skip
SIMDS = 4
MOST_WORKGROUPS = 16  # with a barrier: LLVM's getMaxWorkGroupsPerCU


@pytest.mark.parametrize(
    ("arch", "registers", "lds", "waves", "expected"),
    [
        ("gfx942", 64, 0, 4, (8, 8, "waves")),
        ("gfx942", 128, 0, 4, (4, 4, "registers")),
        ("gfx942", 129, 0, 4, (3, 3, "registers")),  # registers come in eights
        ("gfx942", 256, 0, 8, (2, 1, "registers")),
        ("gfx942", 64, 40000, 4, (1, 1, "LDS")),
        ("gfx950", 64, 40000, 4, (4, 4, "LDS")),
        ("gfx950", 64, 54000, 4, (2, 2, "LDS")),  # three of 53760 would fit: LDS comes in 1280
        ("gfx942", 64, 16384, 4, (4, 4, "LDS")),
        ("gfx908", 128, 0, 4, (2, 2, "registers")),
        ("gfx908", 24, 0, 4, (10, 10, "waves")),
        ("gfx942", 512, 0, 4, (1, 1, "registers")),
        ("gfx942", 24, 0, 1, (8, 32, "waves")),
        ("gfx942", 128, 0, 1, (4, 16, "registers")),
        ("gfx942", 128, 0, 3, (4, 5, "registers")),  # 15 of 16 waves
        ("gfx908", 24, 0, 2, (8, 16, "barriers")),
    ],
)
def test_occupancy(
    arch: str, registers: int, lds: int, waves: int, expected: tuple[int, int, str]
) -> None:
    found = occupancy(chip_of(arch), registers, lds, waves)
    assert (found.waves_per_simd, found.groups, found.limit) == expected


@given(
    arch=st.sampled_from(sorted(HIP_DEVICES)),
    vector=st.integers(1, 512),
    lds_bytes=st.integers(0, 65536),
    threads=st.integers(1, 1024),
)
def test_the_workgroups_are_those_of_hip(
    arch: str, vector: int, lds_bytes: int, threads: int
) -> None:
    """hipOccupancyMaxActiveBlocksPerMultiprocessor, whose LDS has no granules."""
    registers, granule, most_waves = HIP_DEVICES[arch]
    assume(vector <= registers)
    granules = LDS_GRANULE.get(arch, 512)
    aligned_lds = (lds_bytes + granules - 1) // granules * granules
    waves = min(most_waves, registers // ((vector + granule - 1) // granule * granule))
    threads_of_waves = (threads + 63) // 64 * 64
    blocks = SIMDS * waves * 64 // threads_of_waves
    if aligned_lds:
        blocks = min(blocks, ARCHITECTURES[arch].lds_bytes // aligned_lds)
    if threads_of_waves > 64:
        blocks = min(blocks, MOST_WORKGROUPS)
    chip = chip_of(arch)
    if not blocks:
        with pytest.raises(ValueError, match=f"does not fit on a compute unit of {arch}"):
            occupancy(chip, vector, lds_bytes, threads_of_waves // 64)
    else:
        assert occupancy(chip, vector, lds_bytes, threads_of_waves // 64).groups == blocks


@settings(max_examples=150)
@given(
    arch=st.sampled_from(sorted(HIP_DEVICES)),
    vector=st.one_of(st.integers(1, 30), st.integers(1, 256)),
    accumulation=st.sampled_from([0, 0, 0, 1, 30, 64, 100, 128]),
    scalar=st.integers(0, 102),
    granules=st.one_of(st.just(0), st.integers(1, 50)),
    waves=st.sampled_from([1, 2, 3, 4]),
)
def test_the_waves_are_those_that_llvm_prints(
    arch: str, vector: int, accumulation: int, scalar: int, granules: int, waves: int
) -> None:
    """LLVM counts waves by registers without asking whether they make whole workgroups."""
    wanted = Resources(
        vector, accumulation, scalar, granules * LDS_GRANULE.get(arch, 512), 64 * waves
    )
    text = assembly(arch, wanted)
    program = parse_assembly(text)
    asked = asked_vector_registers(program.directives, program.registers, arch)
    scalars = asked_scalar_registers(program.directives)
    found = occupancy(chip_of(arch), asked, wanted.lds_bytes, waves, scalars)
    printed = said(text, "Occupancy")
    if waves != 3:
        assert found.waves_per_simd == printed
    else:
        assert printed - 1 <= found.waves_per_simd <= printed


@pytest.mark.parametrize("arch", list(ARCHITECTURES))
def test_scalar_registers_keep_waves_away_as_llvm_prints(arch: str) -> None:
    for scalar in range(72, 103):
        text = assembly(arch, Resources(1, scalar=scalar))
        scalars = asked_scalar_registers(parse_assembly(text).directives)
        found = occupancy(chip_of(arch), 1, 0, 1, scalars)
        assert found.waves_per_simd == said(text, "Occupancy")


def test_every_chip_of_the_library_is_known() -> None:
    assert [chip_of(arch).name for arch in ARCHITECTURES] == list(ARCHITECTURES)
    with pytest.raises(ValueError, match="no profile of `gfx1100`, but of: gfx908"):
        chip_of("gfx1100")
