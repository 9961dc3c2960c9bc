"""Generated modules, imported: names, registration on demand, the shared store."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tvm.s_tir import Schedule, TensorIntrin

import mfmadsl
from mfmadsl.codegen import module_text
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic
from mfmadsl.tensorize import load_intrinsic, matmul

HALF = find("mfma_f32_16x16x16_f16")
EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)


@EVERY
def test_all_pairs_of_a_module_are_accepted_by_tvm(intrinsic: Intrinsic) -> None:
    module = load_intrinsic(intrinsic)
    names = module.register()
    assert names == list(module.NAMES.values())
    assert len(names) == 11
    for name in names:
        registered = TensorIntrin.get(name)
        assert registered.desc.params[0].dtype == registered.impl.params[0].dtype


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


def test_a_written_module_imports_alone_and_registers_under_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(module_text(HALF))
    program = (
        "import sys, half; print(half.COMPUTE, half.M, half.IN_DTYPE);"
        "assert not any(name.startswith('mfmadsl') for name in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["mfma_f32_16x16x16_f16_compute", "16", "float16"]


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
@EVERY
def test_the_store_to_shared_memory(intrinsic: Intrinsic, scope: str) -> None:
    """Four waves, each with a tile of its own that goes through shared memory to its place."""
    tile = load_intrinsic(intrinsic)
    m, n, k = 2 * tile.M, 2 * tile.N, 2 * tile.K
    suffix = scope.replace(".", "_").upper()
    sch = Schedule(matmul(m, n, k, tile.IN_DTYPE, tile.OUT_DTYPE))
    loops = sch.get_loops(sch.get_sblock("C"))
    splits = [
        sch.split(loop, [None, size])
        for loop, size in zip(loops, (tile.M, tile.N, tile.K), strict=True)
    ]
    (i, ii), (j, ji), (r, ri) = splits
    sch.reorder(i, j, r, ii, ji, ri)
    block = sch.blockize(ii)
    r, step = sch.split(r, [None, 1])
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "blockIdx.y")

    def over_lanes(copy: object) -> None:
        lanes = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 64])[1]
        sch.bind(lanes, "threadIdx.x")

    for staged in [sch.cache_read(block, operand, scope) for operand in (0, 1)]:
        sch.compute_at(staged, r, preserve_unit_loops=True)
        over_lanes(staged)
    a, b = [sch.cache_read(block, operand, "warp") for operand in (0, 1)]
    for fragment in (a, b):
        sch.compute_at(fragment, step, preserve_unit_loops=True)
    staged = sch.cache_write(block, 0, scope)
    c = sch.cache_write(block, 0, "warp")
    for copy in (c, staged):
        sch.reverse_compute_at(copy, j, preserve_unit_loops=True)
    over_lanes(staged)
    sch.decompose_reduction(block, r)
    sch.transform_layout(a, ("write", 0), tile.index_map_A)
    sch.transform_layout(b, ("write", 0), tile.index_map_B)
    sch.transform_layout(c, ("read", 0), tile.index_map_C)
    sch.tensorize(sch.get_loops(a)[-2], getattr(tile, f"LOAD_A_{suffix}"))
    sch.tensorize(sch.get_loops(b)[-2], getattr(tile, f"LOAD_B_{suffix}"))
    sch.tensorize(sch.get_loops(sch.get_sblock("C"))[-3], tile.COMPUTE)
    sch.tensorize(sch.get_loops(sch.get_sblock("C_init"))[-2], tile.FILL)
    sch.tensorize(sch.get_loops(c)[-2], getattr(tile, f"STORE_{suffix}"))

    kernel = mfmadsl.build(sch, "gfx90a")
    assert "ds_write" in kernel.assembly
    left = np.arange(m * k, dtype=tile.IN_DTYPE).reshape(m, k) % 11
    right = np.arange(k * n, dtype=tile.IN_DTYPE).reshape(k, n) % 7
    result = np.full((m, n), 99, dtype=tile.OUT_DTYPE)
    mfmadsl.emulate(kernel, [left, right, result])
    assert (result == left.astype(np.float64) @ right.astype(np.float64)).all()
