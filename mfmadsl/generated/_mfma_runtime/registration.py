"""The TensorIntrins of a module: each is registered when its name is first taken.

Written by `mfmadsl compile` beside the modules that it generates.
"""

from collections.abc import Callable, Mapping
from functools import partial

from tvm.s_tir import TensorIntrin
from tvm.tirx import PrimFunc

Pair = tuple[PrimFunc, PrimFunc]
Named = tuple[str, Callable[[], Pair]]


def named(name: str, make: Callable[..., Pair], *arguments: str) -> Named:
    """The TensorIntrin of this name, whose pair is made when it is first taken."""
    return name, partial(make, *arguments)


def tensor_intrins(
    module: str, named: Mapping[str, Named]
) -> tuple[dict[str, str], Callable[[], list[str]], Callable[[str], str]]:
    """Names, `register` and `__getattr__` for a module's TensorIntrins, by constant."""
    taken: set[str] = set()

    def take(constant: str) -> str:
        """Register the TensorIntrin of a constant when it is first taken; its name."""
        if constant not in named:
            raise AttributeError(f"module {module!r} has no attribute {constant!r}")
        name, make = named[constant]
        if constant not in taken:
            register(name, make())
            taken.add(constant)
        return name

    def take_all() -> list[str]:
        """Register all TensorIntrins of the module; their names."""
        return [take(constant) for constant in named]

    return {constant: name for constant, (name, _) in named.items()}, take_all, take


def register(name: str, pair: Pair) -> str:
    """Register a pair as the TensorIntrin of this name; the name."""
    TensorIntrin.register(name, *pair, override=True)
    return name
