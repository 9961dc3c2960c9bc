"""How much faster kernels are emulated as native code than by the interpreter, and what the
sanitizer costs beside it.

    python -m benchmarks.native

Seconds of CPU time, of processes of their own: of the interpreter's fastest of three launches; of
the first launch with nothing on disk, and with the code that former processes have left there; and
of the fastest of eight launches in that process, without the sanitizer and with it.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mfmadsl
from mfmadsl import Gemm, find

LOOP = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
loop:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_lshl_b32 s2, s2, 10
	v_lshl_add_u32 v1, v0, 2, s2
	s_movk_i32 s6, 0x7d0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	s_waitcnt vmcnt(0)
	v_mov_b32_e32 v3, v2
again:
	v_fma_f32 v3, v3, v2, 0.5
	v_cvt_i32_f32_e32 v4, v3
	v_cvt_f32_i32_e32 v4, v4
	v_sub_f32_e32 v3, v3, v4
	v_and_b32_e32 v5, 3, v0
	v_cmp_eq_u32_e32 vcc, 0, v5
	v_add_u32_e32 v0, 1, v0
	v_med3_f32 v3, v3, -1.0, 1.0
	v_cndmask_b32_e64 v5, v2, 0, vcc
	v_add_f32_e32 v3, v5, v3
	s_add_i32 s6, s6, -1
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 again
	global_store_dword v1, v3, s[4:5]
	s_endpgm
	.amdhsa_kernel loop
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_next_free_vgpr 8
		.amdhsa_next_free_sgpr 8
		.amdhsa_accum_offset 8
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: loop
    .args:
      - {.name: x, .offset: 0, .size: 8, .value_kind: global_buffer}
...
	.end_amdgpu_metadata
"""

RUN = """
import pickle, sys, time
from types import SimpleNamespace
from mfmadsl.emulator import emulate
from mfmadsl.emulator.sanitizer import sanitize
run = {"emulate": emulate, "sanitize": sanitize}[sys.argv[3]]
with open(sys.argv[1], "rb") as file:
    kept = pickle.load(file)
seconds = []
for _ in range(int(sys.argv[2])):
    copies = [{**launch, "args": [each.copy() for each in launch["args"]]} for launch in kept]
    start = time.process_time()
    for launch in copies:
        run(SimpleNamespace(**launch), launch["args"])
    seconds.append(time.process_time() - start)
print(seconds[0], min(seconds))
"""
WARMING = 6
"""Processes that leave code on disk: each compiles what takes as long as what it interprets."""


def _launches(kernel: Any, args: Sequence[Any]) -> list[dict[str, Any]]:
    names = ("assembly", "symbol", "grid", "block", "lds_bytes")
    launches = kernel.launches(args) if hasattr(kernel, "launches") else None
    if launches is None:
        return [{**{name: getattr(kernel, name) for name in names}, "args": list(args)}]
    return [{**{n: getattr(each, n) for n in names}, "args": list(each.args)} for each in launches]


def _softmax() -> list[dict[str, Any]]:
    from benchmarks.rows import function_of, softmax
    from mfmadsl.relax.rows import row_schedule

    target = mfmadsl.target("gfx942")
    schedule = row_schedule(function_of(softmax, [(1024, 2048)], "float32", target))
    assert schedule is not None
    x = np.random.default_rng(1).standard_normal((1024, 2048)).astype(np.float32)
    return _launches(mfmadsl.build(schedule, arch="gfx942"), [x, np.zeros_like(x)])


def _attention() -> list[dict[str, Any]]:
    workload = mfmadsl.attention(1, 8, 512, 512, 128)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, arch="gfx942"), arch="gfx942")
    shape = (1, 8, 512, 128)
    q, k, v = (np.random.default_rng(n).standard_normal(shape).astype("float16") for n in range(3))
    return _launches(kernel, [q, k, v, np.zeros_like(q)])


def _gemm(size: int) -> list[dict[str, Any]]:
    gemm = Gemm(find("mfma_f32_16x16x16_f16"), "gfx942", size, size, size, shared_scope="shared")
    return _launches(gemm.build(), list(gemm.operands()))


def _loop() -> list[dict[str, Any]]:
    x = np.random.default_rng(1).standard_normal(64 * 256).astype(np.float32)
    launch = {"assembly": LOOP, "symbol": "loop", "grid": (64, 1, 1), "block": (256, 1, 1)}
    return [{**launch, "lds_bytes": 0, "args": [x]}]


CASES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "a loop of 12 instructions, 2000 times": _loop,
    "softmax of 1024x2048, f32": _softmax,
    "attention, 8 heads of 512x512x128, f16": _attention,
    "GEMM 1024x1024x1024, f16": lambda: _gemm(1024),
    "GEMM 128x128x128, f16": lambda: _gemm(128),
}


def measured(
    path: Path, cache: Path, launches: int, native: bool, how: str = "emulate"
) -> tuple[float, float]:
    """CPU seconds of the first launch and of the fastest, in a process of its own."""
    more = {"MFMADSL_NATIVE": str(int(native)), "MFMADSL_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(launches), how],
        check=True, capture_output=True, text=True, env={**os.environ, **more},
    )  # fmt: skip
    first, fastest = map(float, done.stdout.split())
    return first, fastest


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(
        "| kernel | interpreted | first | first, code on disk | then | times as fast |"
        " sanitized | times as long |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, made in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path, cache = Path(folder, "kernel"), Path(folder, "cache")
            path.write_bytes(pickle.dumps(made()))
            _, interpreted = measured(path, cache, 3, native=False)
            first, _ = measured(path, cache, 1, native=True)
            for _ in range(WARMING):
                measured(path, cache, 1, native=True)
            measured(path, cache, 8, native=True)
            measured(path, cache, 8, native=True, how="sanitize")
            warm, fastest = measured(path, cache, 8, native=True)
            _, sanitized = measured(path, cache, 8, native=True, how="sanitize")
        times = interpreted / fastest
        print(
            f"| {name} | {interpreted:.2f} | {first:.2f} | {warm:.2f} | {fastest:.3f} |"
            f" {times:.1f} | {sanitized:.3f} | {sanitized / fastest:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
