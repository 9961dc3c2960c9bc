"""Kernels of ours in functions of the KV cache, beside float64, and TVM's own where they have to
run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm

import mfmadsl
from mfmadsl.relax.kv_cache.form import CacheKind
from mfmadsl.relax.kv_cache.replace import with_cache_kernels
from tests.cases import drawn
from tests.relax.kv_cache.functions import Call, Form
from tests.relax.kv_cache.launched import Launched, launched

WINDOW = 20
FORMS = [
    Form(CacheKind.DECODE), Form(CacheKind.DECODE, slides=True), Form(CacheKind.PREFILL),
    Form(CacheKind.PREFILL, slides=True, window=WINDOW), Form(CacheKind.RAGGED),
    Form(CacheKind.LATENT), Form(CacheKind.LATENT, slides=True),
    Form(CacheKind.DECODE, dtype="bfloat16"), Form(CacheKind.RAGGED, dtype="bfloat16"),
]  # fmt: skip


def ours(form: Form, calls: list[Call], folder: Path, arch: str = "gfx942") -> Launched:
    target = mfmadsl.target(arch)
    module = tvm.IRModule({form.name: form.function(target)})
    module, (line,) = with_cache_kernels(module, target)
    assert line.is_ours
    return launched(module, target, calls, folder)


@pytest.mark.thorough
@pytest.mark.parametrize("form", drawn(FORMS, 3), ids=lambda form: form.name)
def test_they_attend_as_float64_does(form: Form, tmp_path: Path) -> None:
    several = [True] if form.kind is CacheKind.DECODE else [True, False]
    calls = [Call(form, causal, seed=n) for n, causal in enumerate(several)]
    found = ours(form, calls, tmp_path)
    assert all("v_mfma" in found.assembly[name] for name in found.kernels[:: len(found.kernels)])
    tolerance = 6 * 2.0 ** (-8 if form.dtype == "bfloat16" else -11)
    for call, (o, logarithm) in zip(calls, found.results, strict=True):
        expected, expected_logarithm = call.expected()
        np.testing.assert_allclose(o, expected, atol=tolerance)
        np.testing.assert_allclose(logarithm, expected_logarithm, rtol=1e-6, atol=1e-5)


@pytest.mark.thorough
def test_arrays_without_offsets_give_the_same(tmp_path: Path) -> None:
    form = Form(CacheKind.PREFILL)
    one, other = ours(form, [Call(form), Call(form, offset=0)], tmp_path).results
    for array, same in zip(one, other, strict=True):
        np.testing.assert_array_equal(array, same)


@pytest.mark.thorough
def test_queries_and_keys_that_are_embedded_are_tvms(tmp_path: Path) -> None:
    form, target = Form(CacheKind.DECODE), mfmadsl.target("gfx942")
    call = Call(form, rotary=1)
    (own, theirs) = (tmp_path / name for name in ("own", "theirs"))
    own.mkdir()
    theirs.mkdir()
    found = ours(form, [call], own)
    alone = launched(tvm.IRModule({form.name: form.function(target)}), target, [call], theirs)
    assert len(found.kernels) == len(alone.kernels) == 1
    assert not any("v_mfma" in found.assembly[name] for name in found.kernels)
    for array, same in zip(found.results[0], alone.results[0], strict=True):
        np.testing.assert_array_equal(array, same)


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_other_chips_do_too(arch: str, tmp_path: Path) -> None:
    form = Form(CacheKind.PREFILL)
    call = Call(form)
    ((o, _),) = ours(form, [call], tmp_path, arch).results
    np.testing.assert_allclose(o, call.expected()[0], atol=6 * 2.0**-11)
