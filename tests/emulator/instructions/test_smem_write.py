"""Scalar stores and atomics against NumPy, with several waves that meet at an address."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.instructions.smem_write import SCALAR_ATOMICS
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.sanitizer.sanitize import sanitize
from mfmadsl.emulator.text.assembly import parse_instruction
from tests.emulator.assembler import accepted
from tests.emulator.waves import kernel, put, run, wave

WAVES = 3
OFFSET = 64


def with_words(count: int = WAVES) -> Waves:
    """Waves of which s[2:3] is the address of words that name their place, and s8 is 24."""
    waves = wave(count)
    words(waves)[:] = 1000 + 7 * np.arange(1024, dtype=np.uint32)
    put(waves, {"s[2:3]": np.uint64(waves.memory.segments[0].address + OFFSET)})
    put(waves, {"s8": np.uint32(24)})
    return waves


def words(waves: Waves) -> np.ndarray:
    return waves.memory.content(waves.memory.segments[0]).view(np.uint32)


def scalars(waves: Waves, first: int, values: np.ndarray) -> None:
    """Scalar registers: (register, wave)."""
    waves.scalar[first : first + len(values)] = values


@pytest.mark.parametrize(("suffix", "count"), [("", 1), ("x2", 2), ("x4", 4)])
@pytest.mark.parametrize(
    ("offset", "place"), [("0x10", 16), ("-0x8", -8), ("s8", 24), ("s8 offset:-5", 16)]
)
def test_words_are_stored_in_the_order_of_waves(
    suffix: str, count: int, offset: str, place: int
) -> None:
    waves = with_words()
    before = words(waves).copy()
    values = np.arange(count * WAVES, dtype=np.uint32).reshape(count, WAVES) + 5
    scalars(waves, 12, values)
    # The second wave writes elsewhere, the others to one address.
    waves.scalar[2, 1] += np.uint32(512)
    operand = "s12" if count == 1 else f"s[12:{11 + count}]"
    run(waves, f"s_store_dword{suffix} {operand}, s[2:3], {offset}")
    at = (OFFSET + place) // 4
    expected = before.copy()
    expected[at : at + count] = values[:, 2]
    expected[at + 128 : at + 128 + count] = values[:, 1]
    np.testing.assert_array_equal(words(waves), expected)


SIGNED = {"smin", "smax"}
NUMPY: dict[str, Callable[[int, int, int], int]] = {
    # what is in memory, the data, and what is compared with
    "swap": lambda old, a, c: a,
    "cmpswap": lambda old, a, c: a if old == c else old,
    "add": lambda old, a, c: old + a,
    "sub": lambda old, a, c: old - a,
    "smin": lambda old, a, c: min(old, a),
    "umin": lambda old, a, c: min(old, a),
    "smax": lambda old, a, c: max(old, a),
    "umax": lambda old, a, c: max(old, a),
    "and": lambda old, a, c: old & a,
    "or": lambda old, a, c: old | a,
    "xor": lambda old, a, c: old ^ a,
    "inc": lambda old, a, c: 0 if old >= a else old + 1,
    "dec": lambda old, a, c: a if old == 0 or old > a else old - 1,
}


@pytest.mark.parametrize("returns", [False, True])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", SCALAR_ATOMICS)
def test_atomics_see_those_of_waves_before(name: str, bits: int, returns: bool) -> None:
    generator = np.random.default_rng(len(name))
    edges = [0, 1, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 5]
    for _ in range(20):
        start, *data = (
            edges[i] if i < len(edges) else int.from_bytes(generator.bytes(bits // 8), "little")
            for i in generator.integers(0, 2 * len(edges), WAVES + 1)
        )
        compared = [start if i % 2 == 0 else data[i] for i in range(WAVES)]
        waves = with_words()
        dtype = np.uint64 if bits == 64 else np.uint32
        memory = words(waves)[20:22].view(dtype)
        memory[0] = start
        scalars(waves, 12, np.array(data, dtype).view(np.uint32).reshape(WAVES, -1).T)
        pair = bits // 32
        scalars(waves, 12 + pair, np.array(compared, dtype).view(np.uint32).reshape(WAVES, -1).T)
        count = pair * (2 if name == "cmpswap" else 1)
        operand = "s12" if count == 1 else f"s[12:{11 + count}]"
        suffix = "_x2" if bits == 64 else ""
        kept = waves.scalar[12 : 12 + count].copy()
        code = f"s_atomic_{name}{suffix} {operand}, s[2:3], 0x10{' glc' * returns}"
        run(waves, code)
        value, given = start, []
        for wave_number in range(WAVES):
            given.append(value)
            a, c = data[wave_number], compared[wave_number]
            old, new = (x - (x >> bits - 1 << bits) if name in SIGNED else x for x in (value, a))
            value = NUMPY[name](old, new, c) % 2**bits
        assert int(memory[0]) == value, (code, start, data)
        if returns:
            kept[:pair] = np.array(given, dtype).view(np.uint32).reshape(WAVES, -1).T
        np.testing.assert_array_equal(waves.scalar[12 : 12 + count], kept)


def test_a_buffer_takes_the_words_within_it() -> None:
    waves = with_words(1)
    before = words(waves).copy()
    address = waves.memory.segments[0].address + OFFSET
    scalars(waves, 20, np.array([[address & 0xFFFF_FFFF], [address >> 32], [24], [0]], np.uint32))
    scalars(waves, 12, np.arange(4, dtype=np.uint32)[:, None] + 5)
    run(waves, "s_buffer_store_dwordx4 s[12:15], s[20:23], 0x10")
    before[20:22] = [5, 6]
    np.testing.assert_array_equal(words(waves), before)
    run(waves, "s_buffer_atomic_add s12, s[20:23], 0x14 glc")
    assert (words(waves)[21], waves.scalar[12, 0]) == (11, 6)
    run(waves, "s_buffer_atomic_add s12, s[20:23], 0x18 glc")
    assert (words(waves)[22], waves.scalar[12, 0]) == (before[22], 0)


@pytest.mark.parametrize(
    "code",
    [
        "s_store_dword s12, s[2:3], 0x10 offset:4",
        "s_store_dwordx8 s[12:19], s[2:3], 0x10",
        "s_store_dwordx2 s12, s[2:3], 0x10",
        "s_store_dword s12, s[2:3], 0x200000",
        "s_buffer_store_dword s12, s[2:3], 0x10",
        "s_buffer_store_dword s12, s[20:23], -0x10",
        "s_atomic_fadd s12, s[2:3], 0x10",
        "s_atomic_cmpswap s12, s[2:3], 0x10",
        "s_atomic_add v12, s[2:3], 0x10",
        "s_atomic_add s12, s[2:3], 0x10 slc",
        "s_scratch_store_dword s12, s[2:3], 0x10",
    ],
)
def test_what_is_no_such_instruction_is_refused(code: str) -> None:
    with pytest.raises(EmulationError, match="unknown instruction"):
        run(with_words(), code)


COUNTING = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_mov_b32 s8, 1
	s_waitcnt lgkmcnt(0)
	s_atomic_add s8, s[4:5], 0x4 glc
	s_waitcnt lgkmcnt(0)
	s_lshl_b32 s9, s8, 2
	s_store_dword s2, s[4:5], s9 offset:0x8
"""


def test_a_kernel_that_counts_its_workgroups() -> None:
    x = np.zeros(16, np.uint32)
    emulate(kernel(COUNTING), [x], (5,), (64,))
    assert x.tolist() == [0, 5, *range(5), *[0] * 9]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("lgkmcnt(0)\n\ts_lshl", "vmcnt(0)\n\ts_lshl"), "reads s8, which a load still in flight"),
        (("s_mov_b32 s8, 1", "s_nop 0"), "reads s8, which nobody wrote"),
        (("s_store_dword s2", "s_store_dword s20"), "reads s20, which nobody wrote"),
        (("offset:0x8", "offset:0x1000"), "offset 4096 of `p0`, which has 64 bytes"),
    ],
)
def test_faults_are_told(change: tuple[str, str], message: str) -> None:
    assert not sanitize(kernel(COUNTING), [np.zeros(16, np.uint32)], (5,), (64,)).faults
    assert change[0] in COUNTING
    with pytest.raises(EmulationError, match=message):
        sanitize(kernel(COUNTING.replace(*change)), [np.zeros(16, np.uint32)], (5,), (64,))


def test_memory_that_nobody_wrote_is_combined_with() -> None:
    with pytest.raises(EmulationError, match=r"reads offset 4 of `p0`.*, which nobody wrote"):
        sanitize(kernel(COUNTING), [np.zeros(16, np.uint32)], (1,), (64,), unwritten=[0])
    stored = COUNTING.replace("s_mov_b32 s8, 1", "s_mov_b32 s8, 1\n\ts_mov_b32 s10, 0").replace(
        "\ts_atomic", "\ts_store_dword s10, s[4:5], 0x4\n\ts_atomic"
    )
    assert not sanitize(
        kernel(stored), [np.zeros(16, np.uint32)], (1,), (64,), unwritten=[0]
    ).faults


def test_what_is_read_only_stays() -> None:
    x = np.zeros(16, np.uint32)
    x.flags.writeable = False
    with pytest.raises(EmulationError, match="read-only: pass a copy"):
        emulate(kernel(COUNTING), [x], (1,), (64,))


_DATA = {
    "s_load_dword": ("m0", "exec_lo", "exec_hi", "vcc_lo", "s7"),
    "s_load_dwordx2": ("exec", "vcc", "s[6:7]"),
    "s_store_dword": ("m0", "exec_hi", "vcc_hi"),
    "s_store_dwordx2": ("exec", "vcc"),
    "s_atomic_add": ("m0", "exec_lo", "vcc_lo"),
}


def test_what_scalar_memory_moves_is_what_llvm_takes() -> None:
    lines = [f"{name} {data}, s[0:1], 0x0" for name, moved in _DATA.items() for data in moved]
    lines += [f"s_buffer_load_dwordx2 {data}, s[4:7], 0x0" for data in ("exec", "vcc")]
    lines += [f"s_memtime {data}" for data in ("exec", "vcc")]
    expected = accepted(lines, "gfx90a")
    assert set(expected) == {True, False}
    for line, is_right in zip(lines, expected, strict=True):
        told = nullcontext() if is_right else pytest.raises(EmulationError, match="EXEC nor M0")
        with told:
            assert compile_instruction(parse_instruction(line), Machine("gfx90a"))
