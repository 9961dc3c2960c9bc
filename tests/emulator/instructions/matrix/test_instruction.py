"""MFMA in the emulator against AMD's tables and NumPy. The `.mfma` library has no part in this."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from mfmadsl.emulator.instructions.matrix.layout import BlockShape, input_item, output_item
from mfmadsl.emulator.text.operand import MODE
from mfmadsl.model import ARCHITECTURES
from tests.conftest import DATA
from tests.emulator.waves import put, run, wave

TABLES = {
    path.stem: json.loads(path.read_text())
    for path in sorted((DATA / "register_layouts").glob("*.v_mfma_*.json"))
}
EVERY = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())


def elements(table: dict[str, Any], operand: str) -> list[tuple[int, int, int]]:
    """(block, row, column) in the order of the table."""
    m, n, k = table["m"], table["n"], table["k"]
    rows, columns = {"a": (m, k), "b": (k, n), "d": (m, n)}[operand]
    return [(b, r, c) for b in range(table["blocks"]) for r in range(rows) for c in range(columns)]


@EVERY
def test_the_isas_formulas_give_amds_tables(table: dict[str, Any]) -> None:
    shape = BlockShape(table["m"], table["n"], table["k"], table["blocks"])
    out = {"fp32": "f32", "fp64": "f64", "int32": "i32"}[table["out_type"]]
    for operand in "abd":
        rows = table["layout"][operand]
        for (block, row, column), (register, low, high, lane) in zip(
            elements(table, operand), rows, strict=True
        ):
            if operand == "a":
                found = input_item(shape, shape.m, row, column, block)
            elif operand == "b":
                found = input_item(shape, shape.n, column, row, block)
            else:
                found = output_item(shape, out, row, column, block)
            bits = high - low + 1
            assert found == (lane, (32 * register + low) // bits)


NUMPY = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "int8": np.int8}
RUN = {
    name: table
    for name, table in TABLES.items()
    if table["in_type"] in NUMPY and not name.endswith(("f32_xf32", "xf32"))
}


@pytest.mark.parametrize("name", RUN)
def test_an_instruction_multiplies_what_the_tables_say_lies_in_the_registers(name: str) -> None:
    table = RUN[name]
    mnemonic = name.partition(".")[2]
    dtype = NUMPY[table["in_type"]]
    out = {"fp32": np.float32, "fp64": np.float64, "int32": np.int32}[table["out_type"]]
    blocks, m, n, k = (table[key] for key in ("blocks", "m", "n", "k"))
    generator = np.random.default_rng(3)
    a = generator.integers(-8, 8, (blocks, m, k)).astype(dtype)
    b = generator.integers(-8, 8, (blocks, k, n)).astype(dtype)
    c = generator.integers(-99, 99, (blocks, m, n)).astype(out)

    counts = {x: 1 + max(row[0] + row[2] // 32 for row in table["layout"][x]) for x in "abd"}
    first = {"a": 0, "b": 8, "d": 16}
    waves = wave()
    for operand, values in (("a", a), ("b", b), ("d", c)):
        registers = np.zeros((64, counts[operand], 4), np.uint8)
        for value, (register, low, high, lane) in zip(
            values.reshape(-1), table["layout"][operand], strict=True
        ):
            start = 4 * register + low // 8
            flat = registers[lane].reshape(-1)
            flat[start : start + (high - low + 1) // 8] = np.frombuffer(value.tobytes(), np.uint8)
        for i in range(counts[operand]):
            put(waves, {f"v{first[operand] + i}": registers[:, i].copy().view(np.uint32)[:, 0]})

    chip = {"cdna1": "gfx908", "cdna2": "gfx90a", "cdna3": "gfx942"}[name.partition(".")[0]]
    spans = {x: f"v[{first[x]}:{first[x] + counts[x] - 1}]" for x in "abd"}
    run(waves, f"{mnemonic} {spans['d']}, {spans['a']}, {spans['b']}, {spans['d']}", chip)

    result = np.ascontiguousarray(waves.vector[16 : 16 + counts["d"], 0].T).view(np.uint8)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    for value, (register, low, high, lane) in zip(
        expected.reshape(-1), table["layout"]["d"], strict=True
    ):
        start = 4 * register + low // 8
        found = result[lane, start : start + (high - low + 1) // 8].copy().view(out)[0]
        assert found == value


def test_the_accumulator_may_be_a_constant_and_lie_in_the_accumulation_registers() -> None:
    waves = wave()
    put(waves, {"v0": np.ones(64, np.float32), "v1": np.ones(64, np.float32)})
    run(waves, "v_mfma_f32_16x16x4_f32 a[4:7], v0, v1, 2.0")
    assert (waves.accumulation[4:8].view(np.float32) == 6).all()
    run(waves, "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, a[4:7]")
    assert (waves.vector[4:8].view(np.float32) == 10).all()


def test_lanes_that_exec_switches_off_take_part_all_the_same() -> None:
    waves = wave()
    put(waves, {"v0": np.ones(64, np.float32), "v1": np.ones(64, np.float32)})
    put(waves, {"exec": np.array(1, np.uint64)})
    run(waves, "v_mfma_f32_16x16x4_f32 v[4:7], v0, v1, 0")
    assert (waves.vector[4:8].view(np.float32) == 4).all()


def test_the_scaled_shape_without_scales() -> None:
    waves = wave()
    put(waves, {f"v{i}": np.full(64, 0x22222222, np.uint32) for i in range(4)})  # fp4: ones
    put(waves, {f"v{i}": np.full(64, 0x40404040, np.uint32) for i in range(8, 16)})  # fp8: twos
    code = "v_mfma_f32_16x16x128_f8f6f4 v[20:23], v[0:3], v[8:15], 1.0 cbsz:4"
    run(waves, code, "gfx950")
    assert (waves.vector[20:24].view(np.float32) == 257).all()


def scaled_ones(scales: str, modifiers: str = "") -> float:
    """What 128 products of ones are, scaled so; v16 holds 2^1 and v17 2^2 in each byte."""
    waves = wave()
    put(waves, {f"v{i}": np.full(64, 0x38383838, np.uint32) for i in range(16)})  # fp8: ones
    put(waves, {"v16": np.full(64, 0x80808080, np.uint32)})
    put(waves, {"v17": np.full(64, 0x81818181, np.uint32)})
    code = f"v_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[0:7], v[8:15], 0, {scales}{modifiers}"
    run(waves, code, "gfx950")
    (value,) = set(waves.vector[20:24].view(np.float32).ravel().tolist())
    return float(value)


@pytest.mark.parametrize(
    ("scales", "factor"),
    [
        ("v16, v17", 2.0 * 4.0),
        ("1.0, v16", 2.0),  # of a floating-point constant the exponent is the scale
        ("1.0, 1.0", 1.0),
        ("2.0, 0.5", 1.0),
        ("4.0, v17", 16.0),
        ("-4.0, v17", 16.0),
        ("v16, 0.5", 1.0),
    ],
)
@pytest.mark.parametrize("modifiers", ["", " op_sel_hi:[0,0,0]", " op_sel:[1,1,0]"])
def test_scales_may_be_constants(scales: str, factor: float, modifiers: str) -> None:
    assert scaled_ones(scales, modifiers) == 128 * factor


def test_an_integer_constant_is_a_scale_in_its_lowest_byte() -> None:
    assert scaled_ones("64, v16") == 128 * 2.0 ** (64 - 127) * 2
    assert scaled_ones("64, v16", " op_sel:[1,0,0]") == 128 * 2.0**-127 * 2


@pytest.mark.parametrize("chip", ARCHITECTURES)
def test_the_mode_says_whether_denormal_factors_count(chip: str) -> None:
    """Of f32 instructions, A and B; C is as it is (CDNA3 ISA, section 7.4)."""
    tiny, large = np.float32(2.0**-140), np.float32(2.0**100)
    name = {"gfx908": "16x16x4f32", "gfx90a": "16x16x4f32"}.get(chip, "16x16x4_f32")
    results = {}
    for keep in (True, False):
        waves = wave()
        waves.scalar[MODE] = 0xF0 if keep else 0xC0
        put(waves, {"v0": np.full(64, tiny), "v1": np.full(64, large)})
        put(waves, {f"v{4 + i}": np.full(64, tiny) for i in range(4)})
        run(waves, f"v_mfma_f32_{name} v[4:7], v0, v1, v[4:7]", chip)
        (value,) = set(waves.vector[4:8].view(np.float32).ravel().tolist())
        results[keep] = value
    assert results == {True: 4 * 2.0**-40, False: float(tiny)}


def test_abid_is_ignored_where_the_index_has_but_one_set() -> None:
    """The eight-bit instructions that gfx950 added (CDNA4 ISA, section 7.5.1)."""
    results = []
    for modifiers in ("", " abid:1", " abid:3"):
        waves = wave()
        generator = np.random.default_rng(3)
        for i in range(13):
            put(waves, {f"v{i}": generator.integers(0, 1 << 32, 64, np.uint32)})
        code = f"v_smfmac_i32_16x16x128_i8 v[20:23], v[0:3], v[4:11], v12{modifiers}"
        run(waves, code, "gfx950")
        results.append(waves.vector[20:24].copy())
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()
    assert results[0].any()


@pytest.mark.parametrize("c", ["v[4:7]", "v[6:9]", "v[2:5]", "v[20:23]", "a[0:3]"])
def test_d_may_lie_over_c_and_over_the_factors(c: str) -> None:
    """The result is that of registers that lie apart, however D overlaps what is read."""
    code = "v_mfma_f32_16x16x16_f16 v[4:7], v[6:7], v[8:9], {c}"
    found = []
    for apart in (True, False):
        waves = wave(2)
        generator = np.random.default_rng(8)
        halves = generator.standard_normal((2, 64, 32)).astype(np.float16).view(np.uint32)
        waves.vector[:16] = np.moveaxis(halves, -1, 0)
        waves.vector[20:24] = np.arange(4 * 128, dtype=np.float32).reshape(4, 2, 64).view(np.uint32)
        waves.accumulation[:4] = waves.vector[20:24]
        run(
            waves,
            code.format(c=c) if not apart else code.format(c=c).replace("v[4:7],", "v[30:33],"),
        )
        found.append(waves.vector[30:34].copy() if apart else waves.vector[4:8].copy())
    assert (found[0] == found[1]).all()


def test_a_constant_c_may_be_negated() -> None:
    waves = wave()
    put(waves, {"v[0:1]": np.ones(64), "v[2:3]": np.ones(64)})
    run(waves, "v_mfma_f64_16x16x4_f64 v[8:15], v[0:1], v[2:3], 1.0 neg:[0,0,1]")
    words = np.ascontiguousarray(waves.vector[8:10, 0].T).view(np.float64)
    assert (words == 3).all()


def test_of_a_sparse_index_the_first_set_is_taken_if_cbsz_says_so() -> None:
    results = []
    for modifiers in ("", " cbsz:1 abid:1", " abid:1"):
        waves = wave()
        generator = np.random.default_rng(4)
        halves = generator.standard_normal((64, 16)).astype(np.float16).view(np.uint32)
        put(waves, {f"v{i}": halves[:, i].copy() for i in range(6)})
        put(waves, {"v6": generator.integers(0, 1 << 32, 64, np.uint32)})
        run(waves, f"v_smfmac_f32_16x16x32_f16 v[8:11], v[0:1], v[2:5], v6{modifiers}")
        results.append(waves.vector[8:12].copy())
    assert (results[0] == results[1]).all()
    assert not (results[0] == results[2]).all()


@pytest.mark.parametrize(("exponent", "counts"), [(24, True), (25, False)])
def test_an_infinite_c_of_eight_bit_floats_counts_as_less_than_one(
    exponent: int, counts: bool
) -> None:
    """As MMA-Sim has it: beside products of 2^25 and more it is lost."""
    waves = wave()
    code = (exponent - 12 + 16) << 2, (12 + 16) << 2  # bf8 of gfx942: 2^(exponent - 12) and 2^12
    for first, octet in zip((0, 2), code, strict=True):
        word = np.uint32(octet * 0x01010101)
        put(waves, {f"v{first}": np.full(64, word), f"v{first + 1}": np.full(64, word)})
    put(waves, {f"v{8 + i}": np.full(64, np.inf, np.float32) for i in range(4)})
    run(waves, "v_mfma_f32_16x16x32_bf8_bf8 v[8:11], v[0:1], v[2:3], v[8:11]")
    found = waves.vector[8:12].view(np.float32)
    assert np.isinf(found).all() == counts
    assert counts or (found == 32 * 2.0**exponent).all()
