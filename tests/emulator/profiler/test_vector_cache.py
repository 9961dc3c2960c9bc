"""The vector L1 cache: sizes of AMD's white papers, what hits by LLVM's memory model."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.profiler import Profile, profile
from mfmadsl.emulator.profiler.vector_cache import VectorCache, policy_of
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.model import architecture
from tests.emulator.waves import kernel

CHIP = architecture("gfx942")
LOAD = "	global_load_dword v2, v1, s[4:5]{}\n	s_waitcnt vmcnt(0)\n"
START = (
    "\n	s_load_dwordx2 s[4:5], s[0:1], 0x0\n	v_lshlrev_b32_e32 v1, 2, v0\n"
    "	s_waitcnt lgkmcnt(0)\n"
)


def profiled(body: str, threads: int = 64) -> Profile:
    return profile(kernel(START + body), [np.zeros(64 * 16, np.uint32)], (1,), (threads,))


@pytest.mark.parametrize(
    ("arch", "kibibytes", "line"),
    [("gfx908", 16, 64), ("gfx90a", 16, 64), ("gfx942", 32, 128), ("gfx950", 32, 128)],
)
def test_sizes(arch: str, kibibytes: int, line: int) -> None:
    """AMD's "CDNA 3" white paper: 128-byte lines in 32 KiB, twice of what MI200 has of either."""
    chip = architecture(arch)
    assert (chip.l1_bytes, chip.line_bytes) == (kibibytes * 1024, line)


def test_what_was_loaded_hits() -> None:
    once, twice = profiled(LOAD.format("")), profiled(LOAD.format("") * 2)
    assert once.whole.l2_bytes == twice.whole.l2_bytes == 256
    assert twice.whole.line_bytes == 512
    more = twice.timing.cycles - once.timing.cycles
    assert CHIP.l1_latency <= more <= CHIP.l1_latency + 16 < CHIP.l2_latency


def test_another_wave_hits_what_is_on_its_way() -> None:
    """Two waves load the same line one after the other; there is one request for it."""
    same = "	v_and_b32_e32 v1, 0xff, v1\n" + LOAD.format("")
    one, two = profiled(same), profiled(same, threads=128)
    assert two.whole.l2_bytes * 2 == one.whole.l2_bytes
    assert two.timing.cycles - one.timing.cycles <= 16


@pytest.mark.parametrize(
    ("bits", "fetched"), [("", 1), (" sc0", 1), (" nt", 2), (" sc1", 2), (" sc0 sc1", 2)]
)
def test_bits_that_bypass_the_cache(bits: str, fetched: int) -> None:
    """Loads of the scope of an agent or the system carry sc1, of a workgroup sc0 alone; nt is a
    hint not to keep what is fetched (LLVM, "Memory Model gfx942")."""
    assert profiled(LOAD.format(bits) * 2).whole.l2_bytes == fetched * 256


def test_glc_bypasses_the_cache() -> None:
    """Loads of the scope of an agent carry glc (LLVM, "Memory Model gfx90a")."""
    load = "buffer_load_dword v0, v1, s[4:7], 0 offen"
    assert policy_of(parse_instruction(f"{load} glc")) == "bypass"
    assert policy_of(parse_instruction(load)) == "keep"


def test_the_cache_forgets_when_it_is_told_to() -> None:
    again = LOAD.format("") + "	buffer_inv sc1\n" + LOAD.format("")
    assert profiled(again).whole.l2_bytes == 512


def test_stores_go_through() -> None:
    store = "	global_store_dword v1, v0, s[4:5]\n"
    assert profiled(store * 2).whole.l2_bytes == 512
    assert profiled(store + LOAD.format("")).whole.l2_bytes == 512
    assert profiled(LOAD.format("") + store + LOAD.format("")).whole.l2_bytes == 512


def test_bytes_are_told_by_instruction() -> None:
    found = profiled(LOAD.format("") * 2)
    loads = [i for i, each in enumerate(found.program.instructions) if "load_dword" in each.name]
    assert [found.timing.l2_bytes[i] for i in loads if i in found.timing.l2_bytes] == [256, 0]


def test_the_line_that_was_not_used_for_longest_goes() -> None:
    cache = VectorCache(CHIP)
    most = CHIP.l1_bytes // CHIP.line_bytes
    assert cache.missing(range(most), "keep") == most
    assert cache.load(range(most), "keep", 0, 254) == 254
    assert cache.load([0], "keep", 1000, 1254) == 1000 + CHIP.l1_latency
    assert cache.load([most], "keep", 2000, 2254) == 2254
    assert cache.missing([0, 2], "keep") == 0
    assert cache.missing([1], "keep") == 1


def test_a_line_is_there_when_it_comes() -> None:
    cache = VectorCache(CHIP)
    cache.load([5], "keep", 0, 900)
    assert cache.missing([5], "keep") == 0
    assert cache.load([5], "keep", 10, 264) == 900
    assert cache.load([5], "keep", 800, 1054) == 800 + CHIP.l1_latency


def test_a_copy_goes_its_own_way() -> None:
    cache = VectorCache(CHIP)
    cache.load([5], "keep", 0, 254)
    other = cache.copy()
    other.load([6], "keep", 0, 254)
    assert (cache.missing([5, 6], "keep"), other.missing([5, 6], "keep")) == (1, 0)


def test_loads_of_a_wave_complete_in_order() -> None:
    """A hit behind a miss counts as done when the miss is (CDNA3 ISA, section 4.4, VM_CNT)."""
    body = LOAD.format("") + (
        "	global_load_dword v3, v1, s[4:5] offset:1024\n"
        "	global_load_dword v2, v1, s[4:5]\n	s_waitcnt vmcnt({})\n	v_mov_b32_e32 v4, v5\n"
    )
    ends = [profiled(body.format(left)).timing.cycles for left in (1, 0)]
    assert ends[1] - ends[0] <= 8
