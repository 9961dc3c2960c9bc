from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir import Buffer, Expr, IRModule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import BufferRegion, IterVar, PrimFunc, Stmt

class SBlock(Stmt):
    iter_vars: Sequence[IterVar]
    reads: Sequence[BufferRegion]
    writes: Sequence[BufferRegion]
    name_hint: str
    body: Stmt
    init: Stmt | None
    alloc_buffers: Sequence[Buffer]
    match_buffers: Sequence[Any]
    annotations: Mapping[str, Any]
    def __init__(self, *arguments: Any, **named: Any) -> None: ...

class SBlockRealize(Stmt):
    iter_values: Sequence[Expr]
    predicate: Expr
    block: SBlock
    def __init__(
        self, iter_values: Sequence[Expr], predicate: Expr | bool, block: SBlock
    ) -> None: ...

class Schedule:
    mod: IRModule
    trace: Any
    def __init__(self, mod: Any, **named: Any) -> None: ...
    def get(self, rand_var_or_sref: SBlockRV | LoopRV) -> Any: ...
    def get_sblock(self, name: str, func_name: str = ...) -> SBlockRV: ...
    def get_loops(self, block: SBlockRV) -> list[LoopRV]: ...
    def split(self, loop: LoopRV, factors: Sequence[Any], **named: Any) -> list[LoopRV]: ...
    def fuse(self, *loops: LoopRV, **named: Any) -> LoopRV: ...
    def __getattr__(self, name: str) -> Any: ...

class TensorIntrin:
    desc: PrimFunc
    impl: PrimFunc
    @staticmethod
    def register(name: str, *functions: PrimFunc, override: bool = ...) -> TensorIntrin: ...
    @staticmethod
    def get(name: str, allow_missing: bool = ...) -> Any: ...  # None, if it may be missing

def __getattr__(name: str) -> Any: ...
