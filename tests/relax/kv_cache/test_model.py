"""A model with TVM's paged KV cache on an emulated GPU: several sequences begin, decode and are
extended, and all is as TVM's build for this CPU has it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import tvm

import mfmadsl
from mfmadsl.device import Options, run_program
from tests.relax.elf import code_objects
from tests.relax.kv_cache.model import TURNS, exported, results

KERNELS = {
    "batch_prefill_ragged_kv": 2,  # turns that take it
    "batch_prefill_paged_kv": 1,
    "batch_decode_paged_kv": 3,
}


@pytest.mark.thorough  # a minute and a half; test_kernels.py runs each kernel
def test_all_of_its_attentions_are_ours_and_as_on_the_cpu(tmp_path: Path) -> None:
    target, pipeline = mfmadsl.target("gfx942"), mfmadsl.relax.Pipeline()
    library = tvm.compile(exported(target), target, relax_pipeline=pipeline, tir_pipeline="mfmadsl")
    path = tmp_path / "model.so"
    library.export_library(str(path))
    ours = {each.function for each in pipeline.report.ours}
    assert ours == {
        *KERNELS,
        *(f"{name}_sliding_window" for name in KERNELS if "ragged" not in name),
    }
    theirs = {each.function for each in pipeline.report.functions if each.rule == "TVM"}
    assert theirs == {"batch_tree_attn", "tree_attn_paged_kv"}

    program = [sys.executable, "-m", "tests.relax.kv_cache.model", str(tmp_path)]
    ended = run_program(program, Options("gfx942", sanitize=True))
    assert ended.exit_code == 0
    assert [fault for launch in ended.launches for fault in launch.faults] == []
    (code_object,) = code_objects(path.read_bytes())
    read = mfmadsl.read_code_object(code_object.data)
    launched = [launch.symbol for launch in ended.launches]
    for name, turns in KERNELS.items():
        own = [each for each in launched if each.startswith(f"{name}_kernel")]
        on_matrix_cores = [each for each in own if "v_mfma" in read.assembly(each)]
        assert len(on_matrix_cores) == turns

    cpu = tvm.target.Target("llvm")
    expected = results(tvm.compile(exported(cpu), cpu), tvm.cpu())
    found = np.load(tmp_path / "results.npz")
    for n in range(len(TURNS)):
        # The CPU's attends in float32, and ours rounds weights.
        np.testing.assert_allclose(found[f"turn{n}"], expected[n], atol=2.0**-8)
