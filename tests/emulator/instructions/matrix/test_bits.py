"""The bits of matrix instructions against those of real chips, as MMA-Sim gives them."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator.instructions.matrix import is_modelled
from mfmadsl.emulator.instructions.matrix.arithmetic import arithmetic
from mfmadsl.emulator.instructions.matrix.layout import BlockShape, input_item, output_item
from tests.conftest import DATA
from tests.emulator.waves import put, run, wave

Array = npt.NDArray[Any]

VECTORS = {
    name: values
    for file in ("vectors", "edges")
    for name, values in np.load(DATA / "matrix_numerics" / f"{file}.npz").items()
}
CASES = sorted({name.rpartition(".")[0] for name in VECTORS})
FLOATS = {4: np.float32, 8: np.float64}


def shape_of(mnemonic: str) -> BlockShape:
    """By its name or, of the older instructions, whose names do not say the blocks, by AMD's."""
    m, n, k = (int(x) for x in re.findall(r"(\d+)x(\d+)x(\d+)", mnemonic)[0])
    named = re.search(r"_(\d+)b_", mnemonic)
    if named:
        return BlockShape(m, n, k, int(named[1]))
    for table in (DATA / "register_layouts").glob(f"cdna[12].{mnemonic}.json"):
        return BlockShape(m, n, k, json.loads(table.read_text())["blocks"])
    return BlockShape(m, n, k, 1)


def result_of(chip: str, mnemonic: str, a: Array, b: Array, c: Array) -> Array:
    """The bits of D, where every block has this A, B and C."""
    shape = shape_of(mnemonic)
    out = "f64" if c.itemsize == 8 else "f32"
    blocks = range(shape.blocks)
    slots = {
        "a": {(p, x, k): input_item(shape, shape.m, x, k, p) for p in blocks for x, k in ij(a)},
        "b": {(p, k, x): input_item(shape, shape.n, x, k, p) for p in blocks for k, x in ij(b)},
        "d": {(p, i, j): output_item(shape, out, i, j, p) for p in blocks for i, j in ij(c)},
    }
    waves, spans, first = wave(), {}, 0
    for operand, values in (("a", a), ("b", b), ("d", c)):
        places = slots[operand]
        held = np.zeros((64, 1 + max(item for _, item in places.values())), values.dtype)
        for (_, *index), slot in places.items():
            held[slot] = values[tuple(index)]
        words = held.view(np.uint32)
        put(waves, {f"v{first + i}": words[:, i].copy() for i in range(words.shape[1])})
        spans[operand] = first, words.shape[1]
        first += words.shape[1]
    names = {x: f"v[{start}:{start + count - 1}]" for x, (start, count) in spans.items()}
    run(waves, f"{mnemonic} {names['d']}, {names['a']}, {names['b']}, {names['d']}", chip)
    start, count = spans["d"]
    found = np.ascontiguousarray(waves.vector[start : start + count, 0].T).view(c.dtype)
    return np.array([found[slot] for slot in slots["d"].values()]).reshape(-1, *c.shape)


def ij(matrix: Array) -> list[tuple[int, int]]:
    return list(np.ndindex(matrix.shape[0], matrix.shape[1]))


def same_bits(found: Array, expected: Array) -> Array:
    """Equal, or NaN both: payloads do not matter."""
    dtype = FLOATS[expected.itemsize]
    nan = np.isnan(found.view(dtype)) & np.isnan(expected.view(dtype))
    return np.asarray((found == expected) | nan)


@pytest.mark.parametrize("case", CASES)
def test_every_bit_is_that_of_the_chip(case: str) -> None:
    chip, mnemonic, _ = case.split(".")
    a, b, c, d = (VECTORS[f"{case}.{name}"] for name in "abcd")
    assert is_modelled(mnemonic, chip)
    assert same_bits(result_of(chip, mnemonic, a, b, c), d).all()


NORMAL = [case for case in CASES if case.endswith((".normal", ".few-few"))]


@pytest.mark.parametrize("case", NORMAL)
def test_the_chips_own_results_are_within_the_tolerance(case: str) -> None:
    """That of GEMMs: against the exact sums of what MMA-Sim says that the chips give."""
    chip, mnemonic, _ = case.split(".")
    a, b, c, d = (VECTORS[f"{case}.{name}"] for name in "abcd")
    types = re.split(r"\d+x\d+x\d+(?:_\d+b)?_?", mnemonic)[1].removesuffix("_1k")
    kinds = (types.split("_") * 2)[:2]
    left, right = (numbers_of(x, kind) for x, kind in zip((a, b), kinds, strict=True))
    out = FLOATS[c.itemsize]
    before, found = c.view(out).astype(np.float64), d.view(out).astype(np.float64)
    units = arithmetic(chip, True, kinds[0]).roundings(a.shape[1] + 1)
    unit = 2.0 ** (-53 if out is np.float64 else -24)
    for i, j in ij(c):
        if np.isnan(found[i, j]):  # of what AMD's eight-bit floats have for -0
            continue
        products = [Fraction(x) * Fraction(y) for x, y in zip(left[i], right[:, j], strict=True)]
        sizes = sum(map(abs, products), abs(Fraction(before[i, j])))
        factors = Fraction(1, 1 << 9) if kinds[0] == "xf32" else 0
        error = abs(sum(products, Fraction(before[i, j])) - Fraction(found[i, j]))
        assert error <= sizes * (units * Fraction(unit) + factors)


def numbers_of(bits: Array, kind: str) -> Array:
    """Python's floats, which hold them exactly."""
    dtypes = {"f64": np.float64, "f32": np.float32, "xf32": np.float32, "f16": np.float16,
              "bf16": ml_dtypes.bfloat16, "fp8": ml_dtypes.float8_e4m3fnuz,
              "bf8": ml_dtypes.float8_e5m2fnuz}  # fmt: skip
    return np.asarray(bits.view(dtypes[kind]).astype(np.float64).astype(object))


@pytest.mark.parametrize(
    ("mnemonic", "chip", "modelled"),
    [
        ("v_mfma_f32_16x16x32_f16", "gfx950", False),
        ("v_mfma_f32_16x16x4_f32", "gfx950", False),
        ("v_mfma_f32_16x16x128_f8f6f4", "gfx950", False),
        ("v_mfma_scale_f32_16x16x128_f8f6f4", "gfx950", False),
        ("v_smfmac_f32_16x16x32_f16", "gfx942", False),
        ("v_smfmac_i32_16x16x64_i8", "gfx942", True),
        ("v_mfma_i32_16x16x64_i8", "gfx950", True),
        ("v_mfma_f32_16x16x16_f16", "gfx942", True),
        ("v_add_f32_e32", "gfx950", True),
    ],
)
def test_where_no_model_of_the_chip_is_known_is_said(
    mnemonic: str, chip: str, modelled: bool
) -> None:
    assert is_modelled(mnemonic, chip) == modelled
