"""No load of a kernel is inside of an argument by one rule for buffers and outside by the other.

Sizes whose last rows end within a load, or whose last iteration does: the sanitizer tells a load on
which the ISA manuals and LLVM disagree (docs/emulator.md).
"""

from __future__ import annotations

import numpy as np
import pytest

import mfmadsl
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.model.numpy_type import numpy_type

SUMS = {"int8": "int32", "float64": "float64"}
SIZES = [
    ("gfx942", "float16", True, (1, 256, 516)),
    ("gfx942", "int8", True, (1, 256, 1032)),
    ("gfx942", "float8_e4m3fnuz", True, (16, 65, 1032)),
    ("gfx942", "float16", False, (16, 65, 1032)),
    ("gfx950", "float8_e4m3fn", True, (1, 512, 520)),
    ("gfx950", "float16", True, (257, 255, 130)),
    ("gfx950", "bfloat16", False, (40, 33, 64)),
    ("gfx942", "float16", False, (40, 33, 128)),
    ("gfx942", "float16", False, (33, 3, 65)),
    ("gfx90a", "int8", False, (33, 5, 65)),
    ("gfx90a", "float64", True, (17, 35, 33)),
    ("gfx908", "float16", True, (33, 31, 65)),
    # Columns so few that an iteration before the last one reads past the end.
    ("gfx950", "float16", False, (16, 3, 513)),
    ("gfx942", "float16", True, (16, 3, 1025)),
]


@pytest.mark.parametrize(("arch", "dtype", "b_transposed", "size"), SIZES)
def test_no_load_depends_on_the_rule(
    arch: str, dtype: str, b_transposed: bool, size: tuple[int, int, int]
) -> None:
    m, n, k = size
    sums = SUMS.get(dtype, "float32")
    workload = mfmadsl.matmul(m, n, k, dtype, sums, b_transposed=b_transposed)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    generator = np.random.default_rng(m + n + k)

    def small(rows: int, columns: int) -> np.ndarray:
        return generator.integers(-3, 4, (rows, columns)).astype(numpy_type(dtype))

    a, b = small(m, k), small(n, k) if b_transposed else small(k, n)
    c = np.zeros((m, n), sums)
    assert sanitize(kernel, [a, b, c]).faults == ()
    right = b.T if b_transposed else b
    assert (c == a.astype(np.float64) @ right.astype(np.float64)).all()
