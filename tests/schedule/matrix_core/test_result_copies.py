"""Parts of a product's result that are also copied to places in other arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule.product.result_copies import result_copies, with_copies
from tests.conftest import FEW_EXAMPLES

Array = npt.NDArray[Any]
ARCH = "gfx942"
K = 192
HEAD = 16
FULL = 7.0
"""What is in a cache before."""


def _product(rows: int, columns: int) -> PrimFunc:
    a = te.placeholder((rows, K), "float16", "A")
    b = te.placeholder((columns, K), "float16", "B")
    k = te.reduce_axis((0, K), "k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, k].astype("float32") * b[j, k].astype("float32"), axis=k)

    c = te.compute((rows, columns), element, "C")
    half = te.compute(c.shape, lambda i, j: c[i, j].astype("float16"), "half")
    return te.create_prim_func([a, b, half])


def _copying(source: str, body: str, heads: int, tokens: int = 9) -> PrimFunc:
    """A function that stores into keys and values [tokens, heads, HEAD]."""
    cache = f"T.Buffer(({tokens}, {heads}, {HEAD}), 'float16')"
    text = f"""
@T.prim_func(private=True, s_tir=True)
def main(own: T.Buffer({source}, "float16"), keys: {cache}, values: {cache}) -> None:
{body}
"""
    function: PrimFunc = tvm.script.from_source(text)
    return function


def _nest(target: str, place: str, of: str, extents: tuple[int, ...]) -> str:
    names = "i", "h", "d"
    loops = ", ".join(names)
    axes = ", ".join(f"v{name}" for name in names)
    return f"""
    for {loops} in T.grid{extents}:
        with T.sblock("{target}"):
            {axes} = T.axis.remap("SSS", [{loops}])
            {target}[{place}] = own[{of}]
"""


def _whole(rows: int, heads: int, before: int) -> PrimFunc:
    """Columns of as many heads before keys and values, which go behind the tokens `before`."""
    columns = (before + 2 * heads) * HEAD
    body = "".join(
        _nest(name, f"vi + {before}, vh, vd", f"vi, {first * HEAD} + vh * {HEAD} + vd",
              (rows, heads, HEAD))
        for name, first in (("keys", before), ("values", before + heads))
    )  # fmt: skip
    copying = _copying(f"({rows}, {columns})", body, heads, before + rows + 1)
    joined = with_copies(_product(rows, columns), copying, 0)
    assert joined is not None
    return joined


def _arrays(rows: int, columns: int, cache: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(rows * columns)
    a, b = (random.standard_normal((n, K)).astype(np.float16) for n in (rows, columns))
    full = [np.full(cache, FULL, np.float16) for _ in range(2)]
    return [a, b, *full, np.zeros((rows, columns), np.float16)]


@pytest.mark.thorough
@given(rows=st.integers(1, 20), heads=st.integers(1, 3), before=st.integers(0, 4))
@FEW_EXAMPLES
def test_each_element_goes_to_all_of_its_places(rows: int, heads: int, before: int) -> None:
    function = _whole(rows, heads, before)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, None, ARCH), ARCH)
    columns, tokens = (before + 2 * heads) * HEAD, before + rows + 1
    a, b, keys, values, c = _arrays(rows, columns, (tokens, heads, HEAD))
    assert mfmadsl.sanitize(kernel, [a, b, keys, values, c], keep_going=True).faults == ()
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, atol=0.05, rtol=0.01)
    for cache, first in ((keys, before), (values, before + heads)):
        of_c = c[:, first * HEAD : (first + heads) * HEAD].reshape(rows, heads, HEAD)
        np.testing.assert_array_equal(cache[before : before + rows], of_c)
        assert (cache[:before] == FULL).all()
        assert (cache[before + rows :] == FULL).all()


@pytest.mark.parametrize(
    "tiling", [{"split_k": 3, "k_step": 64, "block": (16, 16), "waves": (1, 1)}]
)
def test_with_k_in_parts_the_kernel_that_adds_them_up_copies(tiling: dict[str, Any]) -> None:
    function = _whole(2, 1, 1)
    cut = mfmadsl.Tiling(**tiling, instruction="mfma_f32_16x16x16_f16", k_pack=2)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(function, None, ARCH, cut), ARCH)
    assert kernel.next is not None
    arrays = _arrays(2, 3 * HEAD, (4, 1, HEAD))
    assert mfmadsl.sanitize(kernel, arrays, keep_going=True).faults == ()
    *_, keys, values, c = arrays
    np.testing.assert_array_equal(keys[1:3, 0], c[:, HEAD : 2 * HEAD])
    np.testing.assert_array_equal(values[1:3, 0], c[:, 2 * HEAD :])


def test_what_is_copied_may_lie_in_other_extents() -> None:
    """One token as rows of heads, as a reshape makes them."""
    body = _nest("keys", "vi + 3, vh, vd", "vi + vh + 1, vd", (1, 2, HEAD))
    body += _nest("values", "vi + 3, vh, vd", "vi + vh + 3, vd", (1, 2, HEAD))
    joined = with_copies(_product(1, 5 * HEAD), _copying(f"(5, {HEAD})", body, 2), 0)
    assert joined is not None
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(joined, None, ARCH), ARCH)
    arrays = _arrays(1, 5 * HEAD, (9, 2, HEAD))
    assert mfmadsl.sanitize(kernel, arrays, keep_going=True).faults == ()
    *_, keys, values, c = arrays
    np.testing.assert_array_equal(keys[3].ravel(), c[0, HEAD : 3 * HEAD])
    np.testing.assert_array_equal(values[3].ravel(), c[0, 3 * HEAD :])


def _changed(place: str, of: str) -> str:
    extents = 2, 1, HEAD
    return _nest("keys", "vi, vh, vd", "vi, vd", extents) + _nest("values", place, of, extents)


@pytest.mark.parametrize(
    "body",
    [
        _changed("vi, vh, vd", f"vi, {HEAD - 1} - vd"),  # backwards
        _changed("vi, vh, vd", "vi, vd // 2"),  # twice
        _changed("vi, vh, vd", "vi, vd + vi * 2"),  # a slope
        _changed("vi, vh, vd", "vi, vd") .replace("= own[", "= T.float16(2) * own["),
        _changed("vi, vh, vd", "vi, vd").replace("values[vi", "keys[vi + 3"),  # one target twice
        _changed("vi, vh, vd", "vi, vd").replace("values[vi, vh", "own[vi"),  # the result itself
        _changed("vi, vh, vd // 2", "vi, vd"),  # two elements at one place
        _changed("T.Cast('int32', keys[vi, vh, vd]), vh, vd", "vi, vd"),  # a place from a target
    ],
)  # fmt: skip
def test_others_are_no_copies(body: str) -> None:
    assert with_copies(_product(2, 2 * HEAD), _copying(f"(2, {2 * HEAD})", body, 1), 0) is None


def test_a_product_alone_has_none() -> None:
    assert result_copies(_product(2, 32)) is None
