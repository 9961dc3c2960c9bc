"""Every tile is taken once, whatever the grid is and however it is dealt out."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir import Range
from tvm.tirx import AttrStmt, Bind, BufferStore, For, IterVar, PrimFunc, SeqStmt

from mfmadsl.passes.grid import LaunchGrid, grid_of, regrid
from mfmadsl.passes.tir.expression import numbers

OUT = tirx.decl_buffer((1 << 20,), "int32", "out")


def kernel(extents: dict[str, Any]) -> PrimFunc:
    """Each workgroup stores at its own place on all axes."""
    place: Any = tirx.const(0, "int32")
    axes = []
    for name, extent in extents.items():
        axis = IterVar(
            Range(0, extent), tirx.Var(f"b{name}", "int32"), IterVar.ThreadIndex, f"blockIdx.{name}"
        )
        axes.append((axis, extent))
        place = place * 100 + axis.var
    body: Any = BufferStore(OUT, tirx.const(1, "int32"), [place])
    for axis, extent in axes:
        body = AttrStmt(axis, "thread_extent", tirx.const(extent, "int32"), body)
    return PrimFunc([OUT], body)


def taken(function: PrimFunc) -> Counter[int]:
    """How often each place is stored to, by all workgroups, in all their turns."""
    whole = function.body
    assert isinstance(whole, AttrStmt)
    found: Counter[int] = Counter()
    for own in range(int(numbers(whole.value, {}))):
        run(whole.body, {whole.node.var.name: own}, found)
    return found


def run(statement: Any, values: dict[str, Any], found: Counter[int]) -> None:
    if isinstance(statement, SeqStmt):
        for each in statement.seq:
            run(each, values, found)
    elif isinstance(statement, Bind):
        values[statement.var.name] = numbers(statement.value, values)
    elif isinstance(statement, For):
        for turn in range(int(numbers(statement.extent, values))):
            run(statement.body, {**values, statement.loop_var.name: turn}, found)
    elif isinstance(statement, BufferStore):
        found[int(numbers(statement.indices[0], values))] += 1


EXTENT = st.integers(1, 9)


@settings(max_examples=60)
@given(
    st.sampled_from(["x", "xy", "xyz", "zyx"]), st.tuples(EXTENT, EXTENT, EXTENT),
    st.integers(1, 10), st.sampled_from([1, 2, 3, 8]),
    st.sampled_from([None, 1, 2, 7, 304]), st.sampled_from([None, 1, 2]),
)  # fmt: skip
def test_every_tile_once(
    axes: str, extents: tuple[int, int, int], group: int, dies: int, workgroups: int | None,
    at_a_time: int | None,
) -> None:  # fmt: skip
    function = kernel(dict(zip(axes, extents, strict=False)))
    found = taken(regrid(function, LaunchGrid(group, dies, workgroups, at_a_time)))
    expected = {0}
    for _, extent in zip(axes, extents, strict=False):
        expected = {place * 100 + own for place in expected for own in range(extent)}
    assert found == dict.fromkeys(expected, 1)


def test_a_die_has_a_compact_part_of_c() -> None:
    """16 x 16 tiles for eight dies: each gets 32 that touch 8 rows and 4 columns."""
    whole: Any = regrid(kernel({"y": 16, "x": 16}), LaunchGrid(8, 8)).body
    found: Counter[int] = Counter()
    for own in range(0, 256, 8):
        run(whole.body, {whole.node.var.name: own}, found)
    assert len({place // 100 for place in found}) == 8
    assert len({place % 100 for place in found}) == 4


def test_annotations_say_what_the_grid_is() -> None:
    loop = tirx.Var("k", "int32")
    told = {"mfmadsl.grid.group": 4, "mfmadsl.grid.workgroups": 12, "other": 1}
    store = BufferStore(OUT, tirx.const(1, "int32"), [loop])
    annotated = For(loop, 0, 8, tirx.ForKind.SERIAL, store, None, told)
    assert grid_of(PrimFunc([OUT], annotated)) == LaunchGrid(4, 1, 12)
    assert grid_of(kernel({"x": 2})) is None


def test_a_workgroup_waits_for_its_waves_before_the_next_tile() -> None:
    """What a tile has left in the LDS is overwritten by the next one."""
    whole = regrid(kernel({"x": 5}), LaunchGrid(workgroups=2)).body
    assert isinstance(whole, AttrStmt)
    loop = whole.body
    assert isinstance(loop, For)
    assert isinstance(loop.body, SeqStmt)
    assert "llvm.amdgcn.s.barrier" in str(loop.body.seq[-1])
