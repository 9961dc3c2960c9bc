"""Triton's kernels run in the emulator, give NumPy's numbers, and are not accused."""

from __future__ import annotations

import json
import re
from math import erf
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.sanitizer import sanitize
from tests.emulator.code_object.objects import instructions
from tests.triton.compiled import compile_cases

ROOT = Path(__file__).parent.parent.parent
ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
KINDS = ("f16", "bf16", "f32", "f64", "i8", "fp8", "bf8")
GEMMS = [
    f"{arch}.{kind}.{order}"
    for arch in ARCHITECTURES
    for kind in KINDS
    for order in ("bt", "kn")
    if arch != "gfx90a" or kind not in ("fp8", "bf8")
]
FUNCTIONS = [f"{arch}.{name}" for arch in ARCHITECTURES for name in ("softmax", "histogram")]
M, N, K = 112, 80, 80  # multiples of 16, as the kernels are told, but not of the tile


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cases(tmp_path_factory.mktemp("triton"), [*GEMMS, *FUNCTIONS])


def dtype_of(kind: str, arch: str) -> np.dtype[Any]:
    fnuz = arch == "gfx942"
    dtype: np.dtype[Any] = np.dtype({
        "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
        "i8": np.int8,
        "fp8": ml_dtypes.float8_e4m3fnuz if fnuz else ml_dtypes.float8_e4m3fn,
        "bf8": ml_dtypes.float8_e5m2fnuz if fnuz else ml_dtypes.float8_e5m2,
    }[kind])  # fmt: skip
    return dtype


def tolerance(kind: str) -> float:
    """Of the largest element: the rounding of C, or of the sum, or of the factors (xf32)."""
    return {"f16": 2**-11, "bf16": 2**-8, "f32": 2**-10, "f64": 1e-14, "i8": 0}.get(kind, 1e-6)


def random(shape: tuple[int, int], kind: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    generator = np.random.default_rng(shape)
    if kind == "i8":
        return generator.integers(-128, 128, shape, np.int8)
    return generator.standard_normal(shape).astype(dtype)


def run(folder: Path, case: str, args: list[Any], groups: int) -> None:
    sanitized(folder, case, (folder / f"{case}.s").read_text(), args, groups)


def sanitized(folder: Path, case: str, text: str, args: list[Any], groups: int) -> None:
    facts = json.loads((folder / f"{case}.json").read_text())
    # Triton passes two more pointers, to memory that these kernels do not use.
    found = sanitize(
        text, [*args, None, None], (groups,), (64 * facts["warps"],),
        lds_bytes=facts["lds_bytes"], keep_going=True,
    )  # fmt: skip
    assert [str(fault) for fault in found.faults] == []


@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize("case", GEMMS)
def test_matrix_products(case: str, compiled: Path) -> None:
    arch, kind, order = case.split(".")
    dtype = dtype_of(kind, arch)
    a, b = random((M, K), kind, dtype), random((K, N), kind, dtype)
    out = {"i8": np.dtype(np.int32)}.get(kind, dtype if dtype.itemsize > 1 else np.dtype("f4"))
    c = np.full((M, N), 99, out)
    stored = np.ascontiguousarray(b.T) if order == "bt" else b
    sizes = [M, N, K, K, K if order == "bt" else N, N]
    run(compiled, case, [a, stored, c, *map(np.int32, sizes)], 4)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    error = np.abs(c.astype(np.float64) - expected).max() / np.abs(expected).max()
    assert error <= tolerance(kind)


def text_of_code_object(folder: Path, case: str) -> str:
    arch = case.partition(".")[0]
    found = read_code_object((folder / f"{case}.hsaco").read_bytes(), arch)
    (name,) = found.kernels
    return found.assembly(name)


@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize("case", [*GEMMS, *FUNCTIONS])
def test_code_objects_are_read_as_the_text_that_llvm_wrote(case: str, compiled: Path) -> None:
    """But for what fills the place up to 256 bytes, where arguments are preloaded."""
    found = "\n".join(instructions(text_of_code_object(compiled, case)))
    unfilled = re.sub(r"(s_nop 0\n){16,}", "", found)
    assert unfilled.splitlines() == instructions((compiled / f"{case}.s").read_text())


@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_code_objects_run_to_the_same_bits(arch: str, compiled: Path) -> None:
    results = []
    for text in (
        text_of_code_object(compiled, f"{arch}.softmax"),
        (compiled / f"{arch}.softmax.s").read_text(),
    ):
        x = random((3, 1000), "f32", np.dtype(np.float32))
        y = np.zeros_like(x)
        sanitized(compiled, f"{arch}.softmax", text, [x, y, np.int32(1000)], 3)
        results.append(y.tobytes())
    assert results[0] == results[1]


@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_exponentials_and_reductions(arch: str, compiled: Path) -> None:
    x = random((3, 1000), "f32", np.dtype(np.float32))
    y = np.zeros_like(x)
    run(compiled, f"{arch}.softmax", [x, y, np.int32(1000)], 3)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=2e-6)


@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_atomics(arch: str, compiled: Path) -> None:
    x = random((1, 1500), "f32", np.dtype(np.float32))[0]
    y = np.zeros(8, np.float32)
    run(compiled, f"{arch}.histogram", [x, y, np.int32(1500)], 2)
    expected = [sum(erf(v) for v in x[i::8].tolist()) for i in range(8)]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
