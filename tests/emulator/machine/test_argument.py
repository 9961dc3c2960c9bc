"""What is passed to a kernel is what it takes, or is refused with what to do."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl import Gemm, Kernel, find
from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.machine.argument import check_described, check_passed
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.emulator.text.metadata import KernelArgument
from tests.emulator.waves import kernel

# Each lane copies its word of the first array into the second.
COPYING = kernel(
    """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	s_waitcnt vmcnt(0)
	global_store_dword v1, v2, s[6:7]""",
    arguments=2,
)
POINTER = KernelArgument("p", 0, 8, "global_buffer")
LAUNCH = ((1,), (64,))
WORDS = np.arange(64, dtype=np.uint32)


def words() -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.zeros(64, np.uint32)


def test_an_axis_of_one_element_overlaps_nothing() -> None:
    """NumPy gives it any stride."""
    result = words()
    seen = np.lib.stride_tricks.as_strided(result, (64, 1), (4, 0))
    emulate(COPYING, [WORDS, seen], *LAUNCH)
    assert (result == WORDS).all()


@pytest.fixture(scope="module")
def half() -> tuple[Kernel, list[Any]]:
    gemm = Gemm(find("mfma_f32_16x16x16_f16"), "gfx942", 16, 32, 48)
    return gemm.build(), list(gemm.operands())


@pytest.mark.parametrize("run", [emulate, sanitize, profile])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.astype(np.float32), "argument A is an array of float16, not of float32: con"),
        (lambda a: a.view(np.uint16), "argument A is an array of float16, not of uint16"),
        (lambda a: a.astype(ml_dtypes.bfloat16), "argument A is an array of float16, not of bflo"),
        (lambda a: a.T, r"argument A has the shape \(16, 48\), not \(48, 16\)"),
        (lambda a: a.reshape(-1), r"argument A has the shape \(16, 48\), not \(768,\)"),
        (lambda a: a.astype(">f2"), r"argument A is big-endian \(>f2\).*astype\('float16'\)"),
        (lambda a: a.astype(object), "argument A has elements of object, which no kernel knows"),
        (lambda a: np.ma.masked_less(a, 0), "a plain NumPy array, not a MaskedArray: pass numpy"),
        (lambda a: a.tolist(), "argument A is a NumPy array, not list"),
        (lambda a: a[0, 0], "argument A is a NumPy array, not float16"),
        (lambda a: None, "argument A is a NumPy array, not NoneType"),
    ],
)
def test_a_built_kernel_knows_its_types_and_shapes(
    half: tuple[Kernel, list[Any]], change: Any, message: str, run: Any
) -> None:
    built, (a, b, c) = half
    with pytest.raises((TypeError, ValueError), match=message):
        run(built, [change(a), b, c])


@given(
    st.sampled_from([np.uint32, np.float16, np.int64, np.float64, np.uint8]),
    st.sampled_from(["plain", "reversed", "every other", "transposed", "column"]),
)
def test_views_are_read_and_written_as_numpy_sees_them(dtype: Any, form: str) -> None:
    size = 256 // np.dtype(dtype).itemsize

    def view() -> Any:
        if form == "plain":
            return np.zeros(size, dtype)
        if form == "reversed":
            return np.zeros(size, dtype)[::-1]
        if form == "every other":
            return np.zeros(2 * size, dtype)[::2]
        if form == "transposed":
            return np.zeros((8, size // 8), dtype).T
        return np.zeros((size, 3), dtype)[:, 1]

    source, target = view(), view()
    source[...] = np.arange(size).reshape(source.shape) % 100
    emulate(COPYING, [source, target], *LAUNCH)
    assert (source == target).all()
    assert target.base is None or np.count_nonzero(target.base) == np.count_nonzero(target)


def test_an_array_of_no_dimensions_is_one_element() -> None:
    with pytest.raises(EmulationError, match="offset 4 of `p0`, which has 4 bytes"):
        emulate(COPYING, [np.array(7, np.uint32), words()], *LAUNCH)


@pytest.mark.parametrize("run", [emulate, sanitize])
def test_an_array_that_the_kernel_writes_is_writable(run: Any) -> None:
    source, target = WORDS.copy(), words()
    source.setflags(write=False)
    run(COPYING, [source, target], *LAUNCH)
    assert (target == WORDS).all()
    with pytest.raises(EmulationError, match="writes to argument p1, whose array is read-only"):
        run(COPYING, [WORDS, source], *LAUNCH)


def test_where_the_metadata_tells_of_writes_nothing_runs_before() -> None:
    text = COPYING.replace(".name: p1,", ".name: p1, .actual_access: write_only,")
    target = words()
    target.setflags(write=False)
    with pytest.raises(ValueError, match="argument p1 is read-only, but the kernel writes to it"):
        emulate(text, [WORDS, target], *LAUNCH)
    assert profile(text, [WORDS, target], *LAUNCH).waves == 1  # on a copy


def test_atomics_write_too() -> None:
    text = COPYING.replace("global_store_dword", "global_atomic_add")
    emulate(text, [WORDS, words()], *LAUNCH)
    target = words()
    target.setflags(write=False)
    with pytest.raises(EmulationError, match=r"global_atomic_add.*argument p1.*read-only"):
        emulate(text, [WORDS, target], *LAUNCH)


def test_what_is_written_shares_memory_with_nothing_else() -> None:
    shared = np.zeros(100, np.uint32)
    with pytest.raises(EmulationError, match="p1, whose array shares memory with argument p0"):
        emulate(COPYING, [shared[:64], shared[36:]], *LAUNCH)
    with pytest.raises(EmulationError, match="p1, whose array is passed as argument p0 too"):
        emulate(COPYING, [shared, shared], *LAUNCH)
    backwards = COPYING.replace("v1, s[4:5]", "v1, s[6:7]").replace("v2, s[6:7]", "v2, s[4:5]")
    with pytest.raises(EmulationError, match="p0, whose array is passed as argument p1 too"):
        emulate(backwards, [shared, shared], *LAUNCH)
    once = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint32), (64,), (0,))
    with pytest.raises(EmulationError, match="p1, whose array has several elements at one address"):
        emulate(COPYING, [WORDS, once], *LAUNCH)


def test_what_is_only_read_may_be_shared() -> None:
    target = words()
    emulate(COPYING, [np.broadcast_to(np.uint32(5), (64,)), target], *LAUNCH)
    assert (target == 5).all()
    columns = np.zeros((64, 2), np.uint32)
    columns[:, 0] = WORDS
    emulate(COPYING, [columns[:, 0], columns[:, 1]], *LAUNCH)  # side by side, not shared
    assert (columns[:, 1] == WORDS).all()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(4, ">u4"), "argument p is big-endian"),
        (np.zeros(4, object), "argument p has elements of object"),
        (np.zeros(4, "U3"), "argument p has elements of <U3"),
        (np.zeros(4, "datetime64[s]"), "argument p has elements of datetime64"),
        (np.zeros(4, [("x", ">f4")]), "argument p is big-endian"),
        (np.zeros(4).view(np.recarray), "not a recarray"),
        ([1, 2], "argument p is a NumPy array, not list"),
    ],
)
def test_what_has_not_the_bytes_of_numbers(value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        check_passed(value, POINTER, "p")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "passed by value, 4 bytes: give a NumPy scalar such as numpy.int32"),
        (None, "not NoneType"),
        (np.int64(3), "argument n has 4 bytes, but int64 has 8"),
        (np.array(3, ">i4"), "argument n is big-endian"),
        (np.float32(3), "argument n is of type i32 in the metadata, not float32"),
    ],
)
def test_numbers_are_numpys(value: Any, message: str) -> None:
    number = KernelArgument("n", 0, 4, "by_value", value_type="i32")
    with pytest.raises((TypeError, ValueError), match=message):
        check_passed(value, number, "n")
    check_passed(np.int32(3), number, "n")
    check_passed(np.array(3, np.uint32), number, "n")


@pytest.mark.parametrize(
    ("stated", "size", "right"),
    [
        ({"value_type": "i32"}, 8, np.float64),
        ({"value_type": "i32"}, 8, np.int64),
        ({"value_type": "F32"}, 2, np.int16),
        ({"type_name": "int"}, 8, np.uint64),
    ],
)
def test_a_value_whose_stated_type_has_another_size_is_of_its_size(
    stated: dict[str, str], size: int, right: Any
) -> None:
    """As hand-written metadata has it: arguments of eight bytes, padding included."""
    argument = KernelArgument("n", 0, size, "by_value", **stated)  # type: ignore[arg-type]
    check_passed(right(3), argument, "n")
    with pytest.raises(ValueError, match=f"argument n has {size} bytes, but int32 has 4"):
        check_passed(np.int32(3), argument, "n")


@pytest.mark.parametrize(
    ("stated", "right", "wrong"),
    [
        ({"value_type": "F16"}, np.float16, np.float32),
        ({"value_type": "struct"}, np.float16, None),
        ({"type_name": "half*"}, np.float16, np.int16),
        ({"type_name": "float4*"}, np.float32, np.float64),
        ({"type_name": "char*"}, np.float64, None),
        ({"type_name": "long"}, np.int64, np.float64),
    ],
)
def test_types_of_the_metadata(stated: dict[str, str], right: Any, wrong: Any) -> None:
    argument = KernelArgument("p", 0, 8, "global_buffer", **stated)  # type: ignore[arg-type]
    check_passed(np.zeros(4, right), argument, "p")
    if wrong is not None:
        with pytest.raises(ValueError, match=r"argument p is of type .* in the metadata, not"):
            check_passed(np.zeros(4, wrong), argument, "p")


def test_types_that_numpy_lacks() -> None:
    check_described(np.zeros((2, 3), ml_dtypes.bfloat16), "A", "bfloat16", (2, 3))
    with pytest.raises(ValueError, match="A is an array of float8_e4m3fnuz, not of float8_e4m3fn"):
        check_described(np.zeros(3, ml_dtypes.float8_e4m3fn), "A", "float8_e4m3fnuz", (3,))


def test_more_than_the_machine_holds_is_told_as_such() -> None:
    huge = np.broadcast_to(np.uint32(1), (1 << 40,))
    with pytest.raises(ValueError, match=r"the arguments take 4.1e\+03 GiB, more than the .* GiB"):
        emulate(COPYING, [huge, words()], *LAUNCH)


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        ((1 << 25,), (64,), "grid: the emulator runs up to 16777216 workgroups, not 33554432"),
        ((1 << 26,), (64,), "grid: 67108864 workgroups of 64 threads along x are more than the ha"),
        ((1, 1 << 40), (64,), "grid: is a number from 1 to"),
        ((1,), (2048,), r"takes up to 1024 threads, not the 2048 of \(2048, 1, 1\)"),
        ((1,), (32, 33), "takes up to 1024 threads, not the 1056 of"),
    ],
)
def test_extents_that_no_launch_has(grid: Any, block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        emulate(COPYING, [WORDS, words()], grid, block)


@pytest.mark.parametrize("lds_bytes", [-1, 65537, 10**12])
def test_lds_is_what_the_chip_has(lds_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"up to 65536 bytes of LDS, not {lds_bytes}"):
        emulate(COPYING, [WORDS, words()], *LAUNCH, lds_bytes=lds_bytes)
    larger = COPYING.replace("gfx942", "gfx950")
    emulate(larger, [WORDS, words()], *LAUNCH, lds_bytes=163840)


def test_the_block_is_the_one_that_the_kernel_is_made_for() -> None:
    required = COPYING.replace("- .name: kernel", "- .name: kernel\n    .reqd_workgroup_size: [64]")
    with pytest.raises(ValueError, match=r"block: `kernel` requires \(64,\), not \(32, 1, 1\)"):
        emulate(required, [WORDS, words()], (1,), (32,))
    with pytest.raises(ValueError, match=r"requires \(64,\), not \(64, 2, 1\)"):
        emulate(required, [WORDS, words()], (1,), (64, 2))
    most = COPYING.replace("- .name: kernel", "- .name: kernel\n    .max_flat_workgroup_size: 128")
    with pytest.raises(ValueError, match="takes up to 128 threads, not the 256 of"):
        emulate(most, [WORDS, words()], (1,), (256,))


def test_a_built_kernel_has_one_block(half: tuple[Kernel, list[Any]]) -> None:
    built, args = half
    with pytest.raises(ValueError, match=r"block: `gemm_\w+_kernel` is built for .*, not"):
        emulate(built, args, block=(32,))
