"""The host's part of a launch: what it computes of symbolic extents, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tvm_ffi
from tvm.tirx import LT, AssertStmt

from mfmadsl.backend.extent import Formula
from mfmadsl.backend.gpu.lower import device_module, in_order, parameter_names, split
from mfmadsl.backend.gpu.names import named_apart
from mfmadsl.model import architecture
from mfmadsl.passes.main_loop.moves.address import SPAN_LIMIT
from mfmadsl.passes.tir.expression import numbers
from mfmadsl.relax.host import HostLaunch, launching
from tests.relax.test_lowering import scores


@pytest.mark.parametrize(("length", "fits"), [((1 << 28) - 1, True), (1 << 28, False)])
def test_a_tile_that_spans_too_much_is_refused_at_the_launch(length: int, fits: bool) -> None:
    chip, function = architecture("gfx942"), named_apart(scores())
    parts = split(function, chip)
    ((name, before),) = parts.kernels
    after = in_order(before, parameter_names(function))
    _, launch = device_module(name, after, chip)
    spans = (("mole", Formula("mul", "s", 8)),)
    host = launching(parts.host, [HostLaunch(before, after, replace(launch, spans=spans))])
    found: list[AssertStmt] = []
    tvm_ffi.structural_walk(host.body, (AssertStmt, found.append))
    (check,) = (each for each in found if "a tile spans 2^31" in str(each.message_parts[0]))
    assert isinstance(check.condition, LT)
    assert int(numbers(check.condition.b, {})) == SPAN_LIMIT
    assert (int(numbers(check.condition.a, {"s": length})) < SPAN_LIMIT) is fits
