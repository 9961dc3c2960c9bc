"""`read_once`: one read of each place of the LDS in a register step, and the same sums."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore, Var

from mfmadsl.passes.main_loop.analysis.read_once import read_once
from mfmadsl.passes.tir.expression import loads_of

TILE = tirx.decl_buffer((64,), "float32", "tile", scope="shared")
LANE = Var("lane", "int32")
HELD, SUMS = (tirx.decl_buffer((8,), "float32", name, scope="local") for name in ("held", "sums"))


def i32(number: int) -> Any:
    return tirx.const(number, "int32")


def read(register: int, place: int) -> BufferStore:
    return BufferStore(HELD, BufferLoad(TILE, [LANE + place]), [i32(register)])


def use(register: int, total: int) -> BufferStore:
    return BufferStore(SUMS, BufferLoad(HELD, [i32(register)]), [i32(total)])


def used(statement: BufferStore) -> list[str]:
    return [str(load.indices[0]) for load in loads_of(statement.value)]


def test_a_place_is_read_into_one_register() -> None:
    ((reads, computing),) = read_once(
        [([read(0, 5), read(1, 6), read(2, 5)], [use(n, n) for n in range(3)])]
    )
    assert [str(r.indices[0]) for r in reads] == ["0", "1"]
    assert [used(s) for s in computing] == [["0"], ["1"], ["0"]]


def test_each_step_reads_for_itself() -> None:
    step = [read(0, 5), read(1, 5)], [use(0, 0), use(1, 1)]
    assert [len(reads) for reads, _ in read_once([step, step])] == [1, 1]


def test_what_a_later_step_uses_stays() -> None:
    """The register of the first step may be filled anew by then."""
    first = [read(0, 5), read(1, 5)], [use(0, 0)]
    second = [read(0, 6)], [use(0, 1), use(1, 2)]
    assert read_once([first, second]) == [first, second]


def test_what_is_used_as_a_vector_stays() -> None:
    pair = BufferStore(
        SUMS, BufferLoad(HELD, [tirx.Ramp(i32(0), i32(1), 2)]), [tirx.Ramp(i32(0), i32(1), 2)]
    )
    step = [read(0, 5), read(1, 5)], [pair]
    assert read_once([step]) == [step]


def test_what_is_filled_twice_stays() -> None:
    step = [read(0, 5), read(1, 5), read(0, 6)], [use(0, 0), use(1, 1)]
    assert read_once([step]) == [step]
