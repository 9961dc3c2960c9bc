"""What several test modules share."""

from __future__ import annotations

import inspect
import json
import linecache
import math
import os
import random
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings

ALL = os.environ.get("MFMADSL_TESTS") == "all"

# Machines are noisy: how long an example takes is no mistake of the code. `make test` has the same
# examples each time, so that what it says today holds tomorrow; `make test-all` has others.
settings.register_profile("project", deadline=None, derandomize=not ALL)
settings.load_profile("project")

FEW_EXAMPLES = settings(max_examples=100 if ALL else 10)
"""Of a property that builds and runs a whole kernel for each."""

# The width of the terminal that tests run in says nothing about what is printed.
os.environ.pop("COLUMNS", None)

# TVM binds the thread that first calls a parallel kernel to one core, and so all tests behind it.
os.environ.setdefault("TVM_BIND_THREADS", "0")

# Set before workers start, so that all of them draw the same cases.
os.environ.setdefault("MFMADSL_SEED", str(random.SystemRandom().randrange(10**6)) if ALL else "1")


def _frames(context: int = 1) -> list[inspect.FrameInfo]:
    """The stack as `inspect.stack` has it, with source lines of the innermost frames only.

    TVMScript asks for it at each function. Of pytest's 70 frames that takes a quarter of a second,
    for Python looks through all modules for each; TVM reads one line, of a frame close to the top.
    """
    frame: FrameType | None = sys._getframe(1)
    found: list[inspect.FrameInfo] = []
    while frame is not None:
        name, line = frame.f_code.co_filename, frame.f_lineno
        lines = [linecache.getline(name, line)] if context and len(found) < _WITH_SOURCE else None
        told = inspect.Traceback(name, line, frame.f_code.co_name, lines, 0)
        found.append(inspect.FrameInfo(frame, *told))
        frame = frame.f_back
    return found


_WITH_SOURCE = 4
inspect.stack = _frames

SHARES = {
    "b200/test_kernels.py": 0.045,
    "b200/test_planted_faults.py": 0.04,
    "b200/test_small_kernels.py": 0.232,
    "backend/gpu/test_instruction.py": 0.0698,
    "backend/gpu/test_lean.py": 0.0465,
    "cli/test_experts.py": 0.4,
    "cli/test_gemm.py": 0.1,
    "cli/test_gemm.py::test_what_a_sparse_operand_has_not_is_told": 1,
    "cli/test_gemm.py::test_what_cannot_be_is_told": 1,
    "cli/test_gemm.py::test_what_scaled_operands_have_not_is_told": 1,
    "cli/test_gemm.py::test_what_scales_of_blocks_have_not_is_told": 1,
    "cli/test_names.py": 0.262,
    "cli/test_progress.py": 0.262,
    "codegen/test_microkernel.py": 0.0788,
    "codegen/test_runtime.py": 0.262,
    "device/test_compiler.py": 0.5,
    "device/test_programs.py": 0.5,
    "device/test_programs.py::test_irees_own_runtime_runs_a_product": 0.5,
    "device/test_streams.py": 0.5,
    "editor/test_server.py": 0.15,
    "emulator/code_object/test_assembled.py": 0.5,
    "emulator/code_object/test_kernels.py": 0.4,
    "emulator/code_object/test_same_table.py": 0.5,
    "emulator/instructions/matrix/test_described.py": 0.262,
    "emulator/instructions/test_compare.py": 0.158,
    "emulator/instructions/test_manual.py": 0.158,
    "emulator/instructions/test_scalar.py": 0.262,
    "emulator/instructions/test_vector_mode.py": 0.5,
    "emulator/machine/test_scheduler.py": 0.5,
    "emulator/native/test_same_bits.py": 0.262,
    "emulator/native/test_team.py": 0.5,
    "emulator/profiler/test_advice.py": 0.5,
    "emulator/profiler/test_chip.py": 0.116,
    "emulator/profiler/test_cost.py": 0.14,
    "emulator/profiler/test_matrix_counts.py": 0.0375,
    "emulator/profiler/test_steady_state.py": 0.4,
    "emulator/programs/test_programs.py": 0.3,
    "emulator/sanitizer/clang/test_clang.py": 0.093,
    "emulator/sanitizer/test_attention_mutants.py": 0.093,
    "emulator/sanitizer/test_compiled_loops.py": 0.09,
    "emulator/sanitizer/test_kernels.py": 0.4,
    "emulator/sanitizer/test_mutants.py": 0.0465,
    "emulator/sanitizer/test_stages.py": 0.0465,
    "examples/attention/test_steps.py": 0.0465,
    "examples/attention/test_steps.py::test_every_step_is_right_at_small_sizes": 0.031,
    "examples/blackwell/test_cubins.py": 0.232,
    "examples/blackwell/test_lower.py": 0.0698,
    "examples/blackwell/test_numbers.py": 0.093,
    "examples/blackwell/test_problem.py": 0.14,
    "examples/cpu_matmul_exp/test_steps.py": 0.14,
    "examples/gpu_gemm/test_steps.py": 0.093,
    "examples/mfma_gemm/test_steps.py": 0.0465,
    "examples/test_llama_decode.py": 0.093,
    "examples/test_llama_decode.py::test_a_wrong_number_of_tokens_is_refused": 0.3,
    "examples/test_options.py": 0.232,
    "export/test_formats.py": 0.262,
    "fuzz/test_api.py": 0.25,
    "fuzz/test_command_line.py": 0.262,
    "hip/test_docs.py": 0.262,
    "passes/cpu/test_edge_lanes.py": 0.262,
    "passes/kernel/test_edge_stores.py": 0.3,
    "passes/kernel/test_extent_symbols.py": 0.3,
    "passes/kernel/test_reduction.py": 0.5,
    "passes/kernel/test_requirement.py": 0.3,
    "passes/main_loop/moves/test_short_tile.py": 0.4,
    "passes/main_loop/test_scaled_sums.py": 0.14,
    "passes/tir/test_annotation.py": 0.158,
    "passes/types/test_functions.py": 0.186,
    "passes/types/test_narrow.py": 0.093,
    "passes/types/test_small_bfloats.py": 0.3,
    "passes/types/test_small_floats.py": 0.093,
    "passes/types/test_small_integers.py": 0.14,
    "passes/types/test_small_nibbles.py": 0.14,
    "relax/kv_cache/test_cases.py": 0.262,
    "relax/kv_cache/test_kernels.py": 0.116,
    "relax/kv_cache/test_recognise.py": 0.0581,
    "relax/test_attention.py": 0.232,
    "relax/test_integer.py": 0.5,
    "relax/test_lowering.py": 0.3,
    "relax/test_pairs.py": 0.5,
    "relax/test_pipeline.py": 0.232,
    "relax/test_rows.py": 0.15,
    "relax/test_scaled.py": 0.186,
    "report/explorer/test_browser.py": 0.05,
    "report/kernel_page/test_roofline.py": 0.3,
    "runtime/test_calls.py": 0.262,
    "runtime/test_calls.py::test_other_copies": 0.1,
    "schedule/cpu/test_epilogue.py": 0.084,
    "schedule/cpu/test_memory.py": 0.084,
    "schedule/cpu/test_numbers.py": 0.0555,
    "schedule/cpu/test_signed.py": 0.112,
    "schedule/flash_attention/test_backward.py": 0.0277,
    "schedule/flash_attention/test_backward.py::test_it_is_right": 0.01,
    "schedule/flash_attention/test_eight_bits.py": 0.015,
    "schedule/flash_attention/test_large_scores.py": 0.0075,
    "schedule/flash_attention/test_lengths.py": 0.015,
    "schedule/flash_attention/test_numbers.py": 0.015,
    "schedule/flash_attention/test_packed.py": 0.015,
    "schedule/flash_attention/test_random.py": 0.0045,
    "schedule/flash_attention/test_reader.py": 0.0555,
    "schedule/flash_attention/test_ways.py": 0.0222,
    "schedule/flash_attention/test_weighted_sums.py": 0.093,
    "schedule/matrix_core/gemm/test_among_others.py": 0.4,
    "schedule/matrix_core/gemm/test_any_layout.py": 0.093,
    "schedule/matrix_core/gemm/test_blocks.py": 0.0698,
    "schedule/matrix_core/gemm/test_bounds.py": 0.14,
    "schedule/matrix_core/gemm/test_cases.py": 0.04,
    "schedule/matrix_core/gemm/test_edges.py": 0.0277,
    "schedule/matrix_core/gemm/test_epilogue.py": 0.084,
    "schedule/matrix_core/gemm/test_forms.py": 0.0188,
    "schedule/matrix_core/gemm/test_gathered.py": 0.084,
    "schedule/matrix_core/gemm/test_k_waves.py": 0.0277,
    "schedule/matrix_core/gemm/test_large.py": 0.084,
    "schedule/matrix_core/gemm/test_layouts.py": 0.042,
    "schedule/matrix_core/gemm/test_loop.py": 0.0188,
    "schedule/matrix_core/gemm/test_models.py": 0.01,
    "schedule/matrix_core/gemm/test_one_launch.py": 0.112,
    "schedule/matrix_core/gemm/test_overlap.py": 0.0188,
    "schedule/matrix_core/gemm/test_past_lds.py": 0.4,
    "schedule/matrix_core/gemm/test_quantised.py": 0.0698,
    "schedule/matrix_core/gemm/test_random.py": 0.00712,
    "schedule/matrix_core/gemm/test_runs.py": 0.042,
    "schedule/matrix_core/gemm/test_stores.py": 0.0323,
    "schedule/matrix_core/gemm/test_tiling.py": 0.042,
    "schedule/matrix_core/gemm/test_two_ahead.py": 0.0129,
    "schedule/matrix_core/gemm/test_uneven.py": 0.009,
    "schedule/matrix_core/scaled/test_blocks.py": 0.045,
    "schedule/matrix_core/scaled/test_blocks_random.py": 0.14,
    "schedule/matrix_core/scaled/test_experts.py": 0.09,
    "schedule/matrix_core/scaled/test_floats.py": 0.0698,
    "schedule/matrix_core/scaled/test_gemm.py": 0.067,
    "schedule/matrix_core/scaled/test_gemm.py::test_each_entry_makes_a_gemm": 0.03,
    "schedule/matrix_core/scaled/test_random.py": 0.0188,
    "schedule/matrix_core/sparse/test_gemm.py": 0.112,
    "schedule/matrix_core/sparse/test_gemm.py::test_each_entry_makes_a_gemm": 0.03,
    "schedule/matrix_core/sparse/test_random.py": 0.0323,
    "schedule/matrix_core/test_grouped.py": 0.0581,
    "schedule/matrix_core/test_invented.py": 0.14,
    "schedule/matrix_core/test_mx_output.py": 0.0139,
    "schedule/matrix_core/test_pack.py": 0.0555,
    "schedule/matrix_core/test_pairs.py": 0.021,
    "schedule/matrix_core/test_quantised_experts.py": 0.0372,
    "schedule/matrix_core/test_row_statistics.py": 0.0581,
    "schedule/matrix_core/test_tiles.py": 0.0277,
    "schedule/matrix_core/test_upstream.py": 0.14,
    "schedule/product/test_epilogue.py": 0.112,
    "schedule/product/test_factored.py": 0.112,
    "schedule/product/test_index_type.py": 0.5,
    "schedule/product/test_launch_symbols.py": 0.0375,
    "schedule/product/test_launch_symbols.py::test_rows_that_are_no_multiple_are_refused": 0.31,
    "schedule/product/test_normalise.py": 0.042,
    "schedule/product/test_normalise.py::test_what_is_no_product": 1,
    "schedule/test_load.py": 0.0142,
    "test_docs.py::test_the_commands_of_a_page_print_what_it_shows": 0.238,
    "test_gemm.py": 0.0277,
    "test_imports.py::test_planted_imports_are_noticed": 0.5,
    "test_readme.py::test_the_programs_that_are_shown_run": 0.238,
    "triton/test_casts.py": 0.03,
    "triton/test_emulation.py": 0.012,
    "triton/test_measured.py": 0.5,
    "triton/test_scaled.py": 0.262,
}
"""Which share of the cases of each test of a file, or of one test, `make test` draws, at least one;
`make test-all` has all of them. They build and run whole kernels.

What is refused is refused before, in no time: of a test of a file that says so, all are drawn.
"""

REFUSALS = ("_is_refused", "_are_refused")
"""How the names of such tests end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ALL or len({item.path for item in items}) == 1:
        return  # all are asked for, or one file is
    cases: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        name = item.path.relative_to(Path(__file__).parent).as_posix()
        cases.setdefault((name, getattr(item, "originalname", item.name)), []).append(item)
    dropped = {item for item in items if item.get_closest_marker("thorough")}
    for (name, test), own in cases.items():
        generator = random.Random(f"{os.environ['MFMADSL_SEED']} {name} {test}")
        share = SHARES.get(name, 1) if not test.endswith(REFUSALS) else 1
        share = SHARES.get(f"{name}::{test}", share)
        kept = math.ceil(share * len(own))
        dropped |= set(generator.sample(own, len(own) - kept))
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


def pytest_report_header() -> str:
    return f"cases are drawn with MFMADSL_SEED={os.environ['MFMADSL_SEED']}"


DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def llvm_intrinsics() -> dict[str, Any]:
    """What LLVM 22 selects for each matrix intrinsic, by intrinsic."""
    text = (DATA / "llvm_matrix_intrinsics.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found
