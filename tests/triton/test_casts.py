"""Casts between all types as Triton compiles them, beside NumPy and ml_dtypes, on edge values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator import emulate
from tests.triton.compiled import compile_cases

ROOT = Path(__file__).parent.parent.parent
ARCHITECTURES = ("gfx90a", "gfx942", "gfx950")
DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16,
        "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
        "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
        "fp8e5": ml_dtypes.float8_e5m2, "fp8e4nv": ml_dtypes.float8_e4m3fn,
        "fp8e4b8": ml_dtypes.float8_e4m3fnuz, "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
    }.items()
}  # fmt: skip
CASES = [f"{arch}.{source}.casts" for arch in ARCHITECTURES for source in DTYPES]
CASES += [f"{arch}.{x}.narrow" for arch in ARCHITECTURES for x in ("fp32", "fp16", "bf16")]
LARGE = [
    127.5,
    128,
    255,
    256,
    32767,
    65504,
    65519,
    65520,
    65535,
    2.0**31,
    2.0**32,
    2.0**53,
    2.0**62,
]
SMALL = [2.0**-k for k in (1, 9, 10, 14, 15, 16, 17, 24, 25, 126, 127, 149, 1022, 1074)]
TIES = [0.0, 1, 1.5, 2.5, 3.5, 5, 7, 17, 19, 34, 240, 248, 447, 448, 57344, 1e-40, 3e-310]
SPECIAL = [np.inf, np.nan]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cases(tmp_path_factory.mktemp("casts"), CASES)


def values(dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """256 numbers of a type: all that are special, and random ones."""
    generator = np.random.default_rng(7)
    if dtype.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        near = {2**k + step for k in range(8 * dtype.itemsize) for step in (-1, 0, 1)}
        edges = sorted(x for x in near | {-x for x in near} if limits.min <= x <= limits.max)
        edges = [limits.min, limits.max, *edges[:: len(edges) // 200 + 1]]
        rest = generator.integers(limits.min, limits.max, 256, dtype=dtype, endpoint=True)
        return np.concatenate([np.array(edges, dtype), rest])[:256]
    positive = [*LARGE, *SMALL, *TIES, *SPECIAL, float(ml_dtypes.finfo(dtype).max)]
    with np.errstate(all="ignore"):
        edges_ = np.array([*positive, *(-x for x in positive)], np.float64).astype(dtype)
        rest = generator.standard_normal(256) * 2.0 ** generator.integers(-30, 31, 256)
        return np.concatenate([edges_, rest.astype(dtype)])[:256]


def defined(x: npt.NDArray[Any], target: np.dtype[Any]) -> npt.NDArray[np.bool_]:
    """Which casts have a result that all agree on."""
    if x.dtype.kind in "iu":
        return np.ones(len(x), np.bool_)
    wide = x.astype(np.float64)
    finite = np.isfinite(wide)
    if target.kind in "iu":
        limits, whole = np.iinfo(target), np.trunc(wide)
        return finite & (whole >= float(limits.min)) & (whole < float(limits.max + 1))
    if target.itemsize == 1:  # Triton saturates
        return finite & (np.abs(wide) <= float(ml_dtypes.finfo(target).max))
    if x.dtype.itemsize == 1:  # Triton's own shifts of bits know no NaN
        return finite
    return np.ones(len(x), np.bool_)


@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize("case", CASES)
def test_casts(case: str, compiled: Path) -> None:
    x = values(DTYPES[case.split(".")[1]])
    facts = json.loads((compiled / f"{case}.json").read_text())
    outputs = [np.zeros(256, DTYPES[name]) for name in facts["targets"]]
    # Triton passes two more pointers, to memory that these kernels do not use.
    emulate((compiled / f"{case}.s").read_text(), [x, *outputs, None, None], (1,), (64,))
    for found in outputs:
        sure = defined(x, found.dtype)
        with np.errstate(all="ignore"):
            expected = x[sure].astype(found.dtype)
        exact = found.dtype if found.dtype.kind in "iu" else np.float64
        np.testing.assert_array_equal(
            found[sure].astype(exact), expected.astype(exact), str(found.dtype)
        )
