"""What is described as the text of a Python module that registers its TensorIntrins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mfmadsl.argument import check_integer
from mfmadsl.codegen.accelerator import accelerator_text
from mfmadsl.codegen.intrinsic import intrinsic_text
from mfmadsl.codegen.microkernel import microkernel_text
from mfmadsl.error import ArgumentError
from mfmadsl.model import Accelerator, Intrinsic, Microkernel, packed

Described = Intrinsic | Accelerator | Microkernel

_SINGLE: dict[type[Described], tuple[str, Callable[[Any], str]]] = {
    Accelerator: ("an accelerator", accelerator_text),
    Microkernel: ("a micro-kernel", microkernel_text),
}
"""Kinds of which `k_pack` make no tile: what one is called, and the text of its module."""


def module_text(described: Described, k_pack: int = 1) -> str:
    """The source of the module: the same for the same description, wherever it is made.

    With `k_pack`, it is that of the tile of so many instructions (`model.packed`). Raises
    ModuleError for an intrinsic that the templates do not cover, and ArgumentError for one of
    which `k_pack` make no tile.
    """
    if isinstance(described, Intrinsic):
        return intrinsic_text(described, k_pack)
    called, text = _SINGLE[type(described)]
    _check_single(described, k_pack, called)
    return text(described)


def module_name(described: Described, k_pack: int = 1) -> str:
    """That of the module of `module_text`; raises ArgumentError where `k_pack` make no tile."""
    if isinstance(described, Intrinsic):
        return packed(described, k_pack).name
    _check_single(described, k_pack, _SINGLE[type(described)][0])
    return described.name


def _check_single(described: Accelerator | Microkernel, k_pack: int, called: str) -> None:
    if check_integer("k_pack", k_pack) != 1:
        raise ArgumentError(f"k_pack: {described.name} is {called}, of which only k_pack=1 can be")
