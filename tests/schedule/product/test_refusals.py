"""What is refused ahead of any primitive, since TVM would change what it computes."""

from __future__ import annotations

import pytest
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.dataflow import check_bound, check_consumers
from mfmadsl.schedule.product.nest import nests
from mfmadsl.schedule.product.normalise import normalise, product_block
from mfmadsl.schedule.product.prepare import prepared
from tests.schedule.parsed import PRODUCT, parsed


def normalised(function: PrimFunc) -> None:
    sch = Schedule(function)
    normalise(sch, product_block(sch, "C"))


def changed(*replacements: tuple[str, str], before: str = "", more: str = "") -> PrimFunc:
    """The plain product with parts of its text replaced, and blocks before it."""
    text = PRODUCT
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return parsed(before + text, more)


LOOPS = "for i, j, k in T.grid(8, 8, 8):"
AXES = 'vi, vj, vk = T.axis.remap("SSR", [i, j, k])'
FACTOR = """
F = T.sblock_alloc_buffer((8, 8), "float32")
for i, k in T.grid(8, 8):
    with T.sblock("F"):
        vi, vk = T.axis.remap("SS", [i, k])
        F[vi, vk] = A[vi, vk] + 1.0
"""
OF_FACTOR = ("A[vi, vk]", "F[vi, vk]")


def test_a_plain_product_and_a_computed_factor_are_none_of_it() -> None:
    normalised(changed())
    normalised(changed(OF_FACTOR, before=FACTOR))


PRODUCTS = {
    "writes a place several times": (
        [("C[vi, vj]", "C[vi // 2, vj]")], "may write one place of `C` several times"),
    "multiplies by its result": (
        [("* B[vj, vk]", "* C[vi, vk]")], "an element of its own result"),
    "multiplies in another type": (
        [("A[vi, vk] * B[vj, vk]", 'T.cast(T.cast(A[vi, vk], "float16") * '
          'T.cast(B[vj, vk], "float16"), "float32")')], "which is no product of two elements"),
    "writes where data says": (
        [("C[vi, vj]", "C[P[vi], vj]")], r"at `P\[vi\]`, which depends on data"),
    "sums over what one factor does not depend on": (
        [("* B[vj, vk]", "* B[vj, vi]")], "which not both factors depend on"),
    "writes each product of a sum": (
        [("C[vi, vj]", "C[vi, (vj + vk) % 8]")], "sums over `vk`, and writes a place for each"),
    "declares to read less": (
        [("with T.init()",
          "T.reads(A[vi, vk])\n        T.writes(C[vi, vj])\n        with T.init()")],
        "declares to read or write something else than it does"),
    "declares to write more": (
        [("with T.init()", "T.reads(A[vi, vk], B[vj, vk])\n        T.writes(C[0:8, vj])\n"
          "        with T.init()")], "declares to read or write something else than it does"),
    "runs where": (
        [("with T.init()", "T.where(i < j)\n        with T.init()")],
        "runs under the condition `i < j`, which schedules lose"),
    "has a buffer of its own": (
        [("with T.init()", 'X = T.sblock_alloc_buffer((1,), "float32")\n        with T.init()')],
        "has buffers of its own"),
    "starts its sum elsewhere": (
        [("            C[vi, vj] = T.float32(0)", "            C[vj, vi] = T.float32(0)")],
        "does not start its sum from zero"),
    "adds the sum to the product": (
        [("C[vi, vj] + A[vi, vk] * B[vj, vk]", "A[vi, vk] * B[vj, vk] + C[vi, vj]")],
        "adds the sum to the product: add the product to the sum, as `prepared` does"),
    "has one factor twice": (
        [("* B[vj, vk]", "* A[vj, vk]")], "reads both factors from `A`"),
    "goes through half of an axis": (
        [(LOOPS, "for i, j, k in T.grid(4, 8, 8):"), (AXES, "vi = T.axis.spatial(8, i)\n"
          "        vj = T.axis.spatial(8, j)\n        vk = T.axis.reduce(8, k)")],
        "binds its axis `vi` to `i`, which is not one whole loop"),
    "does everything twice": (
        [(LOOPS, "for i, j, k, again in T.grid(8, 8, 8, 2):")], "does not use its loop `again`"),
    "counts from one": (
        [(LOOPS, "for i, j in T.grid(8, 8):\n  for k in range(1, 9):")],
        "has loop `k`, which does not count from 0 by 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    replacements, reason = PRODUCTS[name]
    function = changed(*replacements, more='P: T.Buffer((8,), "int32")')
    with pytest.raises(ScheduleError, match=f"^block `C` .*{reason}"):
        normalised(function)


FACTORS = {
    "leaves gaps": ("F[vi, vk]", "F[7 - vi, vk]", "leaves gaps in it or turns it"),
    "reads itself": ("A[vi, vk] + 1.0", "F[vi, vk] + 1.0", "reads `F`, which it writes"),
    "goes where data says": ("F[vi, vk]", "F[P[vi], vk]", "writes `F` at a place that depends"),
    "writes a place twice": ("F[vi, vk]", "F[vi // 2, vk]", "may write one place of `F` several"),
    "runs where": (
        "F[vi, vk] = A[vi, vk]", "T.where(i < k)\n        F[vi, vk] = A[vi, vk]",
        "runs under the condition `i < k`"),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORS)
def test_factors(name: str) -> None:
    old, new, reason = FACTORS[name]
    function = changed(
        OF_FACTOR, before=FACTOR.replace(old, new), more='P: T.Buffer((8,), "int32")'
    )
    with pytest.raises(ScheduleError, match=f"^block `F` .*{reason}"):
        normalised(function)


def test_a_factor_of_a_factor_is_looked_at_too() -> None:
    inner = FACTOR.replace("F", "G").replace("G[vi, vk] = A", "G[7 - vi, vk] = A")
    outer = FACTOR.replace("A[vi, vk]", "G[vi, vk]")
    with pytest.raises(ScheduleError, match="block `G` computes a factor, but leaves gaps"):
        normalised(changed(OF_FACTOR, before=inner + outer))


def test_a_factor_that_is_a_result() -> None:
    kept = FACTOR.replace('F = T.sblock_alloc_buffer((8, 8), "float32")\n', "")
    function = changed(OF_FACTOR, before=kept, more='F: T.Buffer((8, 8), "float32")')
    with pytest.raises(ScheduleError, match="block `F` computes `F`, a factor, which is a result"):
        normalised(function)


OVERWRITES = """
for i, k in T.grid(8, 8):
    with T.sblock("again"):
        vi, vk = T.axis.remap("SS", [i, k])
        {}[vi, vk] = 2.0
"""


def test_a_buffer_is_written_once_and_then_read() -> None:
    for target, verb in (("F", "`F`, which block `F` writes"), ("A", "`A`, which block `F` reads")):
        again = OVERWRITES.format(target)
        function = changed(OF_FACTOR, before=FACTOR + again)
        with pytest.raises(ScheduleError, match=f"block `again` writes {verb} before"):
            normalised(function)


BATCHES = """
for s, t, i, j, k in T.grid(2, 2, 8, 8, 8):
    with T.sblock("C"):
        vs, vt, vi, vj, vk = T.axis.remap("SSSSR", [s, t, i, j, k])
        with T.init():
            C[vs, vt, vi, vj] = T.float32(0)
        C[vs, vt, vi, vj] = C[vs, vt, vi, vj] + L[BATCH, vi, vk] * R[BATCH, vj, vk]
"""


def batched(places: str) -> PrimFunc:
    """A product of batches along two axes, of which both factors have some."""
    shape = ", ".join(["2"] * (places.count(",") + 1) + ["8", "8"])
    factors = ", ".join(f'{name}: T.Buffer(({shape}), "float32")' for name in "LR")
    result = 'C: T.Buffer((2, 2, 8, 8), "float32")'
    return parsed(BATCHES.replace("BATCH", places), f"{factors}, {result}", "D")


def test_batches_that_share_a_factor_and_others_that_do_not() -> None:
    function = batched("vt")
    with pytest.raises(ScheduleError, match="has batches that share `L` and others that do not"):
        normalised(function)
    normalised(prepared(function))
    normalised(batched("vs, vt"))


RESULT = """
for i, j in T.grid(8, 8):
    with T.sblock("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = C[vi, vj] + 1.0
"""


def test_one_result_is_kept() -> None:
    """The result after a product, and the product itself where it is no argument."""
    matrix = 'D: T.Buffer((8, 8), "float32")'
    kept = parsed(PRODUCT + RESULT, matrix)
    inner = parsed('C = T.sblock_alloc_buffer((8, 8), "float32")\n' + PRODUCT + RESULT, matrix, "E")
    for function, results in ((kept, 2), (inner, 1)):
        product = next(nest for nest in nests(function) if nest.name == "C")
        buffer = product.store.buffer
        if results == 2:
            with pytest.raises(ScheduleError, match="`C` is a result besides `D`"):
                check_consumers(function, buffer)
        else:
            assert [nest.name for nest in check_consumers(function, buffer)] == ["D"]


def test_a_block_in_no_kernel() -> None:
    with pytest.raises(ScheduleError, match="block `C` is in no kernel"):
        check_bound(changed())


def test_blocks_that_prepare_adds_have_names_of_their_own() -> None:
    """Of A times A transposed in float16, beside blocks that are called as its copies would be."""
    taken = "".join(
        OVERWRITES.replace("again", name).format(buffer)
        for name, buffer in (("A_copy", "D"), ("A_copy_1", "E"))
    )
    matrices = ", ".join(f'{name}: T.Buffer((8, 8), "float32")' for name in "DE")
    function = changed(("* B[vj, vk]", "* A[vj, vk]"), before=taken, more=matrices)
    names = [nest.name for nest in nests(prepared(function))]
    assert sorted(names) == ["A_copy", "A_copy_1", "A_copy_2", "C"]


def test_an_axis_of_length_1_that_is_no_index_of_its_own() -> None:
    function = changed((LOOPS, "for i, j, k in T.grid(1, 8, 8):"), ("A[vi, vk]", "A[vi + vk, vk]"))
    with pytest.raises(ScheduleError, match="has an axis of length 1 that is no index of its own"):
        normalised(function)
    normalised(prepared(function))


def test_a_sum_of_one_that_a_factor_does_not_depend_on() -> None:
    """The factor is copied, so that its copy has the axis."""
    function = changed((LOOPS, "for i, j, k in T.grid(8, 8, 1):"), ("B[vj, vk]", "B[vj, 0]"))
    with pytest.raises(ScheduleError, match="sums one product only"):
        normalised(function)
    normalised(prepared(function))
