"""Arguments of a kernel as text: what they stand for, and what is too much."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mfmadsl.report import argument_text
from mfmadsl.report.argument_text import values_of
from mfmadsl.report.error import KernelFileError


def test_the_forms_of_arguments(tmp_path: Path) -> None:
    kept = np.arange(6, dtype=np.float64).reshape(2, 3)
    np.save(tmp_path / "kept.npy", kept)
    ones, number, nothing, stored = values_of(
        ["bfloat16[2,3]=1.5", "int32=-7", "null", f"{tmp_path}/kept.npy"]
    )
    assert (ones.dtype, ones.shape) == (ml_dtypes.bfloat16, (2, 3))
    assert (ones == 1.5).all()
    assert (type(number), number) == (np.int32, -7)
    assert nothing is None
    assert (stored == kept).all()


def test_values_of_elements_and_ranges() -> None:
    ends, square, some = values_of(
        ["int32[4]=3,9,9,12", "float16[2,2]=0,1,2,3", "int32[500]=-2..3"]
    )
    assert (ends.dtype, ends.tolist()) == (np.int32, [3, 9, 9, 12])
    assert square.tolist() == [[0, 1], [2, 3]]
    assert (some.dtype, set(some.tolist())) == (np.int32, {-2, -1, 0, 1, 2, 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int32[3]=1,2", "has 2 values for 3 elements"),
        ("int32[3]=1,,2", "`` is no int32"),
        ("int32[3]=5..2", "5 is beyond 2"),
        ("float32[3]=0..2", "`0..2` is no float32"),
        ("uint8[3]=0..256", "`256` is no uint8"),
    ],
)
def test_values_that_are_none_are_told(text: str, message: str) -> None:
    with pytest.raises(KernelFileError, match=re.escape(message)):
        values_of([text])


def test_random_integers_are_all_that_there_are() -> None:
    octets, again = values_of(["int8[100000]", "int8[100000]"])
    assert (octets.min(), octets.max()) == (-128, 127)
    assert (octets != again).any()
    assert (values_of(["int8[100000]"])[0] == octets).all()


@pytest.mark.parametrize(("count", "fits"), [(256, True), (257, False)])
def test_an_array_has_as_many_bytes_as_may_be(
    count: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argument_text, "_LARGEST_ARRAY", 1024)
    if fits:
        assert values_of([f"float32[{count}]=0"])[0].nbytes == 1024
    else:
        with pytest.raises(KernelFileError, match="has more than"):
            values_of([f"float32[{count}]=0"])


def test_a_file_that_ends_before_its_array(tmp_path: Path) -> None:
    """Also where it has as many bytes as the array has elements."""
    path = tmp_path / "cut.npy"
    np.save(path, np.zeros(1000))
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(KernelFileError, match=r"cut\.npy: is shorter than its header says"):
        values_of([str(path)])


@pytest.mark.parametrize("extents", ["1000000000000000000", "0,1000000000000000000"])
def test_an_extent_of_many_digits_is_too_much(extents: str) -> None:
    with pytest.raises(KernelFileError, match="has more than 1 GiB"):
        values_of([f"int8[{extents}]"])
