# What the project uses of TVM, whose packages have no types. A name that is not here is Any.
from typing import Any

from tvm import ir as ir
from tvm import s_tir as s_tir
from tvm import sym as sym
from tvm import te as te
from tvm import tirx as tirx
from tvm.ir import IRModule as IRModule

class DataType:
    bits: int
    lanes: int
    def __init__(self, name: object) -> None: ...

def __getattr__(name: str) -> Any: ...
