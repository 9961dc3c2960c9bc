"""A kernel gets the registers that it asks for, and a chip has so many."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.error import ArgumentError
from tests.emulator.waves import kernel


def run(code: str, threads: int = 64, arch: str = "gfx942", **directives: int) -> None:
    text = kernel(f"\t{code}").replace("gfx942", arch)
    for name in ("next_free_vgpr", "accum_offset"):
        text = text.replace(f"\t\t.amdhsa_{name} 32\n", "")
    lines = "".join(f"\t\t.amdhsa_{name} {value}\n" for name, value in directives.items())
    text = text.replace("\t.end_amdhsa_kernel", f"{lines}\t.end_amdhsa_kernel")
    emulate(text, [np.zeros(1, np.uint32)], (1,), (threads,))


def refused(code: str, arch: str = "gfx942", **directives: int) -> str:
    with pytest.raises(EmulationError) as raised:
        run(code, 64, arch, **directives)
    return str(raised.value)


def test_scalar_registers_that_are_not_asked_for() -> None:
    run("s_mov_b32 s9, 0", next_free_vgpr=32, next_free_sgpr=10)
    told = refused("s_mov_b32 s10, 0", next_free_vgpr=32, next_free_sgpr=10)
    assert "uses s10, but the kernel asks for 10 such registers" in told
    run("s_mov_b64 vcc, 0", next_free_vgpr=32, next_free_sgpr=10)  # they come on top
    run("s_mov_b32 s90, 0", next_free_vgpr=32)  # nothing is said


def test_an_instruction_without_effect_is_of_the_chip_too() -> None:
    run("buffer_inv sc1", next_free_vgpr=32, accum_offset=32)
    told = refused("buffer_wbinvl1_vol", next_free_vgpr=32)
    assert "`buffer_wbinvl1_vol`: unknown instruction: gfx942 does not have it" in told


def test_plain_registers_end_where_those_of_accumulation_begin() -> None:
    run("v_mov_b32_e32 v15, 0", next_free_vgpr=32, accum_offset=16)
    run("v_accvgpr_write_b32 a15, 0", next_free_vgpr=32, accum_offset=16)
    for code in ("v_mov_b32_e32 v16, 0", "v_accvgpr_write_b32 a16, 0"):
        assert "16 such registers" in refused(code, next_free_vgpr=32, accum_offset=16)


@pytest.mark.parametrize(
    ("arch", "directives", "told"),
    [
        ("gfx942", {"accum_offset": 18}, "no multiple of 4 from 4 to 256"),
        ("gfx942", {"accum_offset": 260, "next_free_vgpr": 300}, "no multiple of 4 from 4 to 256"),
        ("gfx942", {"accum_offset": 40}, "behind the 32 registers that it asks for"),
        ("gfx942", {"next_free_sgpr": 103}, "is 103, which is not between 0 and 102"),
        ("gfx942", {"next_free_vgpr": 513}, "is 513, which is not between 0 and 512"),
        ("gfx908", {"next_free_vgpr": 257}, "which is not between 0 and 256"),
    ],
)  # fmt: skip
def test_numbers_that_the_chip_has_not(arch: str, directives: dict[str, int], told: str) -> None:
    assert told in refused("s_nop 0", arch, **{"next_free_vgpr": 32, **directives})


@pytest.mark.parametrize(
    ("arch", "registers", "threads"), [("gfx942", 128, 1024), ("gfx942", 512, 256),
                                       ("gfx908", 64, 1024), ("gfx90a", 168, 768)],
)  # fmt: skip
def test_a_workgroup_fits_into_a_compute_unit(arch: str, registers: int, threads: int) -> None:
    run("s_nop 0", threads, arch, next_free_vgpr=registers)
    with pytest.raises(ArgumentError, match=r"registers a lane are too few: `kernel` asks for"):
        run("s_nop 0", threads + 64 * (registers == 512), arch,
            next_free_vgpr=registers + 8 * (registers != 512))  # fmt: skip
