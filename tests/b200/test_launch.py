"""Which arguments and launches are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from b200 import execute
from tests.b200.problems import PROBLEMS


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, b, c: [a, b], "3 arguments are needed, not 2"),
        (lambda a, b, c: [a, b, c.astype(np.float32)], r"of \(128, 128\), not float32"),
        (lambda a, b, c: [a, b, c[:64]], r"C is .*, not float16 of \(64, 128\)"),
        (lambda a, b, c: [a, b, c.T], "C is to be contiguous and writeable"),
        (lambda a, b, c: [a, b, frozen(c)], "C is to be contiguous and writeable"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        execute(PROBLEMS[1].kernel, change(*PROBLEMS[1].arrays()))


def test_a_cluster_needs_as_many_sms_as_it_has_ctas() -> None:
    with pytest.raises(ValueError, match="1 SMs have no room for a cluster of 2 CTAs"):
        execute(PROBLEMS[9].kernel, PROBLEMS[9].arrays(), sms=1)
