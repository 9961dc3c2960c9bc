"""Generated modules, imported: names, registration on demand, the shared store."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tvm.s_tir import TensorIntrin

from mfmadsl.codegen import module_text, write_modules
from mfmadsl.language import Source, find, library, load_source
from mfmadsl.model import Intrinsic
from mfmadsl.schedule import load_intrinsic

HALF = find("mfma_f32_16x16x16_f16")
EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)


@EVERY
def test_all_pairs_of_a_module_are_accepted_by_tvm(intrinsic: Intrinsic) -> None:
    module = load_intrinsic(intrinsic)
    names = module.register()
    assert names == list(module.NAMES.values())
    assert len(names) == (17 if intrinsic.scales else 13)
    for name in names:
        registered = TensorIntrin.get(name)
        assert registered.desc.params[0].dtype == registered.impl.params[0].dtype


@pytest.mark.parametrize(("m", "n"), [(1, 64), (64, 1)])
def test_all_pairs_of_a_single_row_or_column_are_accepted_by_tvm(m: int, n: int) -> None:
    text = f"""
    use layouts
    layout single(i, j) {{ lane = j + J * i  register = 0 }}
    intrinsic mfma_f32_{m}x{n}x64_f32 {{
      shape m={m} n={n} k=64
      a float32[i, k] at operand(i, k, pack={m})
      b float32[k, j] at operand(j, k, pack={n})
      c float32[i, j] at single(i, j)
      call "llvm.amdgcn.mfma.f32.{m}x{n}x64.f32" unknown
      cycles gfx942=16
    }}
    """
    (intrinsic,) = load_source(Source("single.mfma", text))
    for k_pack in (1, 2):
        assert len(load_intrinsic(intrinsic, k_pack).register()) == 13


def test_a_pair_is_registered_when_its_name_is_first_taken() -> None:
    module = load_intrinsic(replace(HALF, name="probe_half"))
    assert TensorIntrin.get("probe_half_fill", allow_missing=True) is None
    assert module.FILL == "probe_half_fill"
    assert TensorIntrin.get("probe_half_fill") is not None
    assert TensorIntrin.get("probe_half_compute", allow_missing=True) is None


def test_a_name_that_a_module_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'LOAD_D'"):
        load_intrinsic(HALF).LOAD_D  # noqa: B018


def test_an_intrinsic_is_loaded_once_and_anew_when_its_text_changes() -> None:
    first = load_intrinsic("mfma_f32_16x16x16_f16")
    assert load_intrinsic(HALF) is first
    changed = replace(HALF, name="probe_changed")
    assert load_intrinsic(changed) is load_intrinsic(changed)
    assert load_intrinsic(replace(changed, doc="other")) is not load_intrinsic(changed)


def test_a_written_module_imports_without_us_and_registers_under_the_same_names(
    tmp_path: Path,
) -> None:
    write_modules({"half": module_text(HALF)}, tmp_path)
    program = (
        "import sys, tvm; known = set(sys.modules);"  # TVM looks for devices, one of which is ours
        "import half; print(half.COMPUTE, half.M, half.IN_DTYPE);"
        "assert not any(name.startswith('mfmadsl') for name in set(sys.modules) - known)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["mfma_f32_16x16x16_f16_compute", "16", "float16"]


def test_modifiers_are_arguments_of_the_compute_pair() -> None:
    blocks = load_intrinsic("mfma_f32_4x4x4_16b_f16")
    name = blocks.compute_with(cbsz=2, abid=1, blgp=3)
    assert name == "mfma_f32_4x4x4_16b_f16_compute_cbsz2_abid1_blgp3"
    text = TensorIntrin.get(name).impl.script()
    assert "2, 1, 3)" in text
    assert "vblock // 4 * 4" in TensorIntrin.get(name).desc.script()
    double = load_intrinsic("mfma_f64_16x16x4_f64")
    negated = TensorIntrin.get(double.compute_with(neg=5))
    assert "* T.float64(-1.0) + A" in negated.desc.script()
    scaled = load_intrinsic("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp4")
    text = TensorIntrin.get(scaled.compute_with(byte_a=1, byte_b=3)).impl.script()
    assert text.count("SCALE_A[lane, 0]) * 256") + text.count("SCALE_A[lane, 0]) << 8") == 1
    sparse = load_intrinsic("smfmac_f32_16x16x32_f16")
    assert ", 0, 3)" in TensorIntrin.get(sparse.compute_with(abid=3)).impl.script()
    assert not hasattr(load_intrinsic("mfma_f32_16x16x32_f16"), "compute_with")
