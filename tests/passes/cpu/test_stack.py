"""Which buffers lie on the stack, and share no memory with others."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.tirx import PrimFunc

from mfmadsl.backend.function_pass import of_functions
from mfmadsl.passes.cpu.stack import apart, keep_on_stack
from tests.passes.flat import body_of, computed, function

IN_TURN = """
large = T.alloc_buffer((4096,))
for i in range(4096):
    large[i] = A[i]
for i in range(4096):
    C[i] = large[4095 - i]
small = T.alloc_buffer((512,))
for i in range(512):
    small[i] = A[i] * T.float32(2)
for i in range(512):
    C[i] = small[511 - i]
"""


def rewritten(found: PrimFunc) -> str:
    """The body of a function between the two passes, as StorageRewrite leaves it."""
    module = tirx.transform.StorageRewrite()(tvm.IRModule({"main": found}))
    return body_of(of_functions(keep_on_stack)(module)["main"])


@pytest.mark.parametrize(
    ("extent", "dtype", "stays"),
    [
        (2048, "float32", True),
        (2049, "float32", False),
        (128, "float32x16", True),
        (129, "float32x16", False),
        (8192, "uint8", True),
        (2, "float64", True),
    ],
)
def test_up_to_8_kib(extent: int, dtype: str, stays: bool) -> None:
    zero = "T.Broadcast(T.float32(0), 16)" if "x" in dtype else f'T.cast(0, "{dtype}")'
    body = f'own = T.alloc_buffer(({extent},), "{dtype}")\nown[0] = {zero}'
    found = body_of(keep_on_stack(apart(function({"C": 1}, body))))
    assert ("T.alloc_local" in found, "disable_lower_builtin" in found) == (stays, stays)


def test_not_of_an_extent_that_is_computed() -> None:
    body = "own = T.alloc_buffer((n[0],))\nown[0] = T.float32(0)"
    found = function({"n": 1, "C": 1}, body)
    assert body_of(keep_on_stack(apart(found))) == body_of(found)


def test_nor_one_that_is_seen_as_another() -> None:
    body = """
own = T.alloc_buffer((16,))
seen = T.decl_buffer((4, 4), data=own.data)
own[0] = T.float32(1)
C[0] = seen[0, 0]
"""
    found = function({"C": 1}, body)
    assert body_of(apart(found)) == body_of(found)


def test_it_shares_no_memory_with_a_large_one() -> None:
    found = function({"A": 4096, "C": 4096}, IN_TURN)
    assert rewritten(found).count("alloc") == 1  # as TVM has it
    assert "small = T.alloc_local((512,)" in rewritten(apart(found))


def test_the_numbers_stay() -> None:
    found = function({"A": 4096, "C": 4096}, IN_TURN)
    (_, before), (_, after) = computed(found), computed(keep_on_stack(apart(found)))
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(after[:512], 2 * np.arange(512, 0, -1, dtype=np.float32))
    np.testing.assert_array_equal(after[512:], np.arange(3584, 0, -1, dtype=np.float32))
