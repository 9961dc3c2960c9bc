from collections.abc import Sequence
from typing import Any

import tvm_ffi
from tvm.ir import Expr, Op

class Var(Expr):
    name_hint: str
    def __init__(self, name_hint: str, ty: Any) -> None: ...

class Call(Expr):
    op: Expr
    args: Sequence[Any]
    attrs: Any
    ty_args: Any
    def __init__(
        self, op: Op | Expr, args: Sequence[Expr], attrs: Any = ..., ty_args: Any = ...
    ) -> None: ...

class Function(tvm_ffi.Object):
    params: Any
    body: Any
    ret_ty: Any
    is_pure: bool
    attrs: Any
    def __init__(
        self, params: Any, body: Any, ret_ty: Any, is_pure: bool, attrs: Any = ...
    ) -> None: ...

class VirtualMachine:
    def __init__(self, rt_mod: Any, device: Any) -> None: ...
    def __getitem__(self, name: str) -> Any: ...

def __getattr__(name: str) -> Any: ...
