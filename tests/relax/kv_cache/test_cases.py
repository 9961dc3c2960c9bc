"""Which kernel of a function of the cache a launch takes."""

from __future__ import annotations

import pytest
import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import AttrStmt

import mfmadsl
from mfmadsl.passes.kernel.cases import marked_cases
from mfmadsl.passes.tir.expression import constant, substitute, variables_of
from mfmadsl.relax.kv_cache.form import CacheKind
from mfmadsl.relax.kv_cache.kernels import cache_kernels
from mfmadsl.relax.kv_cache.recognise import recognised
from tests.relax.kv_cache.functions import DEPTH, PAGE, SHARED, Form

TARGET = mfmadsl.target("gfx942")
PAGE_BYTES = 2 * SHARED * PAGE * DEPTH * 2
PLAIN = {"B": 1, "rotary_mode": 0, "pages_elem_offset": 0, "max_num_pages": 10}
MOST = (1 << 31) // PAGE_BYTES
"""So many pages have 2 GiB."""


@pytest.mark.parametrize(
    ("changed", "case"),
    [
        ({}, 0), ({"B": 0}, 0), ({"B": 4}, 0), ({"B": 5}, 1), ({"B": 17}, 2), ({"B": 1000}, 3),
        ({"rotary_mode": 1}, 4), ({"rotary_mode": 1, "B": 1000}, 4), ({"rotary_mode": 2}, 0),
        ({"pages_elem_offset": 4}, 4), ({"pages_elem_offset": 8}, 0),
        ({"max_num_pages": MOST - 1}, 0), ({"max_num_pages": MOST, "B": 17}, 4),
    ],
)  # fmt: skip
def test_a_launch_takes_one_kernel(changed: dict[str, int], case: int) -> None:
    found = recognised(Form(CacheKind.DECODE).function(TARGET), TARGET)
    assert found is not None
    made = cache_kernels(found, "gfx942")
    conditions: list[AttrStmt] = []
    function = marked_cases(made.function)
    tvm_ffi.structural_walk(function.body, (AttrStmt, conditions.append))
    values, taken = PLAIN | changed, []
    for each in conditions:
        if each.attr_key == "mfmadsl.case_condition":
            own = variables_of(each.value)
            known = {v: tirx.const(values[v.name], str(v.ty.dtype)) for v in own}
            taken.append(constant(Analyzer().simplify(substitute(each.value, known))))
    assert taken == [int(n == case) for n in range(len(made.cases) + 1)]
