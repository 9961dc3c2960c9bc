"""What a call of `emulate`, `sanitize` or `profile` asks for, checked before anything runs."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from mfmadsl.argument import check_integer, check_list, check_type, described
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.model import ARCHITECTURES, Intrinsic

LOCKSTEP, RANDOM = ORDERS = ("lockstep", "random")
"""In which orders waves run."""

_MOST_SCRATCH = 1 << 18  # bytes of a lane: LLVM's largest frames have a few thousand


def check_arguments(args: object) -> None:
    """Raise ArgumentTypeError unless the kernel's arguments come one after another."""
    check_list("args", args, "a list of the kernel's arguments")


def check_budget(budget: object) -> None:
    """Raise ArgumentError unless a wave may execute an instruction or more."""
    if check_integer("budget", budget) < 1:
        raise ArgumentError(f"budget: is a positive number, not {described(budget)}")


def check_progress(progress: object) -> None:
    """Raise ArgumentTypeError unless it can be called, or is None."""
    if progress is not None and not callable(progress):
        raise ArgumentTypeError(f"progress: is a function or None, not {described(progress)}")


def checked_entries(trusted: Any) -> tuple[Intrinsic, ...]:
    """The entries of `.mfma` files, or ArgumentTypeError for anything else."""
    check_list("trusted", trusted, "a list of Intrinsics, as `load` gives it")
    for entry in trusted:
        check_type("trusted", entry, Intrinsic, "a list of Intrinsics, as `load` gives it")
    return tuple(trusted)


def checked_order(order: object, seed: object) -> int | None:
    """The seed of a random order of waves, or None for the usual one.

    Raises ArgumentError for any other order, and for a seed that is no number from 0 on.
    """
    spoken = f"one of {', '.join(ORDERS)}"
    check_type("order", order, str, spoken)
    if order not in ORDERS:
        raise ArgumentError(f"order: is {spoken}, not {described(order)}")
    number = check_integer("seed", seed)
    if number < 0:
        raise ArgumentError(f"seed: is a number from 0 on, not {described(seed)}")
    return number if order == RANDOM else None


def check_positions(name: str, positions: Any, count: int) -> None:
    """Raise ArgumentError unless these are positions of `count` arguments."""
    if not isinstance(positions, Set):
        check_list(name, positions, "a list of positions")
    for position in positions:
        if not 0 <= check_integer(name, position) < count:
            raise ArgumentError(f"{name}: there is no argument {described(position)} of {count}")


def check_capacity(program: Program) -> None:
    """Raise EmulationError for a text that asks for more than any of the chips has."""
    registers = max(chip.registers for chip in ARCHITECTURES.values())
    for directive, most in (
        ("next_free_vgpr", registers),
        ("accum_offset", registers),
        ("private_segment_fixed_size", _MOST_SCRATCH),
    ):
        if not 0 <= program.directive(directive) <= most:
            raise EmulationError(
                f"kernel `{program.name}`: {directive} is {program.directive(directive)}, which is "
                f"not between 0 and {most}"
            )
