"""Which of the waves that can run do so next."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mfmadsl.emulator.machine.wave import Waves

_MOST_GROUPS = 32  # that waves which stand at one place are split into: each costs as much as all
_LONGEST = 8  # bits of how many instructions a group executes in its turn


@dataclass(frozen=True)
class Turn:
    """A group runs until it is where another one stands, or has executed so many steps."""

    group: Waves
    meeting: int | None
    until: int | None = None


class WaveOrder(Protocol):
    """Takes, of the groups that can run, the one that does."""

    in_lockstep: bool
    """Whether all that can run do so before a barrier is passed and more workgroups start."""

    def takes(self, running: list[Waves]) -> Turn:
        """Take a group from the list."""

    def starts_more(self) -> bool:
        """Whether further workgroups start now, beside those that run."""


class Lockstep:
    """The group furthest behind runs until it meets another, so that waves stay together."""

    in_lockstep = True

    def takes(self, running: list[Waves]) -> Turn:
        """Take the group with the lowest program counter."""
        running.sort(key=lambda group: group.pc, reverse=True)
        group = running.pop()
        return Turn(group, running[-1].pc if running else None)

    def starts_more(self) -> bool:
        """Only when the others have ended, or wait."""
        return False


class Shuffled:
    """A random group, or a part of it, runs for a random time; the same ones for the same seed."""

    in_lockstep = False

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def takes(self, running: list[Waves]) -> Turn:
        """Take some waves that stand at one place."""
        group = running.pop(self._random.randrange(len(running)))
        if group.count > 1 and len(running) < _MOST_GROUPS and self._random.random() < 0.5:
            chosen = np.zeros(group.count, np.bool_)
            some = self._random.randrange(1, group.count)
            chosen[self._random.sample(range(group.count), some)] = True
            running.append(group.select(~chosen, group.pc))
            group = group.select(chosen, group.pc)
        steps = self._random.randint(1, 1 << self._random.randint(0, _LONGEST))
        return Turn(group, None, group.steps + steps)

    def starts_more(self) -> bool:
        """Now and then."""
        return self._random.random() < 1 / 64


def order_of(seed: int | None) -> WaveOrder:
    """The order of a seed, or without one the usual."""
    return Lockstep() if seed is None else Shuffled(seed)
