"""The loop along k: loads and multiplications, and no sum that leaves its register."""

from __future__ import annotations

import re

import pytest

import mfmadsl
from mfmadsl.language import find_microkernel
from mfmadsl.model import Cpu
from mfmadsl.model.cpu import cpu
from tests.codegen.tiled_product import loops, stores
from tests.schedule.cpu.workloads import HASWELL, SSE2, Matmul

SERVER = cpu("cascadelake")
"""What is looked at and not run may be for any CPU."""

_KNOWN = re.compile(
    r"\s+(v?mov(ap|up|s|dq[au]|d|q)\w*|vbroadcast\w+|vpbroadcast\w+|v?shuf\w+|v?pshuf\w+|v?unpck\w+"
    r"|v?movddup|vfmadd\w+|v?mulp[sd]|v?addp[sd]|vpdpbusd|prefetch\w+"
    r"|add[lq]?|sub[lq]?|inc[lq]?|dec[lq]?|lea[lq]?|mov[lq]?|cmp[lq]?|test[lq]?|j\w+|nop\w*)\b"
)


@pytest.mark.parametrize(
    ("dtype", "known", "mnemonic"),
    [("float32", SERVER, "vfmadd"), ("uint8", SERVER, "vpdpbusd"), ("float64", SERVER, "vfmadd"),
     ("float32", HASWELL, "vfmadd"), ("float32", SSE2, "mulps")],
    ids=lambda x: getattr(x, "name", x),
)  # fmt: skip
def test_at_512_cubed_it_multiplies_and_loads_and_stores_nothing(
    dtype: str, known: Cpu, mnemonic: str
) -> None:
    function = Matmul(512, 512, 512, dtype).function()
    tiling = mfmadsl.cpu_gemm_tiling(function, cpu=known, threads=1)
    schedule = mfmadsl.cpu_gemm_schedule(function, None, known, tiling, 1)
    kernel = mfmadsl.build_for_cpu(schedule, known)
    tile = find_microkernel(tiling.microkernel)
    bodies = loops(kernel.assembly, mnemonic)
    assert bodies, "no loop along k"
    # Of tiles at an edge LLVM leaves out rows that are not there.
    steps = [sum(mnemonic in line for line in body) for body in bodies]
    assert any(count % len(tile.steps) == 0 for count in steps), steps
    for body in bodies:
        assert stores(body) == []
        assert any("prefetch" in line for line in body), "no vector is asked for ahead"
        for line in body:
            if line.startswith("\t") and not line.lstrip().startswith((".", "#")):
                assert _KNOWN.match(line), line


@pytest.mark.parametrize("layout", [(True, True), (False, True), (True, False), (False, False)])
def test_nor_in_other_layouts_or_at_an_edge(layout: tuple[bool, bool]) -> None:
    function = Matmul(100, 100, 77, "float32", (*layout, True)).function()
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(function, cpu=SERVER), SERVER)
    bodies = loops(kernel.assembly, "vfmadd")
    assert bodies
    assert [stores(body) for body in bodies] == [[]] * len(bodies)


@pytest.mark.parametrize("extents", [(1570, 1186, 1439), (157, 1186, 643), (1061, 1459, 187)])
def test_nor_where_an_edge_needs_a_register_as_well(extents: tuple[int, int, int]) -> None:
    function = Matmul(*extents, "float32").function()
    tiling = mfmadsl.cpu_gemm_tiling(function, cpu=SERVER, threads=1)
    schedule = mfmadsl.cpu_gemm_schedule(function, None, SERVER, tiling, 1)
    bodies = loops(mfmadsl.build_for_cpu(schedule, SERVER).assembly, "vfmadd")
    assert bodies
    assert [stores(body) for body in bodies] == [[]] * len(bodies)
