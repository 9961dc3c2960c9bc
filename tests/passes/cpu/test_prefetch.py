"""Loops that ask for what they will read."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

import mfmadsl
from mfmadsl.host.cpu import cpu_target
from mfmadsl.passes import LoweringError
from mfmadsl.passes.cpu.prefetch import prefetch_vectors
from tests.passes.flat import body_of, computed, function

LENGTHS = {"A": 640, "C": 64}
SUMS = """
sums = T.alloc_buffer((32,))
for s in T.unroll(2):
    sums[s * 16:s * 16 + 16] = T.Broadcast(T.float32(0), 16)
for k in T.serial(20, annotations={"mfmadsl.prefetch": 4}):
    for s in T.unroll(2):
        sums[T.Ramp(s * 16, 1, 16)] = (
            sums[T.Ramp(s * 16, 1, 16)] + A[T.Ramp(k * 32 + s * 16, 1, 16)]
        )
for s in T.unroll(2):
    C[T.Ramp(s * 32, 1, 16)] = sums[T.Ramp(s * 16, 1, 16)]
"""


def asked(body: str, lengths: dict[str, int] = LENGTHS) -> list[str]:
    """The calls of prefetch, each with what surrounds it left away."""
    found = body_of(prefetch_vectors(function(lengths, body)))
    return [line.strip() for line in found.splitlines() if "T.prefetch(" in line]


def test_lines_are_asked_for_where_the_loop_will_be() -> None:
    found = body_of(prefetch_vectors(function(LENGTHS, SUMS)))
    assert (
        found
        == """\
sums = T.alloc_buffer((32,))
for s in T.unroll(2):
    sums[s * 16:s * 16 + 16] = T.Broadcast(T.float32(0.0), 16)
for k in range(20):
    T.prefetch(T.address_of(A[k * 32 + 128]), 0, 3, 1)
    T.prefetch(T.address_of(A[k * 32 + 144]), 0, 3, 1)
    for s in T.unroll(2):
        sums[s * 16:s * 16 + 16] = sums[T.Ramp(s * 16, 1, 16)] + A[T.Ramp(k * 32 + s * 16, 1, 16)]
for s in T.unroll(2):
    C[s * 32:s * 32 + 16] = sums[T.Ramp(s * 16, 1, 16)]"""
    )


def test_the_numbers_stay_and_nothing_past_the_end_is_touched() -> None:
    found = function(LENGTHS, SUMS)
    before, after = computed(found), computed(prefetch_vectors(found))
    np.testing.assert_array_equal(after[1], before[1])
    columns = np.arange(1, 641, dtype=np.float32).reshape(20, 2, 16).sum(0)
    np.testing.assert_array_equal(after[1].reshape(2, 32)[:, :16], columns)


def test_a_loop_without_the_annotation_asks_for_nothing() -> None:
    plain = function(LENGTHS, SUMS.replace(', annotations={"mfmadsl.prefetch": 4}', ""))
    assert "prefetch" not in prefetch_vectors(plain).script()


def test_a_line_is_asked_for_once() -> None:
    """Four vectors of eight elements are two lines."""
    body = """
sums = T.alloc_buffer((32,))
for k in T.serial(20, annotations={"mfmadsl.prefetch": 1}):
    for s in T.unroll(4):
        sums[T.Ramp(s * 8, 1, 8)] = sums[T.Ramp(s * 8, 1, 8)] + A[T.Ramp(k * 32 + s * 8, 1, 8)]
"""
    assert asked(body) == [
        "T.prefetch(T.address_of(A[k * 32 + 32]), 0, 3, 1)",
        "T.prefetch(T.address_of(A[k * 32 + 48]), 0, 3, 1)",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "T.Broadcast(A[k], 16)",  # an element, of a line that comes again
        "A[T.Ramp(k, 20, 16)]",  # no neighbours
        "A[T.Ramp(0, 1, 16)]",  # in the first cache after the first turn
        "A[T.Ramp(k * k, 1, 16)]",  # who knows where it is next
    ],
)
def test_what_is_not_asked_for(value: str) -> None:
    body = f"""
sums = T.alloc_buffer((16,))
for k in T.serial(20, annotations={{"mfmadsl.prefetch": 4}}):
    sums[T.Ramp(0, 1, 16)] = sums[T.Ramp(0, 1, 16)] + {value}
"""
    assert asked(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "if k < 7:\n        {}",
        "for s in range(2):\n        {}",
        "first = T.bind(k // 2)\n    {}",
        "A_own = T.alloc_buffer((640,))\n    sums[T.Ramp(0, 1, 16)] = A_own[T.Ramp(k * 16, 1, 16)]",
    ],
)
def test_what_a_turn_may_not_read_or_does_not_have_yet_is_not_asked_for(body: str) -> None:
    place = "first + k * 16" if "first" in body else "k * 16"
    store = f"sums[T.Ramp(0, 1, 16)] = A[T.Ramp({place}, 1, 16)]"
    whole = f"""
sums = T.alloc_buffer((16,))
for k in T.serial(20, annotations={{"mfmadsl.prefetch": 4}}):
    {body.format(store)}
"""
    assert asked(whole) == []


def test_of_several_statements_each_asks() -> None:
    body = """
sums = T.alloc_buffer((32,))
for k in T.serial(20, annotations={"mfmadsl.prefetch": 2}):
    for s in T.unroll(2):
        sums[T.Ramp(s * 16, 1, 16)] = A[T.Ramp(k * 32 + s * 16, 1, 16)]
    sums[T.Ramp(0, 1, 16)] = A[T.Ramp(k * 32 + 300, 1, 16)]
"""
    assert asked(body) == [
        "T.prefetch(T.address_of(A[k * 32 + 64]), 0, 3, 1)",
        "T.prefetch(T.address_of(A[k * 32 + 80]), 0, 3, 1)",
        "T.prefetch(T.address_of(A[k * 32 + 364]), 0, 3, 1)",
    ]


def test_who_builds_is_told_as_well() -> None:
    far = function(LENGTHS, SUMS.replace('"mfmadsl.prefetch": 4', '"mfmadsl.prefetch": "far"'))
    said = "annotation mfmadsl.prefetch: is a number of iterations, 1 or more, not far"
    with pytest.raises(LoweringError) as refused:
        mfmadsl.build_for_cpu(far)
    assert str(refused.value) == said
    with pytest.raises(LoweringError, match=said):
        tvm.compile(far, target=cpu_target(), tir_pipeline="mfmadsl_cpu")


@pytest.mark.parametrize("turns", ["0", "-1", '"far"', "T.float32(2)"])
def test_an_annotation_that_says_nothing_is_refused(turns: str) -> None:
    body = SUMS.replace('"mfmadsl.prefetch": 4', f'"mfmadsl.prefetch": {turns}')
    told = r"annotation mfmadsl\.prefetch: is a number of iterations"
    with pytest.raises(LoweringError, match=told):
        prefetch_vectors(function(LENGTHS, body))
