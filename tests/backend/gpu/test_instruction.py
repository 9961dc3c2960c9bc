"""One instruction at a time: LLVM selects it, and run in the emulator it is NumPy's product."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mfmadsl.backend import Immediates, LoweringError, build_instruction
from mfmadsl.emulator import emulate
from mfmadsl.language import find, library
from mfmadsl.model import ARCHITECTURES, Intrinsic, Operand, source_block, source_lane
from tests.registers import Array, codes, pack, random_values, unpack

PLAIN = Immediates()
EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)
ON_EVERY_CHIP = pytest.mark.parametrize(
    ("intrinsic", "chip"),
    [pytest.param(i, c, id=f"{i.name}-{c}") for i in library().values() for c in i.chips],
)


@ON_EVERY_CHIP
def test_llvm_selects_exactly_the_instruction(
    intrinsic: Intrinsic, chip: str, llvm_intrinsics: dict[str, Any]
) -> None:
    assembly = build_instruction(intrinsic, chip).assembly
    forms = llvm_intrinsics[intrinsic.call]["forms"]
    expected = {form["mnemonic"] for form in forms if chip in form["cpus"]}
    found = re.findall(r"^\s+(v_s?mfma\S+)", assembly, re.MULTILINE)
    assert len(found) == 1
    assert set(found) == expected
    assert found[0] in intrinsic.mnemonics


@EVERY
def test_a_chip_that_lacks_it_is_refused_before_llvm_sees_it(intrinsic: Intrinsic) -> None:
    for chip in set(ARCHITECTURES) - set(intrinsic.chips):
        with pytest.raises(LoweringError, match=f"{chip} has no {intrinsic.name}"):
            build_instruction(intrinsic, chip)


def full(stored: Array, places: Array) -> Array:
    """A sparse A with its zeros; `places` holds each stored element's place among four."""
    blocks, rows, columns = stored.shape
    result = np.zeros((blocks, rows, 2 * columns))
    for (block, row, column), place in np.ndenumerate(places):
        result[block, row, column // 2 * 4 + int(place)] = stored[block, row, column]
    return result


def random_places(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Two different places of four, in order, for each pair of stored elements."""
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    chosen = pairs[generator.integers(0, 6, (*shape[:-1], shape[-1] // 2))]
    return np.asarray(chosen.reshape(shape))


def run(
    intrinsic: Intrinsic,
    chip: str,
    operands: dict[str, Array],
    immediates: Immediates = PLAIN,
    index_set: int = 0,
    bytes_of_scales: tuple[int, int] = (0, 0),
) -> Array:
    """D of the instruction in the emulator, as (blocks, m, n)."""
    words = []
    for name, operand in intrinsic.operands.items():
        if name == "index":
            bits = 2 * operand.layout.elements_per_lane * index_set
            words.append(pack(operand, operands[name]) << np.uint32(bits))
        elif name.startswith("scale"):
            byte = bytes_of_scales[name == "scale_b"]
            words.append(pack(operand, operands[name]) << np.uint32(8 * byte))
        else:
            words.append(pack(operand, codes(operands[name], operand.type)))
    emulate(build_instruction(intrinsic, chip, immediates), words)
    return unpack(intrinsic.c, words[2])


def drawn(intrinsic: Intrinsic, seed: int) -> dict[str, Array]:
    """Random operands, a random index and random scales."""
    generator = np.random.default_rng(seed)
    operands = {
        o.name: random_values(intrinsic, o, generator)
        for o in (intrinsic.a, intrinsic.b, intrinsic.c)
    }
    if intrinsic.index:
        operands["index"] = random_places(operands["a"].shape, generator)
    for scale in intrinsic.scales:
        shape = (1, *scale.shape)
        operands[scale.name] = generator.integers(120, 134, shape).astype(np.uint64)
    return operands


def scaled(values: Array, scale: Array, axis: int) -> Array:
    """Each group of 32 along k times a power of two."""
    return np.asarray(values * np.repeat(2.0 ** (scale.astype(np.int64) - 127), 32, axis=axis))


def inputs(intrinsic: Intrinsic, operands: dict[str, Array]) -> tuple[Array, Array]:
    """A and B in full, scaled, as float64."""
    a, b = operands["a"], operands["b"]
    if intrinsic.sparse:
        a = full(a, operands["index"])
    if intrinsic.scales:
        a, b = scaled(a, operands["scale_a"], 2), scaled(b, operands["scale_b"], 1)
    return a, b


def assert_product(intrinsic: Intrinsic, found: Array, a: Array, b: Array, c: Array) -> None:
    """Integers exactly; floats within k + 1 roundings of the sum of the magnitudes."""
    expected = a @ b + c
    if intrinsic.c.type.kind == "integer":
        assert (found == expected).all()
        return
    epsilon = 2.0**-53 if intrinsic.c.type.bits == 64 else 2.0**-24
    bound = (np.abs(a) @ np.abs(b) + np.abs(c)) * (intrinsic.k + 1) * epsilon
    assert (np.abs(found - expected) <= bound).all()


@EVERY
def test_one_instruction_is_numpys_product(intrinsic: Intrinsic) -> None:
    operands = drawn(intrinsic, 11)
    found = run(intrinsic, intrinsic.chips[-1], operands)
    assert_product(intrinsic, found, *inputs(intrinsic, operands), operands["c"])


def picking(operand: Operand, generator: np.random.Generator) -> Array:
    """Zeros and a single one in each row: products with it name their position."""
    layout = operand.layout
    chosen = generator.integers(0, layout.columns, (layout.blocks, layout.rows, 1))
    return np.asarray((chosen == np.arange(layout.columns)).astype(np.float64))


@EVERY
def test_values_that_name_their_position(intrinsic: Intrinsic) -> None:
    """A picks rows of B, whose elements are as different as the type allows."""
    operands = drawn(intrinsic, 5)
    generator = np.random.default_rng(6)
    operands["a"] = picking(intrinsic.a, generator)
    operands["c"][:] = 0
    found = run(intrinsic, intrinsic.chips[0], operands)
    a, b = inputs(intrinsic, operands)
    assert (found == a @ b).all()


BROADCASTING = [
    pytest.param(i, cbsz, abid, id=f"{i.name}-{cbsz}-{abid}")
    for i in library().values()
    if "cbsz_abid" in i.modifiers and not i.sparse
    for cbsz in range(1, i.blocks.bit_length())
    for abid in (0, (1 << cbsz) - 1)
]


@pytest.mark.parametrize(("intrinsic", "cbsz", "abid"), BROADCASTING)
def test_blocks_of_a_are_broadcast(intrinsic: Intrinsic, cbsz: int, abid: int) -> None:
    operands = drawn(intrinsic, 3)
    found = run(intrinsic, "gfx90a", operands, Immediates(cbsz=cbsz, abid=abid))
    a, b = inputs(intrinsic, operands)
    sources = [source_block(block, cbsz, abid) for block in range(intrinsic.blocks)]
    assert_product(intrinsic, found, a[sources], b, operands["c"])


@pytest.mark.parametrize("blgp", range(1, 8))
@pytest.mark.parametrize(
    "name", ["mfma_f32_16x16x16_f16", "mfma_f32_4x4x1_16b_f32", "mfma_f32_32x32x4_2b_bf16"]
)
def test_lanes_of_b_are_rearranged(name: str, blgp: int) -> None:
    intrinsic = find(name)
    operands = drawn(intrinsic, 4)
    found = run(intrinsic, "gfx90a", operands, Immediates(blgp=blgp))
    b = np.zeros_like(operands["b"])
    layout = intrinsic.b.layout
    for block, row, column in np.ndindex(*b.shape):
        lane, register = layout.slot(row, column, block)
        at = layout.element(source_lane(lane, blgp, layout.lanes), register)
        b[block, row, column] = operands["b"][at]
    assert_product(intrinsic, found, operands["a"], b, operands["c"])


@pytest.mark.parametrize("flags", range(8))
def test_f64_operands_are_negated(flags: int) -> None:
    intrinsic = find("mfma_f64_16x16x4_f64")
    operands = drawn(intrinsic, 8)
    found = run(intrinsic, "gfx942", operands, Immediates(blgp=flags))
    a, b, c = (operands[name] * (-1 if flags >> bit & 1 else 1) for bit, name in enumerate("abc"))
    assert_product(intrinsic, found, a, b, c)


SETS = [
    pytest.param(i, abid, id=f"{i.name}-{abid}")
    for i in library().values()
    if i.index
    for abid in range(32 // (2 * i.a.layout.elements_per_lane))
]


@pytest.mark.parametrize(("intrinsic", "abid"), SETS)
def test_a_sparse_index_has_several_sets(intrinsic: Intrinsic, abid: int) -> None:
    operands = drawn(intrinsic, 9)
    immediates = Immediates(abid=abid)
    found = run(intrinsic, intrinsic.chips[0], operands, immediates, index_set=abid)
    assert_product(intrinsic, found, *inputs(intrinsic, operands), operands["c"])


@pytest.mark.parametrize("chosen", [(0, 3), (1, 2), (2, 1), (3, 0), (3, 3)])
@pytest.mark.parametrize("m", [16, 32])
def test_scales_lie_in_any_byte(m: int, chosen: tuple[int, int]) -> None:
    k = {16: 128, 32: 64}[m]
    intrinsic = find(f"mfma_scale_f32_{m}x{m}x{k}_f8f6f4_fp8_fp4")
    operands = drawn(intrinsic, 2)
    immediates = Immediates(byte_a=chosen[0], byte_b=chosen[1])
    found = run(intrinsic, "gfx950", operands, immediates, bytes_of_scales=chosen)
    assert_product(intrinsic, found, *inputs(intrinsic, operands), operands["c"])


@pytest.mark.parametrize(
    ("name", "chip", "immediates", "message"),
    [
        ("mfma_f64_16x16x4_f64", "gfx90a", Immediates(blgp=1), "negates nothing on gfx90a"),
        ("mfma_f32_16x16x32_f16", "gfx950", Immediates(blgp=1), "it has no blgp"),
        ("mfma_f32_16x16x4_f32", "gfx942", Immediates(cbsz=1), "neither cbsz nor abid"),
        ("mfma_f32_16x16x1_4b_f32", "gfx942", Immediates(cbsz=3), "there are 4 blocks"),
    ],
)
def test_a_modifier_that_an_instruction_lacks_is_refused(
    name: str, chip: str, immediates: Immediates, message: str
) -> None:
    with pytest.raises(LoweringError, match=message):
        build_instruction(find(name), chip, immediates)


def waits_before_use(assembly: str) -> int:
    """Cycles of a wave that LLVM leaves between the instruction and the store of its result."""
    lines = [line.strip() for line in assembly.splitlines()]
    (start,) = (i for i, line in enumerate(lines) if re.match(r"v_s?mfma", line))
    count = 0
    for line in lines[start + 1 :]:
        if line.startswith(("global_store", "v_accvgpr")):
            return count
        if line.startswith("s_nop"):
            count += int(line.split()[1]) + 1
        elif line and line[0] not in ";.":
            count += 1
    raise AssertionError("the result is not stored")


@pytest.mark.parametrize(
    ("intrinsic", "chip"),
    [
        pytest.param(i, c, id=f"{i.name}-{c}")
        for i in library().values()
        for c in i.chips
        if c != "gfx908" and i.c.type.bits == 32  # there, and for f64, the waits are fixed ones
    ],
)
def test_cycles_agree_with_the_waits_that_llvm_inserts(intrinsic: Intrinsic, chip: str) -> None:
    passes = dict(intrinsic.cycles)[chip] // 4
    single = intrinsic.a.type.short == "f32" and chip != "gfx90a"
    more = 2 if single else 4 if chip == "gfx950" and passes > 2 else 3
    assert waits_before_use(build_instruction(intrinsic, chip).assembly) == passes + more


def test_registers_are_loaded_and_stored_at_any_word() -> None:
    """A lane has six words of a six-bit operand: they are no multiple of sixteen bytes."""
    intrinsic = find("mfma_scale_f32_16x16x128_f8f6f4_fp6_fp6")
    lines = build_instruction(intrinsic, "gfx950").llvm_ir.splitlines()
    accesses = [line for line in lines if " load " in line or line.strip().startswith("store ")]
    assert len(accesses) == len(intrinsic.operands) + 1
    assert all(line.endswith(", align 4") for line in accesses)
