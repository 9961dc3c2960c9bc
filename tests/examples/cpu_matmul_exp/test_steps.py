"""Each step computes the chain, at sizes that tiles divide and others; and what it is about."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm.s_tir import Schedule

from examples.cpu_matmul_exp import exp_fused, products_fused, reordered, tiled, vectorized
from examples.cpu_matmul_exp.chain import Floats, Inputs, Size, inputs, loops
from examples.cpu_matmul_exp.check import expected
from examples.cpu_matmul_exp.ladder import ladder
from examples.cpu_matmul_exp.step import Step, compiled, this_cpu
from mfmadsl.passes.cpu.exponential import expand_exponentials

STEPS = ladder()
NAMES = [step.name for step in STEPS]
EVEN = Size(64, 96, 64, 96)
SIZES = (EVEN, Size(33, 65, 17, 70), Size(3, 200, 129, 5), Size(1, 1, 1, 1), Size(1, 9, 1, 9))


def result(module: tvm.IRModule, given: Inputs, pipeline: str = "default") -> Floats:
    """F, into a matrix of NaN."""
    m, p = given[0].shape[0], given[2].shape[1]
    out = tvm.runtime.tensor(np.full((m, p), np.nan, np.float32))
    compiled(module, this_cpu(2), pipeline)(*map(tvm.runtime.tensor, given), out)
    found: Floats = out.numpy()
    return found


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_a_step_computes_the_chain(step: Step, size: Size) -> None:
    given = inputs(size)
    assert (
        expected(given, exact_sums=True).difference(result(step.make(size), given, step.pipeline))
        is None
    )


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_a_step_with_the_polynomial_exp_computes_it_as_well(step: Step) -> None:
    given = inputs(EVEN)
    module = expand_exponentials()(step.make(EVEN))
    assert expected(given, exact_sums=True).difference(result(module, given, step.pipeline)) is None


@pytest.mark.parametrize("polynomial", [False, True], ids=["expf", "polynomial"])
@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_nan_and_infinities_go_through_to_the_output(step: Step, polynomial: bool) -> None:
    size = Size(40, 33, 34, 35)
    a, b, c = inputs(size)
    b = np.abs(b) + np.float32(0.125)
    a[3, 5] = np.nan
    a[7, 0] = np.inf  # a row of infinite sums: exp is infinity
    a[8, 1] = -np.inf  # exp is 0
    a[9, :2] = np.inf, -np.inf  # their sum is NaN
    a[10] = 1000  # finite sums, of which exp overflows
    a[11] = -1000  # and underflows to 0
    c[:, 4] = 0  # infinity times 0 is NaN
    with np.errstate(all="ignore"):
        right = np.exp(a @ b) @ c
    module = step.make(size)
    module = expand_exponentials()(module) if polynomial else module
    found = result(module, (a, b, c), step.pipeline)
    assert np.isnan(right[3]).all()
    assert np.isinf(right[7, :4]).all()
    assert not right[11].any()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(right))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(right))
    np.testing.assert_allclose(found, right, rtol=1e-4)


def test_a_step_has_a_file_of_its_name() -> None:
    folder = Path(reordered.__file__).parent
    assert all((folder / f"{name}.py").is_file() for name in NAMES)


# What a step is about.


def text(name: str, size: Size = EVEN) -> str:
    return str(next(step for step in STEPS if step.name == name).make(size).script())


def test_naive_has_the_sum_innermost_and_reordered_has_not() -> None:
    assert "for i in T.parallel(64):\n            for j, k in T.grid(64, 96):" in text("naive")
    for line in ("for k, j in T.grid(96, 64)", "for j, q in T.grid(64, 96)"):
        assert line in text("reordered")


@pytest.mark.parametrize(
    ("name", "nests"), [("tiled", 3), ("exp_fused", 2), ("products_fused", 1), ("vectorized", 1)]
)
def test_fusing_leaves_so_many_nests(name: str, nests: int) -> None:
    assert len(re.findall("T.parallel", text(name))) == nests


def depth(sch: Schedule, block: str) -> int:
    return len(sch.get_loops(sch.get_sblock(block)))


def test_exp_moves_into_the_tile() -> None:
    apart, fused = loops(EVEN), loops(EVEN)
    tiled.schedule(apart)
    exp_fused.schedule(fused)
    assert (depth(apart, "E"), depth(fused, "E")) == (2, 4)


def test_what_is_between_the_products_is_a_block_of_rows() -> None:
    """Once TVM has narrowed it: all of E is 4 M bytes at the full size, 32 rows are 128 KiB."""
    sch = loops(Size(256, 64, 128, 64))
    products_fused.schedule(sch)
    lowered = tvm.s_tir.transform.CompactBufferAllocation()(
        tvm.s_tir.transform.PlanAndUpdateBufferAllocationLocation()(
            tvm.s_tir.transform.ConvertBlocksToOpaque()(sch.mod)
        )
    )
    assert "E = T.sblock_alloc_buffer((32, 128))" in lowered.script()


def test_vectorized_adds_up_in_registers() -> None:
    """Vectors of 32 floats are zeroed, added to and stored in each product, and one is of exp."""
    sch = loops(Size(256, 64, 128, 64))
    vectorized.schedule(sch)
    assert 'scope="local"' in sch.mod.script()
    assert sch.mod.script().count("T.vectorized(32)") == 7


def test_tiles_that_reach_into_another_thread_s_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="tiles of 12 rows do not divide a block of 128"):
        vectorized.schedule(loops(EVEN), 128, vectorized.TILE, vectorized.Tile(12, 32, 1))


def test_no_block_of_rows_writes_another_s() -> None:
    """What is in F past a block, of rows of its own, is what was there: only one block is run."""
    size = Size(2 * vectorized.BLOCK, 16, 32, 32)
    given = inputs(size)
    module = next(step for step in STEPS if step.name == "vectorized").make(size)
    script = module.script().replace("T.parallel(2)", "T.serial(1)")
    assert script != module.script()
    found = result(tvm.script.from_source(script), given)
    assert np.isnan(found[vectorized.BLOCK :]).all()
    assert not np.isnan(found[: vectorized.BLOCK]).any()
