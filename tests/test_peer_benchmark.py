"""What benchmarks/gemm compares with is what it says: IREE's modules are read as they are and
compute products, and Gluon's kernels get shapes that they take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.gemm import iree_kernels
from benchmarks.gemm.case import Case
from benchmarks.gemm.iree_and_gluon import PING_PONG, Row, gluon_table, iree_table, summary
from benchmarks.gemm.iree_module import Binding, Dispatch, Module, read_module
from benchmarks.measured.kernel import launch

TEXT = """module {
  util.func private @__product_memoize_apply() -> !hal.command_buffer attributes {a = never} {
    %c6 = arith.constant 6 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c24 = arith.constant 24 : index
    %c64 = arith.constant 64 : index
    %c32 = arith.constant 32 : index
    %cmd = hal.command_buffer.create device(%d : !hal.device) mode("None") bindings(%c4)
    %f = hal.executable.lookup.function target(%e : !hal.executable) function(@all::@hip::@pack) : i64
    hal.command_buffer.dispatch<%cmd : !hal.command_buffer> target(%e : !t)[%f] workgroups([%c6, %c1, %c1]) bindings([
      (%c1 : index)[%c0, %c24],
      (%c3 : index)[%c32, %c32]
    ]) flags("None")
    hal.command_buffer.execution_barrier<%cmd : !hal.command_buffer> source("Dispatch") flags("None")
    %g = hal.executable.lookup.function target(%e : !hal.executable) function(@all::@hip::@multiply$async) : i64
    hal.command_buffer.dispatch<%cmd : !hal.command_buffer> target(%e : !t)[%g] workgroups([%c2, %c3, %c1]) bindings([
      (%c0 : index)[%c0, %c32],
      (%c3 : index)[%c32, %c32],
      (%c2 : index)[%c0, %c64]
    ]) flags("None")
    hal.command_buffer.finalize<%cmd : !hal.command_buffer>
    util.return %cmd : !hal.command_buffer
  }
  util.func public @product(%arg0: !hal.buffer_view, %arg1: !hal.buffer_view) -> !hal.buffer_view {
    %c0 = arith.constant 0 : index
    %c24 = arith.constant 24 : index
    %c64 = arith.constant 64 : index
    %c32 = arith.constant 32 : index
    %buffer = hal.buffer_view.buffer<%arg0 : !hal.buffer_view> : !hal.buffer
    %buffer_0 = hal.buffer_view.buffer<%arg1 : !hal.buffer_view> : !hal.buffer
    hal.device.queue.execute.indirect<%d : !hal.device> wait(%w) commands(%cmd) bindings([
      (%buffer : !hal.buffer)[%c0, %c32],
      (%buffer_0 : !hal.buffer)[%c0, %c24],
      (%made : !hal.buffer)[%c0, %c64],
      (%room : !hal.buffer)[%c0, %c64]
    ]) flags("None")
    %view = hal.buffer_view.create buffer(%made : !hal.buffer)[%c0, %c64] shape([%c4, %c4])
    util.return %view : !hal.buffer_view
  }
}
"""  # noqa: E501
FILL = "  hal.command_buffer.fill_buffer<%cmd : !hal.command_buffer> target(%b)\n"


def test_a_module_is_read_as_it_is() -> None:
    packed = Binding(3, 32, 32)
    assert read_module(TEXT) == Module(
        sizes=(32, 24, 64, 64),
        arguments=(0, 1),
        result=2,
        dispatches=(
            Dispatch("all", "pack", (6, 1, 1), (Binding(1, 0, 24), packed)),
            Dispatch(
                "all", "multiply$async", (2, 3, 1), (Binding(0, 0, 32), packed, Binding(2, 0, 64))
            ),
        ),
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    hal.command_buffer.finalize",
            f"{FILL}    hal.command_buffer.finalize",
            "fill_buffer",
        ),
        ("%c1, %c1]) bindings", "%c1, %c1]) constants([%c7]) bindings", "more than buffers"),
        ("workgroups([%c2, %c3", "workgroups([%x, %c3", "%x is not a constant"),
        ("(%c3 : index)[%c32, %c32]\n", "(%c3 : index)[%c64, %c32]\n", "outside of the buffers"),
        ("!t)[%g]", "!t)[%h]", "%h, which is not looked up"),
        ("(%made : !hal.buffer)[%c0", "(%made : !hal.buffer)[%c24", "a buffer of the call"),
        ("create buffer(%made", "create buffer(%other", "is not given %other"),
        ("private @__product_memoize_apply", "public @also", "2 functions"),
        ("buffer_view.buffer<%arg1", "buffer_view.buffer<%arg2", "arguments that are not buffers"),
    ],
)
def test_host_code_that_is_not_understood_is_refused(old: str, new: str, said: str) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(ValueError, match=said):
        read_module(TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("arch", "setting", "launches"),
    [("gfx942", iree_kernels.PACKED, 3), ("gfx950", iree_kernels.DEFAULT, 1)],
)
def test_irees_kernels_multiply(arch: str, setting: str, launches: int, tmp_path: Path) -> None:
    """Packed operands take three launches and a workspace; extents are not those of tiles."""
    m, n, k = shape = 50, 72, 96
    product = iree_kernels.compiled(Case(arch, "f16", "bt"), shape, setting, tmp_path)
    assert product is not None
    assert len(product.module.dispatches) == launches
    a = (np.arange(m * k) % 61 - 30).reshape(m, k).astype("f2")
    b = (np.arange(n * k) % 53 - 26).reshape(n, k).astype("f2")
    assert np.array_equal(product.multiply(a, b), a.astype("f8") @ b.astype("f8").T)
    with pytest.raises(ValueError, match="9600 bytes for a buffer of 13824"):
        product.multiply(a, a)


def test_a_setting_that_iree_refuses_is_no_contender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, shape = Case("gfx942", "f16", "bt"), (16, 16, 16)
    wrong = dict.fromkeys(("O3", iree_kernels.DEFAULT), ("--iree-no-such-flag",))
    monkeypatch.setattr(iree_kernels, "FLAGS", wrong)
    assert iree_kernels.compiled(case, shape, "O3", tmp_path) is None
    with pytest.raises(RuntimeError, match="iree-no-such-flag"):
        iree_kernels.compiled(case, shape, iree_kernels.DEFAULT, tmp_path)


def test_a_machine_without_iree_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iree_kernels, "COMPILER", tmp_path / "none")
    with pytest.raises(SystemExit, match=r"pip install '\.\[bench\]'"):
        iree_kernels.compiled(Case("gfx942", "f16", "bt"), (16, 16, 16), "O3", tmp_path)


def test_k_in_parts_is_tried_of_few_rows() -> None:
    least, few, many = (set(iree_kernels.settings((m, 4096, 4096))) for m in (8, 64, 65))
    assert few - many == {"stages-4", "parts-4", "parts-8", "stages-3-parts-4"}
    assert {iree_kernels.DEFAULT, "ukernels", "stages-3"} <= many == least < few
    assert iree_kernels.PACKED not in few


def test_tables_tell_the_ratios() -> None:
    """The peer's fastest setting counts; a geometric mean of 4 and 0.25 is 1."""
    case = Case("gfx942", "f16", "bt")
    rows = [
        Row(case, (16, 32, 64), "tile", 2e-6, {"default": 9e-6, "O3": 8e-6}, 3e-6),
        Row(case, (1, 2, 3), "tile", 8e-6, {"default": 2e-6}),
    ]
    name = "| gfx942 f16, 16 x 32 x 64 | tile | 2.0"
    assert list(iree_table(rows))[2] == f"{name} | 9.0 | 4.50 | 8.0 | O3 | 4.00 | 3.0 |"
    behind = "gfx942 f16, 1 x 2 x 3"
    assert list(summary(rows))[2:] == [f"| gfx942 | 2 | 1.00 | 0.25 | {behind} |"]
    assert list(summary(rows, "default"))[2:] == [f"| gfx942 | 2 | 1.06 | 0.25 | {behind} |"]
    pair = Row(case, (256, 256, 64), "tile", 2e-6, {PING_PONG: 1.964e-6})
    assert list(gluon_table([pair]))[2].endswith("| tile | 2.0 | 2.0 | 0.98 |")
    assert list(summary([pair]))[2].endswith("| none |")  # behind by less than 2 %


def test_a_tile_of_gluons_divides_c(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"lds_bytes": 0, "waves": 8}')
    (tmp_path / "one.s").write_text("")
    a, b, c = (np.zeros(each, "f2") for each in ((256, 64), (320, 64), (256, 320)))
    with pytest.raises(ValueError, match="256 x 256 do not divide a C of 256 x 320"):
        launch(tmp_path, "one", a, b, c)
