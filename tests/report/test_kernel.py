"""Launch facts of kernels that take several launches."""

from __future__ import annotations

from dataclasses import replace

from mfmadsl import build, matmul
from mfmadsl.report import kernel_json, kernel_summary
from mfmadsl.schedule import gemm_schedule


def test_each_launch_is_the_next_of_the_one_before() -> None:
    last = build(gemm_schedule(matmul(64, 64, 64, "float16", "float32")))
    middle = replace(last, symbol="middle", lds_bytes=7, next=replace(last, symbol="last"))
    found = kernel_json(replace(last, symbol="first", next=middle), [["a.s"], ["b.s"], ["c.s"]])
    launches = []
    launch = found
    while launch is not None:
        launches.append((launch["symbol"], launch["files"]))
        launch = launch["next"]
    assert launches == [("first", ["a.s"]), ("middle", ["b.s"]), ("last", ["c.s"])]
    assert found["next"]["lds_bytes"] == 7
    lines = kernel_summary(replace(last, symbol="first", next=middle)).splitlines()
    assert [line for line in lines if line.startswith("then")] == [
        "then       middle", "then       last"
    ]  # fmt: skip
