"""What a call of `emulate`, `sanitize` or `profile` asks for, checked before anything runs."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from mfmadsl.argument import check_integer, check_list, check_type, described
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.chip import not_of_chip
from mfmadsl.emulator.machine.control import NO_EFFECT
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.emulator.text.operand import LAST_SCALAR
from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.model import Architecture, Intrinsic, assumed

_MOST_PLAIN_REGISTERS = 256  # those that an instruction can name
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
    """Raise EmulationError for a text that asks for what its chip does not have."""
    chip = assumed(program.arch)
    registers = chip.simd_registers if chip.separate_files else chip.registers
    for directive, most in (
        ("next_free_vgpr", registers),
        ("next_free_sgpr", LAST_SCALAR + 1),
        ("private_segment_fixed_size", _MOST_SCRATCH),
    ):
        if not 0 <= program.directive(directive) <= most:
            raise _refused(program, directive, f"not between 0 and {most}")
    if "accum_offset" in program.directives and not chip.separate_files:
        _check_accumulation(program, chip)
    _check_passing(program, chip)


def _check_passing(program: Program, chip: Architecture) -> None:
    """Raise EmulationError for an instruction that only passes, and that the chip does not have."""
    for each in program.instructions:
        if each.name in NO_EFFECT and (reason := not_of_chip(each, chip)):
            raise EmulationError(f"unknown instruction{reason}", each.line, each.text)


def _check_accumulation(program: Program, chip: Architecture) -> None:
    """Raise EmulationError for accumulation registers that begin where they cannot (LLVM, User
    Guide for AMDGPU Backend: `.amdhsa_accum_offset`)."""
    start, granule = program.directive("accum_offset"), chip.accumulation_granule
    if not granule <= start <= _MOST_PLAIN_REGISTERS or start % granule:
        told = f"no multiple of {granule} from {granule} to {_MOST_PLAIN_REGISTERS}"
        raise _refused(program, "accum_offset", told)
    asked = max(program.directive("next_free_vgpr"), 1)
    if start > -(-asked // granule) * granule:
        raise _refused(program, "accum_offset", f"behind the {asked} registers that it asks for")


def _refused(program: Program, directive: str, why: str) -> EmulationError:
    number = program.directive(directive)
    return EmulationError(f"kernel `{program.name}`: {directive} is {number}, which is {why}")
