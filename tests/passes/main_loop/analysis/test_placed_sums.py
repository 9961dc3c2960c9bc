"""`placed_sums`: four sums that are added to stay where that is done; all else is as it was."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import tirx
from tvm.ir import Call
from tvm.tirx import BufferLoad, BufferStore

from mfmadsl.passes.main_loop.analysis.element_wise import Statement
from mfmadsl.passes.main_loop.analysis.placed_sums import placed_sums
from mfmadsl.passes.tir.device import device_function


def added(target: int, source: int | None = None, dtype: str = "float32") -> Statement:
    """One that adds 1 to a register, or writes another one's sum there."""
    registers = BUFFERS[dtype]
    source = target if source is None else source
    value: Any = BufferLoad(registers, [tirx.const(source, "int32")]) + tirx.const(1, dtype)
    handle = registers.__chandle__()
    return Statement(
        BufferStore(registers, value, [tirx.const(target, "int32")]), False,
        frozenset({(handle, source)}), frozenset({(handle, target)}),
    )  # fmt: skip


BUFFERS = {
    dtype: tirx.decl_buffer((64,), dtype, dtype, scope="local") for dtype in ("float32", "float64")
}


def places(statements: list[Statement]) -> list[str]:
    """Where what keeps sums stands, by the statement before it, and the first of its sums."""
    out, found = list(placed_sums(statements)), []
    for number, store in enumerate(out):
        value = store.value
        if isinstance(value, Call) and device_function(value) == "placed":
            (index,) = store.indices
            assert isinstance(index, tirx.Ramp)
            found.append(f"{number}: {index.base}")
    assert [s for s in out if not isinstance(s.value, Call)] == [s.store for s in statements]
    return found


def test_four_neighbours_are_kept_behind_the_last() -> None:
    assert places([added(n) for n in range(8)]) == ["4: 0", "9: 4"]


@pytest.mark.parametrize("statements", [
    [added(n) for n in range(3)],
    [added(n) for n in range(2, 6)],
    [added(0), added(1), added(2), added(4)],
    [added(n, 8 + n) for n in range(4)],
    [added(n, dtype="float64") for n in range(4)],
], ids=["three", "not aligned", "a gap", "no sums", "another type"])  # fmt: skip
def test_others_are_left(statements: list[Statement]) -> None:
    assert places(statements) == []


def test_a_run_begins_anew_behind_a_gap() -> None:
    assert places([added(0), added(1), *(added(n) for n in range(4, 8))]) == ["6: 4"]
