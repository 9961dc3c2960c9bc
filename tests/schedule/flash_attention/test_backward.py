"""The kernels of a backward pass, under the sanitizer, against NumPy in float64."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import tirx

import mfmadsl
from mfmadsl import ScheduleError
from mfmadsl.error import ArgumentError
from tests.schedule.flash_attention.backward import BackwardCase

SEED = int(os.environ["MFMADSL_SEED"])
CHIPS = ("gfx942", "gfx950")
FORMS = {
    "whole tiles": BackwardCase(heads=2, queries=128, keys=256, depth=128),
    "causal": BackwardCase(heads=2, queries=256, keys=256, depth=64, causal=True),
    "shared heads, causal": BackwardCase(2, 4, 130, 200, 64, kv_heads=2, causal=True),
    "more queries than keys": BackwardCase(heads=2, queries=100, keys=70, depth=80, causal=True),
    "one key": BackwardCase(heads=2, queries=33, keys=1, depth=96, layout="bshd"),
    "one query": BackwardCase(heads=2, queries=1, keys=70, depth=32),
    "a window": BackwardCase(queries=300, keys=300, depth=64, window=70),
    "a window of one key": BackwardCase(queries=70, keys=90, depth=32, window=1),
    "wide heads": BackwardCase(queries=64, keys=64, depth=256, value_depth=64),
    "odd widths": BackwardCase(queries=64, keys=100, depth=20, value_depth=12, scale=0.3),
    "bfloat16": BackwardCase(heads=2, queries=128, keys=200, dtype="bfloat16", causal=True),
    "float32 out": BackwardCase(queries=64, keys=64, depth=64, out_dtype="float32"),
}


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("form", list(FORMS))
def test_gradients_are_numpys_in_float64(form: str, arch: str) -> None:
    for kernel in FORMS[form].check(arch):
        assert kernel.remarks == ()  # all loops over keys went through the pipeline


@pytest.mark.thorough
def test_lengths_are_known_at_the_launch() -> None:
    BackwardCase(2, 2, 77, 150, causal=True, symbolic="queries keys").check()
    BackwardCase(1, 4, 70, 33, kv_heads=2, symbolic="queries", index_type="int32").check()


def test_queries_that_see_no_key_add_nothing() -> None:
    """Their L is -inf: a power of e of the score less that is infinite."""
    case = BackwardCase(queries=40, keys=10, causal=True)
    _, _, log_sum, _ = case.weights
    assert np.isneginf(log_sum[:, :, :30]).all()
    case.check()


@pytest.mark.thorough
@pytest.mark.parametrize("wanted", ["causal", "window"])
def test_what_is_masked_whole_is_left_out(wanted: str) -> None:
    """Of as many matrix instructions as without a mask, about half, or few, are executed."""
    given: dict[str, Any] = {"causal": True} if wanted == "causal" else {"window": 64}
    for masked, whole in zip(_flops(**given), _flops(), strict=True):
        assert masked < (0.65 if wanted == "causal" else 0.35) * whole


def _flops(**given: Any) -> list[float]:
    case = BackwardCase(queries=512, keys=512, **given)
    _, _, log_sum, d = case.weights
    arguments = [*case.given, *(x.astype(np.float32) for x in (log_sum, d))]
    found = []
    for workload, results in zip(case.workloads(), (1, 2), strict=True):
        kernel = mfmadsl.build(mfmadsl.attention_schedule(workload))
        outputs = [np.zeros_like(case.given[0]) for _ in range(results)]
        profile = mfmadsl.profile(kernel, [*arguments, *outputs], full=True)
        assert profile.on_chip is not None
        found.append(profile.on_chip.flops)
    return found


TILINGS: list[dict[str, Any]] = [
    {"instruction": "mfma_f32_32x32x8_f16", "rows": 32, "waves": 2},
    {"rows": 32, "waves": 1, "value_pack": 2},
    {"k_pack": 1, "keys": 64},
    {"waves": 8, "keys": 16},
]


@pytest.mark.thorough
@pytest.mark.parametrize("tiling", TILINGS, ids=str)
def test_every_tiling_is_right(tiling: dict[str, Any]) -> None:
    BackwardCase(heads=2, queries=70, keys=150, depth=64, causal=True).check(**tiling)


@pytest.mark.thorough
def test_no_registers_are_spilled() -> None:
    for workload in BackwardCase(1, 8, 4096, 4096, 128, causal=True).workloads():
        kernel = mfmadsl.build(mfmadsl.attention_schedule(workload))
        assert kernel.registers.scratch_bytes == 0
        assert kernel.remarks == ()


def drawn(number: int) -> tuple[BackwardCase, str]:
    """A backward pass and a chip."""
    random_one = random.Random(f"backward {SEED} {number}")
    choose, chance = random_one.choice, random_one.random
    shared, length = choose([1, 1, 2]), [1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 190]
    case = BackwardCase(
        choose([1, 1, 2]), shared * choose([1, 1, 2, 3]), choose(length), choose(length),
        choose([16, 20, 32, 40, 64, 80, 96, 128]), choose(["float16", "bfloat16"]),
        value_depth=choose([None, None, 16, 24, 64]), kv_heads=shared,
        layout=choose(["bhsd", "bshd"]), scale=choose([None, None, 0.01, 0.5]),
        causal=chance() < 0.5, window=choose([None, None, None, 1, 40]),
        out_dtype=choose([None, None, "float32"]),
        symbolic=choose(["", "", "queries", "keys", "queries keys"]),
        index_type=choose(["int32", "int64"]),
    )  # fmt: skip
    arch = choose(["gfx90a", "gfx942", "gfx942", "gfx950"])
    if arch == "gfx90a":  # takes weights of float16 for zero that are denormal
        case = replace(case, dtype="bfloat16")
    return case, arch


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(60))
def test_it_is_right(number: int) -> None:
    case, arch = drawn(number)
    case.check(arch)


REFUSED: list[dict[str, Any]] = [
    {"scale": 1e39}, {"window": 2**31 - 1}, {"kv_heads": 3}, {"dtype": "float32"},
    {"dtype": "float8_e4m3fnuz"}, {"layout": "sbhd"}, {"out_dtype": "int8"}, {"causal": 1},
    {"queries": tirx.Var("n", "float32")}, {"value_depth": 0},
]  # fmt: skip


@pytest.mark.parametrize("changed", REFUSED, ids=str)
def test_what_no_backward_pass_has_is_refused(changed: dict[str, Any]) -> None:
    given: dict[str, Any] = {"batch": 1, "heads": 2, "queries": 4, "keys": 4, "depth": 16}
    with pytest.raises(ArgumentError, match=f"^{next(iter(changed))}: "):
        mfmadsl.attention_backward(**(given | changed))


BAD = {"splits": (2, "no softmax"), "keys": (24, "no multiple"), "rows": (24, "no multiple")}


@pytest.mark.parametrize("field", list(BAD))
def test_an_illegal_tiling_is_refused(field: str) -> None:
    value, reason = BAD[field]
    workload, _ = BackwardCase().workloads()
    own = vars(mfmadsl.attention_tiling(workload)) | {field: value}
    with pytest.raises(ScheduleError, match=f"tiling.{field}: .*{reason}"):
        mfmadsl.attention_schedule(workload, tiling=mfmadsl.AttentionTiling(**own))


def test_tiles_that_the_lds_does_not_hold_are_refused() -> None:
    _, workload = BackwardCase(depth=256).workloads()
    own = vars(mfmadsl.attention_tiling(workload)) | {"keys": 64}
    with pytest.raises(
        ScheduleError,
        match=r"tiling\.keys: tiles of 64 keys and lines of 64 results take \d+ bytes",
    ):
        mfmadsl.attention_schedule(workload, tiling=mfmadsl.AttentionTiling(**own))
