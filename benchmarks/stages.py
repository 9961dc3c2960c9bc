"""How long each stage takes: the commands that people wait for, and one large GEMM.

    python benchmarks/stages.py

Every figure is the median of several runs in fresh processes. Times differ from machine to
machine; `import tvm`, which nothing here can make faster, stands in the table as the measure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "intrinsics/cdna/f16.mfma"
LIBRARY = [str(path) for path in sorted((ROOT / "intrinsics/cdna").glob("*.mfma"))]
RUNS = 5

IMPORT = """
import time
import tvm.s_tir
from tvm.script import tirx
start = time.perf_counter()
import {module}
imported = time.perf_counter()
{module}.register()
print(imported - start, time.perf_counter() - imported)
"""

PACKAGE = """
import time
import tvm.s_tir
from tvm.script import tirx
start = time.perf_counter()
import generated
print(time.perf_counter() - start)
"""

GEMM = """
import time
from mfmadsl import Gemm, build, emulate, find
gemm = Gemm(find("mfma_f32_16x16x16_f16"), "gfx942", 1024, 1024, 1024)
start = time.perf_counter()
schedule = gemm.schedule()
scheduled = time.perf_counter()
kernel = build(schedule, gemm.arch)
built = time.perf_counter()
assert gemm.check(kernel).agrees
print(scheduled - start, built - scheduled, time.perf_counter() - built)
"""


def seconds(*command: str, folder: Path = ROOT) -> float:
    """The median duration of a process."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        times.append(time.perf_counter() - start)
    return median(times)


def stages(program: str, folder: Path = ROOT) -> list[float]:
    """Medians of the durations that a program prints."""
    runs = []
    for _ in range(RUNS):
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=True, stdout=subprocess.PIPE, text=True, cwd=folder,
        )  # fmt: skip
        runs.append([float(x) for x in done.stdout.split()])
    return [median(column) for column in zip(*runs, strict=True)]


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    if find_spec("mfmadsl") is None:
        sys.exit(f"{sys.executable} has no mfmadsl; after `make demo`, .venv/bin/python has it")
    python, command = sys.executable, [sys.executable, "-m", "mfmadsl"]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "generated")
        to = ("-o", str(output))
        module = "mfma_f32_16x16x16_f16"
        rows = [
            ("mfmadsl list", seconds(*command, "list")),
            ("mfmadsl check, one file", seconds(*command, "check", str(SPEC))),
            ("mfmadsl check, whole library", seconds(*command, "check")),
            ("mfmadsl compile, one file", seconds(*command, "compile", str(SPEC), *to)),
            ("mfmadsl compile, whole library", seconds(*command, "compile", *LIBRARY, *to)),
            ("import tvm", seconds(python, "-c", "import tvm.s_tir")),
        ]
        (package,) = stages(PACKAGE, Path(folder))
        imported, registered = stages(IMPORT.format(module=module), output)
    rows += [
        ("import the package of all generated modules, beyond TVM", package),
        ("import one generated module, beyond TVM", imported),
        ("... and register all of its pairs", registered),
    ]
    names = ("schedule", "generate code for", "emulate and compare")
    rows += [
        (f"{name} a 1024x1024x1024 f16 GEMM", t)
        for name, t in zip(names, stages(GEMM), strict=True)
    ]
    print("| stage | seconds |\n| --- | --- |")
    for stage, duration in rows:
        print(f"| {stage} | {duration:.3f} |")


if __name__ == "__main__":
    main()
