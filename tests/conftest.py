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
    "b200/test_kernels.py": 0.0315,
    "b200/test_planted_faults.py": 0.028,
    "b200/test_small_kernels.py": 0.162,
    "backend/gpu/test_instruction.py": 0.0489,
    "backend/gpu/test_lean.py": 0.0325,
    "cli/test_experts.py": 0.28,
    "cli/test_gemm.py": 0.07,
    "cli/test_gemm.py::test_what_a_sparse_operand_has_not_is_told": 1,
    "cli/test_gemm.py::test_what_cannot_be_is_told": 1,
    "cli/test_gemm.py::test_what_scaled_operands_have_not_is_told": 1,
    "cli/test_gemm.py::test_what_scales_of_blocks_have_not_is_told": 1,
    "cli/test_names.py": 0.183,
    "cli/test_progress.py": 0.183,
    "codegen/test_microkernel.py": 0.0552,
    "codegen/test_runtime.py": 0.183,
    "device/test_compiler.py": 0.35,
    "device/test_programs.py": 0.35,
    "device/test_programs.py::test_irees_own_runtime_runs_a_product": 0.35,
    "device/test_streams.py": 0.35,
    "editor/test_server.py": 0.105,
    "emulator/code_object/test_assembled.py": 0.35,
    "emulator/code_object/test_kernels.py": 0.28,
    "emulator/code_object/test_same_table.py": 0.35,
    "emulator/instructions/matrix/test_described.py": 0.183,
    "emulator/instructions/test_compare.py": 0.111,
    "emulator/instructions/test_manual.py": 0.111,
    "emulator/instructions/test_scalar.py": 0.183,
    "emulator/instructions/test_vector_mode.py": 0.35,
    "emulator/machine/test_scheduler.py": 0.35,
    "emulator/native/test_same_bits.py": 0.183,
    "emulator/native/test_team.py": 0.35,
    "emulator/profiler/test_advice.py": 0.35,
    "emulator/profiler/test_chip.py": 0.0812,
    "emulator/profiler/test_cost.py": 0.098,
    "emulator/profiler/test_matrix_counts.py": 0.0262,
    "emulator/profiler/test_steady_state.py": 0.28,
    "emulator/programs/test_programs.py": 0.21,
    "emulator/sanitizer/clang/test_clang.py": 0.0651,
    "emulator/sanitizer/test_attention_mutants.py": 0.0651,
    "emulator/sanitizer/test_compiled_loops.py": 0.063,
    "emulator/sanitizer/test_kernels.py": 0.28,
    "emulator/sanitizer/test_mutants.py": 0.0325,
    "emulator/sanitizer/test_stages.py": 0.0325,
    "examples/attention/test_steps.py": 0.0325,
    "examples/attention/test_steps.py::test_every_step_is_right_at_small_sizes": 0.0217,
    "examples/blackwell/test_cubins.py": 0.162,
    "examples/blackwell/test_lower.py": 0.0489,
    "examples/blackwell/test_numbers.py": 0.0651,
    "examples/blackwell/test_problem.py": 0.098,
    "examples/cpu_matmul_exp/test_steps.py": 0.098,
    "examples/gpu_gemm/test_steps.py": 0.0651,
    "examples/mfma_gemm/test_steps.py": 0.0325,
    "examples/test_llama_decode.py": 0.0651,
    "examples/test_llama_decode.py::test_a_wrong_number_of_tokens_is_refused": 0.21,
    "examples/test_options.py": 0.162,
    "export/test_formats.py": 0.183,
    "fuzz/test_api.py": 0.175,
    "fuzz/test_command_line.py": 0.183,
    "hip/test_docs.py": 0.183,
    "passes/cpu/test_edge_lanes.py": 0.183,
    "passes/kernel/test_edge_stores.py": 0.21,
    "passes/kernel/test_extent_symbols.py": 0.21,
    "passes/kernel/test_reduction.py": 0.35,
    "passes/kernel/test_requirement.py": 0.21,
    "passes/main_loop/moves/test_short_tile.py": 0.28,
    "passes/main_loop/moves/test_pairs.py": 0.3,
    "passes/main_loop/order/test_computed_ahead.py": 0.07,
    "passes/main_loop/test_scaled_sums.py": 0.098,
    "passes/tir/test_annotation.py": 0.111,
    "passes/types/test_functions.py": 0.13,
    "passes/types/test_narrow.py": 0.0651,
    "passes/types/test_small_bfloats.py": 0.21,
    "passes/types/test_small_floats.py": 0.0651,
    "passes/types/test_small_integers.py": 0.098,
    "passes/types/test_small_nibbles.py": 0.098,
    "relax/kv_cache/test_cases.py": 0.183,
    "relax/kv_cache/test_kernels.py": 0.0812,
    "relax/kv_cache/test_recognise.py": 0.0407,
    "relax/test_attention.py": 0.162,
    "relax/test_integer.py": 0.35,
    "relax/test_lowering.py": 0.21,
    "relax/test_pairs.py": 0.35,
    "relax/test_pipeline.py": 0.162,
    "relax/test_rows.py": 0.105,
    "relax/test_scaled.py": 0.13,
    "report/explorer/test_browser.py": 0.035,
    "report/kernel_page/test_roofline.py": 0.21,
    "runtime/test_calls.py": 0.183,
    "runtime/test_calls.py::test_other_copies": 0.07,
    "schedule/cpu/test_epilogue.py": 0.0588,
    "schedule/cpu/test_memory.py": 0.0588,
    "schedule/cpu/test_numbers.py": 0.0388,
    "schedule/cpu/test_signed.py": 0.0784,
    "schedule/flash_attention/test_backward.py": 0.0194,
    "schedule/flash_attention/test_backward.py::test_it_is_right": 0.007,
    "schedule/flash_attention/test_eight_bits.py": 0.0105,
    "schedule/flash_attention/test_large_scores.py": 0.00525,
    "schedule/flash_attention/test_lengths.py": 0.0105,
    "schedule/flash_attention/test_numbers.py": 0.0105,
    "schedule/flash_attention/test_packed.py": 0.0105,
    "schedule/flash_attention/test_random.py": 0.00315,
    "schedule/flash_attention/test_reader.py": 0.0388,
    "schedule/flash_attention/test_ways.py": 0.0155,
    "schedule/flash_attention/test_weighted_sums.py": 0.0651,
    "schedule/matrix_core/gemm/test_among_others.py": 0.28,
    "schedule/matrix_core/gemm/test_any_layout.py": 0.0651,
    "schedule/matrix_core/gemm/test_blocks.py": 0.0489,
    "schedule/matrix_core/gemm/test_bounds.py": 0.098,
    "schedule/matrix_core/gemm/test_cases.py": 0.028,
    "schedule/matrix_core/gemm/test_edges.py": 0.0194,
    "schedule/matrix_core/gemm/test_epilogue.py": 0.0588,
    "schedule/matrix_core/gemm/test_forms.py": 0.0132,
    "schedule/matrix_core/gemm/test_gathered.py": 0.0588,
    "schedule/matrix_core/gemm/test_k_waves.py": 0.0194,
    "schedule/matrix_core/gemm/test_large.py": 0.0588,
    "schedule/matrix_core/gemm/test_layouts.py": 0.0294,
    "schedule/matrix_core/gemm/test_loop.py": 0.0132,
    "schedule/matrix_core/gemm/test_models.py": 0.007,
    "schedule/matrix_core/gemm/test_one_launch.py": 0.0784,
    "schedule/matrix_core/gemm/test_overlap.py": 0.0132,
    "schedule/matrix_core/gemm/test_past_lds.py": 0.28,
    "schedule/matrix_core/gemm/test_quantised.py": 0.0489,
    "schedule/matrix_core/gemm/test_random.py": 0.00498,
    "schedule/matrix_core/gemm/test_runs.py": 0.0294,
    "schedule/matrix_core/gemm/test_stores.py": 0.0226,
    "schedule/matrix_core/gemm/test_tiling.py": 0.0294,
    "schedule/matrix_core/gemm/test_two_ahead.py": 0.00903,
    "schedule/matrix_core/gemm/test_uneven.py": 0.0063,
    "schedule/matrix_core/scaled/test_blocks.py": 0.0315,
    "schedule/matrix_core/scaled/test_blocks_random.py": 0.098,
    "schedule/matrix_core/scaled/test_experts.py": 0.063,
    "schedule/matrix_core/scaled/test_floats.py": 0.0489,
    "schedule/matrix_core/scaled/test_gemm.py": 0.0469,
    "schedule/matrix_core/scaled/test_gemm.py::test_each_entry_makes_a_gemm": 0.021,
    "schedule/matrix_core/scaled/test_random.py": 0.0132,
    "schedule/matrix_core/sparse/test_gemm.py": 0.0784,
    "schedule/matrix_core/sparse/test_gemm.py::test_each_entry_makes_a_gemm": 0.021,
    "schedule/matrix_core/sparse/test_random.py": 0.0226,
    "schedule/matrix_core/test_grouped.py": 0.0407,
    "schedule/matrix_core/test_invented.py": 0.098,
    "schedule/matrix_core/test_mx_output.py": 0.00973,
    "schedule/matrix_core/test_pack.py": 0.0388,
    "schedule/matrix_core/test_pairs.py": 0.0147,
    "schedule/matrix_core/test_quantised_experts.py": 0.026,
    "schedule/matrix_core/test_row_statistics.py": 0.0407,
    "schedule/matrix_core/test_tiles.py": 0.0194,
    "schedule/matrix_core/test_upstream.py": 0.098,
    "schedule/product/test_epilogue.py": 0.0784,
    "schedule/product/test_factored.py": 0.0784,
    "schedule/product/test_index_type.py": 0.35,
    "schedule/product/test_launch_symbols.py": 0.0262,
    "schedule/product/test_launch_symbols.py::test_rows_that_are_no_multiple_are_refused": 0.217,
    "schedule/product/test_normalise.py": 0.0294,
    "schedule/product/test_normalise.py::test_what_is_no_product": 1,
    "schedule/test_load.py": 0.00994,
    "test_docs.py::test_the_commands_of_a_page_print_what_it_shows": 0.167,
    "test_gemm.py": 0.0194,
    "test_imports.py::test_planted_imports_are_noticed": 0.35,
    "test_readme.py::test_the_programs_that_are_shown_run": 0.167,
    "triton/test_casts.py": 0.021,
    "triton/test_emulation.py": 0.0084,
    "triton/test_measured.py": 0.35,
    "triton/test_scaled.py": 0.183,
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
