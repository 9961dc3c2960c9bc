"""`run`, on the emulated GPU."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from mfmadsl.hip.bench import peak_flops
from mfmadsl.model import PRODUCTS
from mfmadsl.report import json_schema

PROGRAMS = Path(__file__).parent / "programs"
GEMM = ("gemm", "--arch", "gfx942", "-m", "64", "-n", "64", "-k", "96")


def mfmadsl(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mfmadsl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def on_device(*arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The command itself, on the emulated GPU."""
    return mfmadsl("device", *options, "--", sys.executable, "-m", "mfmadsl", *arguments)


def test_kernels_run_with_arrays_of_the_host_and_of_the_gpu() -> None:
    done = mfmadsl("device", "--", sys.executable, str(PROGRAMS / "runs.py"))
    assert (done.stdout, done.stderr) == ("all right\n", "")


@pytest.mark.thorough
def test_a_gemm_is_compared_with_numpy_and_then_timed(tmp_path: Path) -> None:
    done = on_device(*GEMM, "--bench", options=("--profile", str(tmp_path / "timeline.json")))
    assert done.returncode == 0, done.stderr
    *_, run, device, time = done.stdout.splitlines()
    assert run.startswith("run        agrees with NumPy in float64: largest error")
    assert device == "device     MI300X (modelled), gfx942"
    assert "us, the median of 100; " in time
    assert time.endswith("% of the 1307 of MI300X")


@pytest.mark.thorough
def test_an_emulators_own_time_is_told_as_such() -> None:
    done = on_device(*GEMM[:3], "-m", "16", "-n", "16", "-k", "16", "--bench")
    assert re.search(
        r"time       [0-9.]+ s of the emulator: `mfmadsl device --profile FILE`", done.stdout
    )
    assert "TFLOP" not in done.stdout


@pytest.mark.thorough
def test_a_run_stands_in_the_json() -> None:
    done = on_device(*GEMM, "--run", "--emit", "json")
    described = json.loads(done.stdout)
    schema = json_schema()
    jsonschema.validate(described, {**schema["$defs"]["kernel"], "$defs": schema["$defs"]})
    assert described["run"]["agrees"] is True
    assert described["run"]["seconds"] is None
    assert [each["offset"] for each in described["kernel_arguments"]] == [0, 8, 16]
    assert described["code_object_version"] == 5
    assert "run        agrees" in done.stderr


def test_without_hip_one_is_told_where_there_is_some() -> None:
    done = mfmadsl(*GEMM, "--run")
    assert done.returncode == 1
    assert "libamdhip64.so is not found: install ROCm" in done.stderr
    assert "mfmadsl device -- PROGRAM" in done.stderr


# TFLOP/s without sparsity, as AMD's data sheets of the products say.
@pytest.mark.parametrize(
    ("product", "dtype", "teraflops"),
    [
        ("MI100", "float16", 184.6),
        ("MI100", "float32", 46.1),
        ("MI250X", "float16", 383.0 / 2),
        ("MI250X", "float64", 95.7 / 2),
        ("MI300X", "float16", 1307.4),
        ("MI300X", "float64", 163.4),
        ("MI300X", "int8", 2614.9),
        ("MI300X", "float8_e4m3fnuz", 2614.9),
        ("MI355X", "bfloat16", 2516.6),
        ("MI355X", "float8_e4m3fn", 5033.2),
    ],
)
def test_the_peak_is_that_of_the_data_sheets(product: str, dtype: str, teraflops: float) -> None:
    assert peak_flops(dtype, PRODUCTS[product]) / 1e12 == pytest.approx(teraflops, rel=2e-3)


def test_a_type_that_no_matrix_core_knows_has_no_peak() -> None:
    assert peak_flops("int64", PRODUCTS["MI300X"]) == 0
