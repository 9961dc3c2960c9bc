"""The ways of K and V into the LDS and of results out of it, in machine code and numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from examples.mfma_gemm.sequence import main_loop
from mfmadsl.model import architecture
from mfmadsl.schedule.flash_attention.reader import attention_of
from mfmadsl.schedule.flash_attention.tiling import checked
from mfmadsl.schedule.flash_attention.ways import loads_straight, turns_values
from tests.schedule.flash_attention.attended import Case

WHOLE = Case(heads=2, queries=128, keys=256, depth=64)


def loop_of(kernel: mfmadsl.Kernel) -> Counter[str]:
    """How often each instruction stands in the main loop."""
    return Counter(each.name for each in main_loop(kernel.assembly))


def ways(case: Case, arch: str, keys: int = 64) -> tuple[bool, bool]:
    """(whether reads turn V around, whether loads go straight into the LDS)."""
    workload, chip = case.workload(), architecture(arch)
    found = attention_of(workload)
    tiling = replace(mfmadsl.attention_tiling(workload, arch), keys=keys)
    chain = checked(tiling, found, chip)
    return turns_values(found, chain, chip), loads_straight(found, chain, keys, chip)


def test_gfx950_loads_whole_tiles_past_the_registers_and_turns_them_in_reads() -> None:
    assert ways(WHOLE, "gfx950") == (True, True)
    workload = replace(WHOLE, keys=1024).workload()
    tiling = replace(mfmadsl.attention_tiling(workload, "gfx950"), splits=1)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, "gfx950", tiling), "gfx950")
    loop = loop_of(kernel)
    assert loop["ds_read_b64_tr_b16"]
    assert not loop["ds_write_b128"] + loop["ds_write_b64"]
    assert kernel.assembly.count("offen lds") > 8
    assert not kernel.remarks


def test_gfx942_has_neither() -> None:
    assert ways(WHOLE, "gfx942") == (False, False)
    assert mfmadsl.attention_tiling(WHOLE.workload(), "gfx942").stages == 1


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"keys": 250}, (True, False)),  # a step with keys that are not there
        ({"depth": 40}, (True, False)),  # a row of a tile that is longer than one of K
        ({"value_depth": 40}, (True, False)),
        ({"symbolic": "keys"}, (True, False)),
        ({"kv_dtype": "int8"}, (True, False)),  # elements that are computed
        ({"page_size": 16, "lengths": (256,), "layout": "bshd"}, (True, False)),
        ({"lengths": (256,)}, (True, False)),
        ({"causal": True}, (True, True)),
        ({"layout": "bshd"}, (True, True)),
        ({"bias": True}, (True, False)),
    ],
    ids=str,
)  # fmt: skip
def test_loads_go_straight_only_where_all_of_it_is_there(
    changed: dict[str, object], expected: tuple[bool, bool]
) -> None:
    case = replace(WHOLE, **changed)  # type: ignore[arg-type]
    assert ways(case, "gfx950") == expected
    assert mfmadsl.attention_tiling(case.workload(), "gfx950").stages == 1 + expected[1]


def turned_v() -> PrimFunc:
    """An attention whose V lies [column, key]."""
    n, depth = 128, 64
    q, k = (te.placeholder((n, depth), "float16", name) for name in "qk")
    v = te.placeholder((depth, n), "float16", "v")
    d, j1, j2, j3 = (te.reduce_axis((0, extent)) for extent in (depth, n, n, n))

    def product(a: Any, b: Any, axis: Any) -> Any:
        return te.sum(a.astype("float32") * b.astype("float32"), axis=[axis])

    s = te.compute((n, n), lambda i, j: product(q[i, d], k[j, d], d))
    x = te.compute(s.shape, lambda i, j: s[i, j] * 0.125)
    most = te.compute((n,), lambda i: te.max(x[i, j1], axis=[j1]))
    e = te.compute(s.shape, lambda i, j: te.exp(x[i, j] - most[i]))
    total = te.compute((n,), lambda i: te.sum(e[i, j2], axis=[j2]))
    p = te.compute(s.shape, lambda i, j: e[i, j].astype("float16"))
    t = te.compute(q.shape, lambda i, c: product(p[i, j3], v[c, j3], j3))
    o = te.compute((depth, n), lambda c, i: t[i, c] / total[i], name="o")
    return te.create_prim_func([q, k, v, o])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_v_and_o_may_lie_column_by_column(arch: str) -> None:
    """Such a V needs no turning, and such an O has no neighbours to be stored together."""
    workload = turned_v()
    assert mfmadsl.attention_tiling(workload, arch).stages == 1
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, arch), arch)
    assert "_tr_b16" not in kernel.assembly
    generator = np.random.default_rng(2)
    q, k, v = (generator.standard_normal(shape).astype(np.float16)
               for shape in ((128, 64), (128, 64), (64, 128)))  # fmt: skip
    o = np.full((64, 128), 7, np.float32)
    mfmadsl.sanitize(kernel, [q, k, v, o])
    weights = np.exp(q.astype(np.float64) @ k.T.astype(np.float64) / 8)
    wanted = (weights / weights.sum(1, keepdims=True)) @ v.T.astype(np.float64)
    assert np.abs(o.T - wanted).max() < 4e-3


STRAIGHT = [
    *(replace(WHOLE, keys=64 * steps) for steps in (1, 2, 3, 5)),
    replace(WHOLE, causal=True), replace(WHOLE, causal=True, queries=256, window=70),
    replace(WHOLE, causal=True, queries=300, keys=128), replace(WHOLE, dtype="bfloat16"),
    replace(WHOLE, depth=128, value_depth=64, layout="bshd", cap=3.0),
    replace(WHOLE, dtype="float8_e4m3fn", depth=128, causal=True),
    replace(WHOLE, heads=4, kv_heads=2),
]  # fmt: skip


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("case", STRAIGHT, ids=str)
def test_every_number_of_steps_is_right_with_loads_ahead(case: Case, stages: int) -> None:
    case.check("gfx950", keys=64, stages=stages, splits=1)


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("stages", [2, 3])
def test_stages_are_legal_where_loads_do_not_go_straight(arch: str, stages: int) -> None:
    case = Case(heads=2, queries=70, keys=150, depth=40, causal=True)
    case.check(arch, keys=32, stages=stages)


TYPES = [
    ("float16", "float16"), ("float16", "float32"), ("bfloat16", "bfloat16"),
    ("bfloat16", "float16"), ("bfloat16", "float32"),
]  # fmt: skip


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("dtype", "out_dtype"), TYPES)
@pytest.mark.parametrize("columns", [8, 20, 33, 96, 160])
def test_results_of_any_width_leave_by_lines(
    columns: int, dtype: str, out_dtype: str, arch: str
) -> None:
    case = Case(heads=2, queries=70, keys=40, value_depth=columns, dtype=dtype, out_dtype=out_dtype)
    assembly = case.check(arch, splits=1, keys=32).assembly
    if columns % 8 == 0:
        stores = Counter(line.split()[0] for line in assembly.splitlines() if "store" in line)
        assert stores["global_store_dwordx4"]
        assert not stores["global_store_short"]


@pytest.mark.thorough
def test_a_step_that_reads_the_first_keys_leaves_none_behind() -> None:
    """Each key tells its place: a chunk in another's place would be seen."""
    case = Case(heads=1, queries=128, keys=128, depth=64, scale=1.0)
    q, k, v = case.given[:3]
    q[...], k[...] = 0, 0
    place = np.arange(128)
    for bit in range(7):  # a key's number, bit by bit: a query meets its own key alone
        sign = np.where(place >> bit & 1, 4, -4)
        q[0, 0, :, 9 * bit], k[0, 0, :, 9 * bit] = sign, sign
    v[0, 0] = place[:, None] + np.arange(64) / 64
    for arch in ("gfx942", "gfx950"):
        arguments, o, _ = case.arguments()
        workload = case.workload()
        mfmadsl.sanitize(mfmadsl.build(mfmadsl.attention_schedule(workload, arch), arch), arguments)
        assert np.abs(o[0, 0].astype(np.float64) - v[0, 0]).max() <= 2.0**-3  # of halves at 128


WIDE = [
    ({"waves": 16, "keys": 32}, Case(queries=512, keys=70, depth=32)),
    ({"waves": 8, "keys": 64, "stages": 2}, Case(queries=256, keys=300, depth=128)),
]


@pytest.mark.parametrize(("tiling", "case"), WIDE, ids=str)
def test_lines_that_have_no_place_where_tiles_were_are_counted(
    tiling: dict[str, int], case: Case
) -> None:
    with pytest.raises(mfmadsl.ScheduleError, match=r"tiling\.keys: .* bytes of the LDS"):
        replace(case, out_dtype="float32").check("gfx942", splits=1, **tiling)
