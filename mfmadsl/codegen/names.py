"""The names of a generated module: its TensorIntrins, and all that it exports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mfmadsl.codegen.filters import quoted
from mfmadsl.model import Operand

Pair = tuple[str, list[str]]
"""A constant, and the expressions for a TensorIntrin's name, what makes its pair, and of what."""

_SCOPES = {"GLOBAL": "global", "SHARED": "shared", "SHARED_DYN": "shared.dyn"}


@dataclass(frozen=True)
class LoadedOperand:
    """An operand that is loaded from memory, where it may lie transposed too."""

    operand: Operand
    transposed: bool

    @property
    def loads(self) -> list[str]:
        """The functions that make its pairs."""
        return self._both_ways(f"load_{self.operand.name}")

    @property
    def names(self) -> list[str]:
        """All that a module exports for it."""
        name = self.operand.name
        return [f"{name}_slot", *self._both_ways(f"index_map_{name.upper()}"), *self.loads]

    def _both_ways(self, name: str) -> list[str]:
        return [name, f"{name}_transposed"] if self.transposed else [name]


def tensor_intrins(module: str, loaded: Iterable[LoadedOperand]) -> list[Pair]:
    """Those of an instruction's module."""
    made: list[Pair] = [("FILL", ["fill"])]
    for operand in loaded:
        for function in operand.loads:
            made += _of_scopes(function, ("SHARED", "SHARED_DYN"))
    return named(module, [*made, ("COMPUTE", ["compute"]), *_of_scopes("store", _SCOPES)])


def named(module: str, made: Iterable[Pair]) -> list[Pair]:
    """What makes each pair, after the name of its TensorIntrin."""
    return [(constant, [quoted(f"{module}_{constant.lower()}"), *rest]) for constant, rest in made]


def _of_scopes(function: str, scopes: Iterable[str]) -> list[Pair]:
    return [(f"{function.upper()}_{x}", [function, quoted(_SCOPES[x])]) for x in scopes]


def exports(names: Iterable[str]) -> list[str]:
    """The names as strings in Python, in the order that linters want for `__all__`."""
    return [quoted(name) for name in sorted(names, key=_place)]


def _place(name: str) -> tuple[int, str]:
    """Constants, then what looks like a class, then the rest."""
    constant = name.isupper() and len(name) > 1
    return (0 if constant else 1 if name[0].isupper() else 2), name
