"""Programs run the same with native code and without, also where something goes wrong in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.native import lines, native_code_is_wanted, stretches
from mfmadsl.emulator.native.heat import Heat
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.error import ArgumentError
from tests.emulator.native.both import (
    KEEPING,
    copied,
    differences,
    interpret,
    known,
    random_waves,
    run_natively,
)
from tests.emulator.native.texts import lane_texts
from tests.emulator.waves import kernel

ADDRESSES = """\
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_lshl_b32 s6, s2, 8
	v_add_u32_e32 v1, s6, v1
	s_waitcnt lgkmcnt(0)
"""
LOOP = f"""\
{ADDRESSES}
	global_load_dword v2, v1, s[4:5]
	s_movk_i32 s7, 0x20
	s_waitcnt vmcnt(0)
loop:
	v_fma_f32 v2, v2, 0.5, 1.0
	ds_bpermute_b32 v3, v1, v2
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v2, v2, v3
	s_add_i32 s7, s7, -1
	s_cmp_lg_u32 s7, 0
	s_cbranch_scc1 loop
	v_cmp_gt_f32_e32 vcc, 2.0, v2
	s_and_saveexec_b64 s[8:9], vcc
	s_cbranch_execz behind
	v_mul_f32_e32 v2, 4.0, v2
behind:
	s_or_b64 exec, exec, s[8:9]
	global_store_dword v1, v2, s[4:5]
"""


@pytest.fixture(params=["native", "interpreted"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether everything is native code at once, or nothing is."""
    monkeypatch.setenv("MFMADSL_NATIVE", str(int(request.param == "native")))
    always_hot(monkeypatch)
    return str(request.param)


def always_hot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile whatever is met."""
    monkeypatch.setattr(lines, "is_considered", lambda visits, waves: True)
    monkeypatch.setattr(Heat, "is_worth", lambda *_: True)


def run(code: str, **more: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    x = np.random.default_rng(2).standard_normal(512).astype(np.float32)
    return emulate(kernel(code), [x], grid=(8,), block=(64,), **more), x


def test_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    always_hot(monkeypatch)
    results = []
    for native in ("0", "1"):
        monkeypatch.setenv("MFMADSL_NATIVE", native)
        for order in ("lockstep", "random"):
            done, x = run(LOOP, order=order)
            results.append((done.instructions, done.waves, x.tobytes()))
    assert all(result == results[0] for result in results)


def test_steps_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    always_hot(monkeypatch)
    executed: list[int] = []
    real = stretches.Stretches.run

    def counted(*arguments: Any, **more: Any) -> int:
        executed.append(real(*arguments, **more))
        return executed[-1]

    monkeypatch.setattr(stretches.Stretches, "run", counted)
    run(LOOP)
    assert sum(executed) > 32 * 6


@pytest.mark.parametrize(("code", "kind"), [
    ("v_mov_b32_e32 v4, 1.0\n\tglobal_load_dword v2, v1, s[4:5] offset:1028", "out-of-bounds"),
    ("v_mov_b32_e32 v4, 1.0\n\tds_read_b32 v2, v1 offset:200", "out-of-bounds"),
    ("s_load_dword s8, s[4:5], 0x10000", "out-of-bounds"),
    ("v_mov_b32_e32 v31, v2\n\tv_mov_b32_e32 v32, v2", "register"),
    ("v_unknown v1, v2", "error"),
])  # fmt: skip
def test_faults(code: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    always_hot(monkeypatch)
    faults = []
    for native in ("0", "1"):
        monkeypatch.setenv("MFMADSL_NATIVE", native)
        with pytest.raises(EmulationError) as caught:
            run(f"{ADDRESSES}\t{code}\n\tglobal_store_dword v1, v2, s[4:5]", lds_bytes=256)
        faults.append(caught.value.fault)
    assert faults[0] == faults[1]
    assert faults[0].line is not None
    assert kind in (faults[0].kind, "error")


def test_the_budget(mode: str) -> None:
    del mode
    with pytest.raises(EmulationError, match="executed 100 instructions"):
        run(LOOP, budget=100)


def test_what_is_constant_stays(mode: str) -> None:
    del mode
    x = np.zeros(512, np.float32)
    x.flags.writeable = False
    with pytest.raises(EmulationError, match="read-only"):
        emulate(kernel(LOOP), [x], grid=(8,), block=(64,))


def test_a_sanitized_run_tells_the_same(mode: str) -> None:
    del mode
    x = np.ones(512, np.float32)
    found = sanitize(kernel(LOOP), [x], grid=(8,), block=(64,))
    assert not found.faults


TEXTS = [
    *lane_texts(), "v_add_f32 v2, v3, v4", "v_add_f32 v3, v2, v2", "v_exp_f32 v4, v2",
    "v_mov_b32 v5, v4", "v_pk_fma_f32 v[4:5], v[2:3], v[6:7], v[4:5]", "v_max3_f32 v2, v3, v4, v5",
    "v_cmp_lt_f32 vcc, v2, v3", "v_cmpx_gt_i32 vcc, v2, v3", "s_and_saveexec_b64 s[20:21], vcc",
    "s_or_b64 exec, exec, s[20:21]", "s_add_u32 s4, s4, s5", "s_addc_u32 s5, s5, s6",
    "s_cselect_b32 s6, s4, s5", "s_mov_b64 exec, s[22:23]", "v_cvt_f16_f32 v2, v3",
    "v_mov_b32_dpp v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf", "v_perm_b32 v3, v2, v4, s5",
    "v_accvgpr_write_b32 a2, v3", "v_accvgpr_read_b32 v3, a2",
    "v_lshl_add_u64 v[2:3], v[4:5], 2, v[2:3]",
]  # fmt: skip
KNOWN = [each for text in TEXTS if (each := known(text, KEEPING)) is not None]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.integers(0, len(KNOWN) - 1), min_size=2, max_size=24),
    st.integers(0, 3),
    st.sampled_from(["all", "random", "few"]),
)
def test_any_stretch(chosen: Sequence[int], seed: int, lanes: str) -> None:
    each = [KNOWN[number] for number in chosen]
    one, other = (copied(random_waves(seed, KEEPING.mode, lanes)) for _ in range(2))
    interpret(one, [known.instruction for known in each], KEEPING)
    assert run_natively(other, [known.step for known in each]) == len(each)
    assert not differences(one, other)


def test_a_wish_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MFMADSL_NATIVE", "off")
    with pytest.raises(ArgumentError, match="MFMADSL_NATIVE: is 0 or 1, not 'off'"):
        native_code_is_wanted()
