"""Two of four: what is kept, where it lies, and that a sparse instruction's workload agrees."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mfmadsl import ArgumentError, ArgumentTypeError, compress, decompress
from mfmadsl.language import library
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import load_intrinsic
from mfmadsl.sparsity import Compressed

COMPUTED = ("float16", "bfloat16", "int8")
"""What TVM computes on a CPU: not the eight-bit floats."""

SHAPES = st.tuples(st.integers(0, 3), st.integers(1, 4)).map(lambda s: (s[0], 8 * s[1]))
ARRAYS = hnp.arrays(np.int8, SHAPES)
SPARSE = [n for n, each in library().items() if each.sparse and each.a.type.dtype in COMPUTED]
PAIRS = np.array(list(combinations(range(4), 2)), np.uint8)


@st.composite
def halves(draw: st.DrawFn) -> Any:
    """(values, places) of two in each four, in their order."""
    values = draw(hnp.arrays(np.int8, SHAPES.map(lambda s: (s[0], s[1] // 2))))
    rows, stored = values.shape
    drawn = draw(hnp.arrays(np.uint8, (rows, stored // 2), elements=st.integers(0, len(PAIRS) - 1)))
    return values, PAIRS[drawn].reshape(values.shape)


@given(halves())
def test_what_is_decompressed_is_compressed_to_the_same_matrix(half: Any) -> None:
    values, places = half
    whole = decompress(values, places)
    assert (decompress(*compress(whole)) == whole).all()
    count = values.size // 2
    groups, of_each = whole.reshape(count, 4), places.reshape(count, 2).astype(int)
    assert (np.take_along_axis(groups, of_each, 1) == values.reshape(count, 2)).all()


@given(halves())
def test_both_forms_of_the_index_say_the_same(half: Any) -> None:
    values, places = half
    made = Compressed(values, places)
    assert made.packed.shape == (*values.shape[:-1], values.shape[-1] // 4)
    assert (decompress(values, made.packed) == decompress(values, places)).all()


def test_words_have_the_bytes_of_32_elements_of_all_rows() -> None:
    made = Compressed(np.zeros((5, 48), np.int8), np.tile(np.arange(48) % 3, (5, 1)).astype("u1"))
    assert made.words.shape == (3, 5, 4)
    for group in range(3):
        assert (made.words[group] == made.packed[:, 4 * group : 4 * group + 4]).all()


@pytest.mark.parametrize("shape", [(16,), (2, 40)], ids=str)
def test_there_are_no_words_of_no_rows_or_of_other_lengths(shape: tuple[int, ...]) -> None:
    made = Compressed(np.zeros(shape, np.int8), np.zeros(shape, np.uint8))
    with pytest.raises(ArgumentError, match="words are of rows of 32 k each"):
        _ = made.words


@given(ARRAYS)
def test_the_largest_two_are_kept_in_their_order(array: Any) -> None:
    values, places = compress(array)
    count = array.size // 4
    groups, kept = array.reshape(count, 4).astype(int), places.reshape(count, 2).astype(int)
    assert (kept[:, 0] < kept[:, 1]).all()
    left = np.sort(np.abs(groups), axis=1)[:, 2:].sum(axis=1)
    assert (np.abs(values.reshape(count, 2).astype(int)).sum(axis=1) == left).all()


def test_of_equals_the_earlier_is_kept_and_nan_before_all() -> None:
    inf, nan = np.inf, np.nan
    array = np.array([[3, 3, -3, 3, 1, nan, inf, 2, inf, -inf, inf, nan]], np.float32)
    values, places = compress(array)
    assert places.tolist() == [[0, 1, 1, 2, 0, 3]]
    assert np.array_equal(values, [[3, 3, nan, inf, inf, nan]], equal_nan=True)


def test_a_mask_decides_and_what_it_leaves_out_is_zero() -> None:
    array = np.array([[9, 8, 7, 6, np.nan, 4, 3, 2]], np.float16)
    mask = np.array([[0, 0, 1, 1, 0, 1, 0, 0]], bool)
    values, places = compress(array, mask)
    assert places.tolist() == [[2, 3, 0, 1]]
    assert values.tolist() == [[7, 6, 0, 4]]
    assert (decompress(values, places) == np.where(mask, array, 0)).all()


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8]
)
def test_types_stay(dtype: Any) -> None:
    array = np.arange(-32, 32).reshape(2, 4, 8).astype(dtype)
    values, places = compress(array)
    assert (values.dtype, values.shape) == (np.dtype(dtype), (2, 4, 4))
    assert (places.dtype, places.shape) == (np.dtype(np.uint8), (2, 4, 4))
    assert decompress(values, places).dtype == np.dtype(dtype)


@pytest.mark.parametrize("name", SPARSE)
def test_the_workload_of_an_instruction_multiplies_what_is_decompressed(name: str) -> None:
    """TVM compiles it for this CPU."""
    tile = load_intrinsic(name)
    m, n, k = tile.M, tile.N, 2 * tile.K
    run = tvm.compile(tile.matmul(m, n, k, True), target="llvm")
    generator = np.random.default_rng(k)
    a, b = (generator.integers(-3, 4, (rows, k)).astype(np.float32) for rows in (m, n))
    made = compress(a)
    values = made.values.astype(numpy_type(tile.A_DTYPE))
    columns = b.astype(numpy_type(tile.B_DTYPE))
    arrays = [values, made.packed, columns, np.zeros((m, n), tile.OUT_DTYPE)]
    tensors = [tvm.runtime.tensor(x) for x in arrays]
    run(*tensors)
    assert (tensors[-1].numpy() == decompress(*made) @ b.T).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compress(np.zeros((2, 6))), r"multiple of 4, not \(2, 6\)"),
        (lambda: compress(np.zeros(4, complex)), "have a size, not of complex128"),
        (lambda: compress(np.array(["a"] * 4)), "have a size, not of <U1"),
        (lambda: compress(np.zeros(())), r"multiple of 4, not \(\)"),
        (
            lambda: compress(np.zeros((1, 4)), np.ones((1, 4), bool)),
            r"at most 2 of 4, but 4 of .*0",
        ),
        (
            lambda: compress(np.zeros((1, 4)), np.zeros((1, 8), bool)),
            r"mask: is of bool and \(1, 4\)",
        ),
        (lambda: compress(np.zeros((1, 4)), np.zeros((1, 4), int)), "mask: is of bool"),
        (lambda: compress(np.zeros((1, 4))).packed, "K is 4, but an index"),
        (lambda: decompress(np.zeros((1, 3)), np.zeros((1, 3), np.uint8)), "multiple of 2"),
        (
            lambda: decompress(np.zeros((1, 4)), np.zeros((1, 3), np.uint8)),
            r"has the shape \(1, 3\)",
        ),
        (lambda: decompress(np.zeros((1, 4)), np.zeros((1, 4), int)), "index: is of uint8"),
        (
            lambda: decompress(np.zeros(2), np.array([1, 4], np.uint8)),
            "from 0 to 3, but has .1, 4.",
        ),
        (lambda: decompress(np.zeros(2), np.array([1, 1], np.uint8)), "two values at one place"),
        (lambda: decompress(np.zeros(4), np.array([0x55], np.uint8)), "two values at one place"),
    ],
)
def test_what_is_no_such_matrix_is_refused(call: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        call()


HALVES: Any = [1.0, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: compress(HALVES),
        lambda: compress(np.zeros(4), HALVES),
        lambda: decompress(HALVES, np.zeros(2, np.uint8)),
        lambda: decompress(np.zeros(2), HALVES),
    ],
)
def test_what_is_no_array_is_refused(call: Any) -> None:
    with pytest.raises(ArgumentTypeError):
        call()
