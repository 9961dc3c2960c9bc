"""Experts whose weights are stored in few bits: rows of each meet the weights of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mfmadsl
from mfmadsl.error import ArgumentError
from mfmadsl.gemm.quantised import random_weights, weights_of
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule.workload.quantised import FORMATS
from tests.schedule.matrix_core.gemm.workloads import Array

CHIPS = ["gfx908", "gfx90a", "gfx942", "gfx950"]
GROUPS = {"gptq": 128, "awq": 64, "q4f16": 32, "mxfp4": 32, "int8": 384}


def compared(
    arch: str, name: str, dtype: str, ends: list[int], shape: tuple[int, int, int],
    tokens: int | None = None,
) -> None:  # fmt: skip
    """Multiply under the sanitizer, and compare with the weights in float64."""
    (m, n, k), experts = shape, len(ends)
    group = GROUPS[name] if name in ("gptq", "awq") else None
    workload = mfmadsl.quantised_matmul(
        m, n, k, name, dtype, group=group, experts=experts, tokens=tokens
    )
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    assert not kernel.remarks
    generator = np.random.default_rng(1)
    stored, scale = FORMATS[name], k if name == "int8" else GROUPS[name]
    each = [random_weights(generator, stored, n, k, scale, dtype) for _ in range(experts)]
    given = m if tokens is None else tokens
    a = generator.integers(-8, 9, (given, k)).astype(numpy_type(dtype))
    which = np.arange(m) if tokens is None else generator.integers(0, tokens, m)
    rows: list[Any] = [] if tokens is None else [which.astype(np.int32)]
    arrays = [np.stack(parts) for parts in zip(*each, strict=True)]
    c = np.full((m, n), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [a, *rows, np.array(ends, np.int32), *arrays, c])
    expert = (np.array(ends[:-1]) <= np.arange(m)[:, None]).sum(axis=1)
    right: Array = np.stack([weights_of(stored, parts, scale, dtype) for parts in each])
    left, right = a[which].astype(np.float64), right.astype(np.float64)[expert]
    bound = 2 * k * 2.0**-24 * np.einsum("ik,ijk->ij", np.abs(left), np.abs(right))
    assert (np.abs(c - np.einsum("ik,ijk->ij", left, right)) <= bound).all()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", list(FORMATS))
def test_each_format(name: str, dtype: str, arch: str) -> None:
    compared(arch, name, dtype, [20, 20, 37, 50], (50, 72, 384))


@pytest.mark.parametrize("arch", CHIPS[2:])
@pytest.mark.parametrize("ends", [[0, 0, 40], [40, 40, 40], [1, 39, 40]])
def test_experts_without_rows(ends: list[int], arch: str) -> None:
    compared(arch, "mxfp4", "float16", ends, (40, 96, 256))


@pytest.mark.parametrize("arch", CHIPS[2:])
@pytest.mark.parametrize("name", ["gptq", "mxfp4"])
def test_rows_of_tokens(name: str, arch: str) -> None:
    compared(arch, name, "bfloat16", [17, 64], (64, 64, 384), tokens=29)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"experts": 1}, "experts: is at least 2"),
        ({"experts": "8"}, "experts: "),
        ({"tokens": 4}, "tokens: are of a product with experts"),
        ({"experts": 2, "tokens": 0}, "tokens: "),
    ],
)
def test_arguments_that_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        mfmadsl.quantised_matmul(16, 64, 256, "gptq", **more)
