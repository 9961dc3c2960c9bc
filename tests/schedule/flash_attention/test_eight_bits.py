"""Caches of eight bits, which become what Q is, and attentions of eight bits in all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.error import ArgumentError
from mfmadsl.model import EIGHT_BIT_FLOATS
from tests.schedule.flash_attention.attended import Case

CACHE = Case(batch=3, heads=4, kv_heads=2, keys=192, depth=64, scales="token", kv_dtype="int8")
FORMS = {
    "one query": replace(CACHE, queries=1),
    "several, causal": replace(CACHE, queries=40, causal=True),
    "a scale for each head": replace(CACHE, queries=40, scales="head", bias=True, cap=3.0),
    "no scales": replace(CACHE, queries=40, scales=None),
    "pages": replace(CACHE, queries=1, lengths=(192, 7, 0), page_size=16),
    "pages of one key": replace(CACHE, queries=5, lengths=(64, 192, 1), page_size=1, window=50),
    "any number": replace(CACHE, queries=40, symbolic="queries keys"),
    "head before place": replace(CACHE, queries=40, layout="bshd", lengths=(1, 99, 192)),
    "bfloat16": replace(CACHE, queries=40, dtype="bfloat16"),
}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_bytes_become_what_queries_are(form: Case, arch: str) -> None:
    assert form.check(arch).remarks == ()


@pytest.mark.thorough
@pytest.mark.parametrize("kv_dtype", EIGHT_BIT_FLOATS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floats_of_a_cache_need_no_instruction_of_theirs(dtype: str, kv_dtype: str) -> None:
    replace(CACHE, dtype=dtype, kv_dtype=kv_dtype, queries=20).check("gfx942")


NATIVE = [
    ("gfx942", "float8_e4m3fnuz"), ("gfx942", "float8_e5m2fnuz"),
    ("gfx950", "float8_e4m3fn"), ("gfx950", "float8_e5m2"),
]  # fmt: skip
WHOLE = Case(heads=4, kv_heads=2, queries=70, keys=192, depth=64, scales="head")
WHOLES = {
    "causal": replace(WHOLE, causal=True),
    "one query": replace(WHOLE, queries=1),
    "no scales": replace(WHOLE, scales=None, depth=80),
    "pages": replace(WHOLE, batch=2, lengths=(150, 3), page_size=16),
    "any number": replace(WHOLE, symbolic="queries keys"),
}


@pytest.mark.parametrize(("arch", "dtype"), NATIVE)
@pytest.mark.parametrize("form", WHOLES.values(), ids=WHOLES)
def test_eight_bits_are_multiplied(form: Case, arch: str, dtype: str) -> None:
    kernel = replace(form, dtype=dtype).check(arch)
    assert kernel.remarks == ()
    name = {"gfx942": "_fp8_fp8" if "e4m3" in dtype else "_bf8_bf8", "gfx950": "_f8f6f4"}[arch]
    assert name in kernel.assembly


@pytest.mark.thorough
@pytest.mark.parametrize(("arch", "dtype"), NATIVE)
def test_many_small_weights_count(arch: str, dtype: str) -> None:
    """Each is below the least normal number of e4m3, and together they are most of the sum."""
    case = Case(queries=16, keys=8000, depth=16, scale=1e-3, bias=True, dtype=dtype)
    bias, v = case.given[3], case.given[2]
    bias[...], bias[..., 5] = -7, 0
    v[...] = np.abs(v.astype(np.float32)).astype(v.dtype)
    arguments, o, _ = case.arguments()
    kernel = mfmadsl.build(mfmadsl.attention_schedule(case.workload(), arch), arch)
    mfmadsl.sanitize(kernel, arguments)
    wanted, _, bound = case.expected()
    # They are alike, so that errors of rounding do not even out.
    assert (np.abs(o - wanted) <= (2.0**-4 if "e4m3" in dtype else 2.0**-3) * bound).all()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"kv_dtype": "int4"}, "kv_dtype: "),
    ({"kv_dtype": "bfloat16"}, "kv_dtype: "),
    ({"dtype": "float8_e4m3fn", "kv_dtype": "int8"}, "kv_dtype: with a dtype of eight bits"),
    ({"scales": "head"}, "scales: K and V of float16 have none"),
    ({"kv_dtype": "int8", "scales": "row"}, "scales: "),
    ({"kv_dtype": "int8", "scales": 1}, "scales: "),
    ({"dtype": "float8_e5m2", "scales": "token"}, "scales: weights of float8_e5m2 have no place"),
    ({"dtype": "int8"}, "dtype: "),
    ({"dtype": "float8_e5m2", "out_dtype": "float8_e5m2"}, "out_dtype: "),
]


@pytest.mark.parametrize(("changed", "reason"), REFUSED, ids=str)
def test_what_has_no_kernel_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{reason}"):
        mfmadsl.attention(1, 2, 4, 32, 16, **changed)


@pytest.mark.parametrize(("arch", "dtype"), [("gfx90a", "float8_e4m3fn"), *NATIVE[2:]])
def test_types_of_other_chips_are_refused(arch: str, dtype: str) -> None:
    other = "gfx942" if arch == "gfx950" else arch
    with pytest.raises(ScheduleError, match="eight-bit floats"):
        mfmadsl.attention_schedule(Case(dtype=dtype).workload(), other)
