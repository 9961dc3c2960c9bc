"""A product with what follows it, where one is a function of TVM and the other made of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import te, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Buffer, PrimFunc, Stmt

from mfmadsl.schedule.product.added_nest import renamed
from mfmadsl.schedule.product.nest import nests

After = Callable[[te.Tensor], tuple[Sequence[te.Tensor], te.Tensor]]
"""Of a product, what else is read behind it, and the result."""

_PRODUCT = "product"


def followed(product: PrimFunc, after: After) -> PrimFunc:
    """The function of a product, whose last parameter is C, and of what is made of C.

    Its parameters are those of the product but C, what is read behind it, and the result.
    """
    *operands, c = product.params
    placeholder = te.placeholder(list(c.shape), name=_PRODUCT, dtype=str(c.dtype))
    others, result = after(placeholder)
    rest: PrimFunc = te.create_prim_func([placeholder, *others, result])
    total = tirx.decl_buffer(list(c.shape), str(c.dtype), _PRODUCT)
    *before, last = nests(product)
    body: list[Stmt] = [
        *(nest.statement for nest in before),
        renamed(last, _PRODUCT, {c: total}),
        *(renamed(nest, nest.name, {rest.params[0]: total}) for nest in nests(rest)),
    ]
    allocated = [total, *_allocated(product), *_allocated(rest)]
    root = SBlock([], [], [], "root", tirx.SeqStmt(body), None, allocated)
    return PrimFunc(
        [*operands, *rest.params[1:]], SBlockRealize([], True, root), product.ret_type,
        attrs=product.attrs,
    )  # fmt: skip


def _allocated(function: PrimFunc) -> list[Buffer]:
    assert isinstance(function.body, SBlockRealize)
    return list(function.body.block.alloc_buffers)
