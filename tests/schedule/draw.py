"""A seeded generator of choices, arguments and extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import te

EXTENTS = (1, 2, 5, 17, 31, 32, 33, 40, 64, 65)
SEVERAL_STEPS = {"k": (1, 5, 31, 40, 62, 64, 65, 96, 126, 128, 160, 200, 254), "z": (1, 2, 3)}
"""Lengths of sums with several steps of a small tile, and few batches, by their names."""


@dataclass
class Draw:
    """A seeded generator, and what it has drawn so far."""

    seed: int
    types: tuple[str, ...]
    extents: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    generator: np.random.Generator = field(init=False)
    arguments: list[Any] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def one_of(self, *choices: Any) -> Any:
        choice = choices[int(self.generator.integers(len(choices)))]
        if isinstance(choice, str):
            self.said.append(choice)
        return choice

    def chance(self, probability: float) -> bool:
        return bool(self.generator.random() < probability)

    def extent(self, name: str) -> Any:
        number = int(self.one_of(*self.extents.get(name, EXTENTS)))
        self.said.append(f"{name}={number}")
        if self.chance(0.15):
            self.symbols[name] = number
            return te.var(name)
        return number

    def argument(self, name: str, shape: tuple[Any, ...], dtype: str) -> Any:
        """One more argument."""
        placeholder = te.placeholder(shape, name=name, dtype=dtype)
        self.arguments.append(placeholder)
        return placeholder
