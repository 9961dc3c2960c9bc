"""What Triton itself says of an instruction's operands: its compiler, asked by its bindings.

That needs no GPU. The bindings are no public interface: those of Triton 3.8 are known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mfmadsl.export.error import ExportError
from mfmadsl.export.triton import SHAPES, k_width, layout_of_bases, transposed, version
from mfmadsl.model import Intrinsic, Layout

KNOWN = "3.8"


def ask(intrinsic: Intrinsic, arch: str | None = None) -> dict[str, Layout]:
    """The layouts of AMDMFMALayout, of its DotOperandLayouts, and of their scales, for one wave.

    How many k a lane holds in a row (`k_width`) is asked as the instruction has it; all else is
    Triton's. Raises ExportError for what Triton has no layout of, without Triton, and for a version
    with other bindings.
    """
    if intrinsic.sparse or intrinsic.blocks > 1 or (intrinsic.m, intrinsic.n) not in SHAPES:
        shapes = " and ".join(f"{m}x{n}" for m, n in SHAPES)
        raise ExportError(
            f"{intrinsic.name}: Triton has layouts of dense instructions of one block, "
            f"of {shapes} elements"
        )
    try:
        import triton
    except ImportError:
        raise ExportError(
            "Triton is not installed, and its own bindings are asked: "
            f"pip install 'triton=={KNOWN}.*'"
        ) from None
    try:
        return _asked(intrinsic, version(intrinsic, arch))
    except (ImportError, AttributeError, TypeError, AssertionError, RuntimeError) as error:
        told = f": {error}" if str(error) else ""
        raise ExportError(
            f"Triton {triton.__version__} does not answer as Triton {KNOWN} does "
            f"({type(error).__name__}{told})"
        ) from None


def _asked(intrinsic: Intrinsic, number: int) -> dict[str, Layout]:
    from triton._C.libtriton import amd, gluon_ir, ir
    from triton.experimental.gluon.language import DotOperandLayout
    from triton.experimental.gluon.language.amd import AMDMFMALayout

    context = ir.context()
    ir.load_dialects(context)
    amd.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    m, n, k = intrinsic.m, intrinsic.n, intrinsic.k
    parent = AMDMFMALayout(
        version=number,
        instr_shape=[m, n, k],
        transposed=False,
        warps_per_cta=[1, 1],
        element_bitwidth=64 if intrinsic.c.type.bits == 64 else 32,
    )
    a, b = (
        DotOperandLayout(operand_index=index, parent=parent, k_width=k_width(operand))
        for index, operand in enumerate((intrinsic.a, intrinsic.b))
    )
    shapes: Mapping[str, tuple[Any, tuple[int, int]]] = {
        "a": (a, (m, k)),
        "b": (b, (k, n)),
        "c": (parent, (m, n)),
    }
    found = {
        name: _layout(builder.to_linear_layout(layout._to_ir(builder), list(shape)), shape)
        for name, (layout, shape) in shapes.items()
    }
    for index, scale in enumerate(intrinsic.scales):
        groups = scale.layout.rows if index else scale.layout.columns
        shape = (n if index else m, groups)
        asked = gluon_ir.get_amd_mfma_scale_layout(index, list(shape), m, [1, 1], [1, 1])
        layout = _layout(asked, shape)
        found[scale.name] = transposed(layout) if index else layout
    return found


def _layout(linear: Any, shape: tuple[int, int]) -> Layout:
    """A DistributedLinearLayout of Triton's as a layout."""
    if any(linear.warp_bases) or any(linear.block_bases):
        raise ExportError("Triton's layout is one of several waves")
    return layout_of_bases(linear.reg_bases, linear.lane_bases, shape)
