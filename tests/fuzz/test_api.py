"""A mistake in a call of a Python function ends in a MfmadslError, and in nothing else."""

from __future__ import annotations

import inspect
import os
import random
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import te
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl import MfmadslError
from tests.emulator.waves import kernel
from tests.fuzz.isolated import failures
from tests.fuzz.workloads import odd_workloads
from tests.schedule.matrix_core.gemm.test_edges import plain

SEED = int(os.environ["MFMADSL_SEED"])
NAME = "mfma_f32_16x16x16_f16"
TEXT = kernel("\tv_mov_b32_e32 v1, 1")


class Odd:
    """An object that helps nobody: it has no length, no text and no equal."""

    def __repr__(self) -> str:
        raise RuntimeError("this object cannot be shown")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("this object cannot be compared")

    __hash__ = None  # type: ignore[assignment]


@cache
def built() -> mfmadsl.Kernel:
    return mfmadsl.build(scheduled())


@cache
def scheduled() -> Any:
    return mfmadsl.gemm_schedule(workload())


@cache
def odd_kernels() -> list[Any]:
    """Kernels with a field that does not fit the others, and texts that are none."""
    fields: dict[str, list[Any]] = {
        "symbol": ["", "x"],
        "assembly": ["", "x", TEXT, "\n" * 1000, built().assembly[:3000]],
        "lds_bytes": [-1, 0, 10**5, 10**12],
        "block": [(1, 1, 1), (1024, 1, 1), (1024, 1024, 1024), (2**31 - 1, 1, 1)],
        "extents": [(1, 1, 1), (3, 1, 1)],
        "parameters": [(), ("A",)],
    }
    spoiled = [
        replace(built(), **{field: value}) for field, values in fields.items() for value in values
    ]
    return [*spoiled, "", "x", TEXT, TEXT[:200], TEXT.replace("1", "9" * 30), TEXT * 2]


@cache
def workload() -> Any:
    return mfmadsl.matmul(32, 32, 32, "float16", "float32")


@cache
def attention() -> Any:
    return mfmadsl.attention(1, 1, 16, 32, 32)


@cache
def symbolic() -> Any:
    return plain(te.var("m"), 32, 32)


@cache
def tiling() -> mfmadsl.Tiling:
    return mfmadsl.gemm_tiling(workload())


def arrays() -> list[Any]:
    a, b = np.ones((32, 32), np.float16), np.ones((32, 32), np.float16)
    return [a, b, np.zeros((32, 32), np.float32)]


@cache
def odd_values() -> list[Any]:
    """What is given in place of an argument that is right, almost always of a wrong type."""
    own = tiling()
    return [
        None, True, False, 0, 1, -1, 3, 7, 16, 64, 2**31, -(2**31), 2**63, 2**64, 10**30, 10**5000,
        1.5, float("nan"), float("inf"), 1j, "", " ", "x", "gfx942", "gfx1100", "gfx908", "float16",
        "float17", "int8", "handle", "void", "float16x4", "custom[x]8", NAME, "v_mfma_f64_16x16x4",
        "\0", "\ud800", "é", "x" * 100_000, "{}", TEXT, "s_endpgm", b"", b"gfx942", bytearray(5),
        [], [None], [0], [1], [1, 1], [1, 1, 1], [1, 1, 1, 1], (), (1,), (16, 16), (-1, 1),
        (1.5, 1), ["a"], [[]], {}, {"a": 1}, {1, 2}, range(3), iter([1]), object(), Odd(), Odd, len,
        lambda *_: 1, lambda i, j: (i, j), lambda i, j: "no", Path("nowhere.mfma"), Path(),
        np.int32(5), np.float16(1), np.zeros(0), np.zeros(5, np.float32),
        np.zeros((32, 32), object), np.array("text"), np.ones((2, 2), np.float16), np.ma.masked,
        workload(), built(), own,
        mfmadsl.find(NAME), mfmadsl, ValueError("x"), inspect, Ellipsis, NotImplemented,
    ]  # fmt: skip


@cache
def odd_tilings() -> list[mfmadsl.Tiling]:
    """Tilings with a field that is wrong, or at least unusual."""
    fields = [
        "block", "waves", "k_step", "k_pack", "stages", "split_k", "group", "k_waves",
        "instruction", "swizzle", "persistent",
    ]  # fmt: skip
    values = [None, 0, -1, 3, 2**40, 1.5, "x", (), (16,), (0, 0), ("a", "b"), (1, 2, 3), Odd()]
    spoiled: list[dict[str, Any]] = [{field: value} for field in fields for value in values]
    return [replace(tiling(), **changed) for changed in spoiled]


@cache
def schedule_arguments() -> dict[str, Any]:
    module = mfmadsl.load_intrinsic(NAME)
    return {
        "workload": workload(), "k_inner": 16, "in_dtype": "float16", "b_transposed": False,
        "i_factors": [1, 1, 1, 2, 1], "j_factors": [1, 1, 1, 2, 1], "k_factors": [1, 2, 1],
        "index_map_A": module.index_map_A, "index_map_B": module.index_map_B,
        "index_map_C": module.index_map_C, "ldmatrix_a_intrin": module.LOAD_A_SHARED,
        "ldmatrix_b_intrin": module.LOAD_B_SHARED, "mfma_intrin": module.COMPUTE,
        "mfma_fill_intrin": module.FILL, "mfma_store_intrin": module.STORE_GLOBAL,
        "shared_scope": "shared",
    }  # fmt: skip


def among_others() -> dict[str, Any]:
    sch = Schedule(workload())
    return {"sch": sch, "block": sch.get_sblock("C"), "intrinsic": NAME, "arch": "gfx942",
            "tiling": tiling()}  # fmt: skip


@cache
def floats() -> Any:
    return mfmadsl.matmul(32, 32, 32, "float32", "float32")


def among_floats() -> dict[str, Any]:
    sch = Schedule(floats())
    return {"sch": sch, "block": sch.get_sblock("C"), "microkernel": None, "cpu": None,
            "tiling": None, "threads": 1}  # fmt: skip


def running() -> dict[str, Any]:
    """What `emulate` and its siblings take."""
    return {"kernel": built(), "args": arrays(), "grid": None, "block": None, "lds_bytes": None,
            "budget": 100_000}  # fmt: skip


RIGHT: dict[str, Callable[[], dict[str, Any]]] = {
    "find": lambda: {"name": NAME, "arch": "gfx942"},
    "library": dict,
    "load": lambda: {"path": "nowhere.mfma", "search": []},
    "load_intrinsic": lambda: {"intrinsic": NAME},
    "export_layouts": lambda: {"intrinsic": mfmadsl.find(NAME), "form": "triton", "operand": "a",
                               "arch": "gfx942"},
    "diff_layouts": lambda: {"intrinsic": mfmadsl.find(NAME), "other": "iree", "arch": "gfx942"},
    "matmul": lambda: {"m": 32, "n": 32, "k": 32, "in_dtype": "float16", "out_dtype": "float32",
                       "b_transposed": False, "b_dtype": None},
    "scaled_matmul": lambda: {"m": 32, "n": 32, "k": 32, "a_type": "float4_e2m1fn",
                              "b_type": None, "scale_order": "rows", "batch": None},
    "block_scaled_matmul": lambda: {"m": 32, "n": 32, "k": 32, "a_type": "float8_e4m3fn",
                                    "b_type": None, "block": 128, "scale_order": "rows",
                                    "batch": None},
    "sparse_matmul": lambda: {"m": 32, "n": 32, "k": 32, "a_type": "float16", "b_type": None,
                              "b_transposed": False, "batch": None, "index_order": "rows"},
    "quantised_matmul": lambda: {"m": 16, "n": 32, "k": 128, "weights": "gptq", "group": 64,
                                 "experts": 4, "tokens": 8},
    "gated": lambda: {"workload": floats(), "activation": "silu", "out_dtype": "float16"},
    "mx_output": lambda: {"workload": floats(), "element_type": "fp8"},
    "grouped_matmul": lambda: {"m": 32, "n": 32, "k": 32, "groups": 4, "in_dtype": "float16",
                               "out_dtype": "float32", "b_dtype": None, "tokens": None},
    "attention": lambda: {"batch": 2, "heads": 4, "queries": 16, "keys": 32, "depth": 32,
                          "dtype": "float16", "out_dtype": None, "value_depth": 16, "kv_heads": 2,
                          "layout": "bhsd", "scale": 0.5, "causal": True, "window": 8, "cap": 5.0,
                          "bias": True, "log_sum": True, "lengths": True, "pages": 9,
                          "page_size": 16, "kv_dtype": "int8", "scales": "token",
                          "packed": "queries"},
    "attention_backward": lambda: {"batch": 2, "heads": 4, "queries": 16, "keys": 32, "depth": 32,
                                   "dtype": "float16", "out_dtype": "float32", "value_depth": 16,
                                   "kv_heads": 2, "layout": "bhsd", "scale": 0.5, "causal": True,
                                   "window": 8},
    "attention_tiling": lambda: {"workload": attention(), "arch": "gfx942"},
    "attention_schedule": lambda: {"workload": attention(), "arch": "gfx942",
                                   "tiling": mfmadsl.attention_tiling(attention())},
    "AttentionTiling": lambda: dict(vars(mfmadsl.attention_tiling(attention()))),
    "gemm_tiling": lambda: {"workload": workload(), "intrinsic": NAME, "arch": "gfx942"},
    "gemm_cases": lambda: {"workload": symbolic(), "intrinsic": NAME, "arch": "gfx942"},
    "with_cases": lambda: {"workload": symbolic(), "count": 2},
    "gemm_schedule": lambda: {"workload": workload(), "intrinsic": NAME, "arch": "gfx942",
                              "tiling": tiling()},
    "mfma_schedule": lambda: dict(schedule_arguments()),
    "schedule_gemm": among_others,
    "build": lambda: {"mod": scheduled(), "arch": "gfx942", "code_object_version": 6},
    "read_code_object": lambda: {"data": built().code_object, "arch": "gfx942"},
    "emulate": lambda: {**running(), "trusted": [mfmadsl.find(NAME)],
                        "order": "random", "seed": 1},
    "sanitize": lambda: {**running(), "unwritten": (), "keep_going": False, "order": "random",
                         "seed": 1},
    "profile": lambda: {**running(), "full": False, "launch": 0},
    "run": lambda: {"kernel": built(), "args": arrays(), "repeat": 0},
    "compress": lambda: {"array": arrays()[0], "mask": np.eye(32, dtype=bool)},
    "decompress": lambda: {"values": arrays()[0], "index": np.eye(32, dtype=np.uint8)},
    "target": lambda: {"arch": "gfx942"},
    "Gemm": lambda: {"intrinsic": mfmadsl.find(NAME), "arch": "gfx942", "m": 16, "n": 16, "k": 16,
                     "b_transposed": False, "shared_scope": None, "a_transposed": False,
                     "dtypes": (None, None, None), "batch": None, "epilogue": (), "tiling": {},
                     "experts": None, "tokens": None},
    "cpu_gemm_schedule": lambda: {"workload": floats(), "microkernel": None, "cpu": None,
                                  "tiling": None, "threads": 2},
    "cpu_gemm_tiling": lambda: {"workload": floats(), "microkernel": None, "cpu": None,
                                "threads": 2},
    "schedule_cpu_gemm": among_floats,
    "build_for_cpu": lambda: {"mod": floats(), "cpu": None},
    "CpuTiling": lambda: dict(vars(mfmadsl.cpu_gemm_tiling(floats()))),
    "CpuKernel": lambda: dict(vars(mfmadsl.build_for_cpu(floats()))),
    "Tiling": lambda: dict(vars(tiling())),
    "Case": lambda: {"tiling": tiling(), "up_to": (16,)},
    "Kernel": lambda: dict(vars(built())),
}  # fmt: skip
POOLS: dict[str, Callable[[], Sequence[Any]]] = {
    "tiling": odd_tilings, "workload": odd_workloads, "mod": odd_workloads, "kernel": odd_kernels
}  # fmt: skip
COUNTS = {"mfma_schedule": 250, "emulate": 200, "sanitize": 200, "profile": 200, "library": 1,
          "build": 20, "build_for_cpu": 20, "CpuTiling": 60, "CpuKernel": 20,
          "cpu_gemm_schedule": 60, "cpu_gemm_tiling": 60, "schedule_cpu_gemm": 60,
          "Tiling": 100, "Kernel": 100,
          "attention_schedule": 60, "AttentionTiling": 60}  # fmt: skip


def call(function: str, number: int) -> tuple[dict[str, Any], str]:
    """The arguments of a case: those that are right, but for one to three; and what was put in."""
    generator = random.Random(f"{SEED} {function} {number}")
    arguments = RIGHT[function]()
    spoiled = generator.sample(
        list(arguments), min(len(arguments), generator.choice([1, 1, 1, 2, 3]))
    )
    told = []
    for name in spoiled:
        pool = POOLS.get(name, odd_values)
        pool = pool if generator.random() < 0.7 else odd_values
        place = generator.randrange(len(pool()))
        arguments[name] = pool()[place]
        if name == "args" and generator.random() < 0.7:
            arguments[name] = arrays()
            arguments[name][generator.randrange(3)] = pool()[place]
        told.append(f"{name}={pool.__name__}()[{place}]")
    return arguments, ", ".join(told)


@pytest.mark.parametrize("function", RIGHT)
def test_a_wrong_argument_is_told(function: str) -> None:
    public = getattr(mfmadsl, function)

    def case(number: int) -> str | None:
        arguments, _ = call(function, number)
        try:
            public(**arguments)
        except MfmadslError as error:
            return None if str(error).strip() else "the message is empty"
        except Exception:
            return traceback.format_exc(limit=-4)
        return None

    def told(number: int) -> str:
        return f"{function}({call(function, number)[1]}) with MFMADSL_SEED={SEED}"

    pools: list[Callable[[], Sequence[Any]]] = [odd_values, *POOLS.values()]
    for pool in pools:
        pool()  # made once, before the process is forked
    schedule_arguments()
    wrong = failures(COUNTS.get(function, 150), case, told)
    assert not wrong, "\n".join(wrong)


def test_every_public_function_is_tried() -> None:
    public = {name: getattr(mfmadsl, name) for name in mfmadsl.__all__}
    others = {
        name
        for name, value in public.items()
        if inspect.ismodule(value) or (isinstance(value, type) and issubclass(value, Exception))
    }
    assert set(RIGHT) == set(public) - others
