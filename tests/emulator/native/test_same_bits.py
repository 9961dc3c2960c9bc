"""Every instruction that has native code gives the interpreter's bits."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest

from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.elementwise import FUNCTIONS
from mfmadsl.emulator.native.library import library
from mfmadsl.emulator.native.name import name_of
from tests.cases import drawn
from tests.emulator.native.both import (
    MACHINES,
    copied,
    differences,
    interpret,
    known,
    random_waves,
    run_natively,
)
from tests.emulator.native.texts import (
    ROWS,
    compare_texts,
    lane_texts,
    packed_texts,
    row_texts,
    scalar_texts,
)

_GROUPS = 8
_LANES = ("all", "random", "few", "random", "all")


def compare(texts: Iterable[str], machine: Machine) -> int:
    """Execute each of the instructions alone, in waves of all kinds; gives how many there were."""
    found = {text: each for text in texts if (each := known(text, machine)) is not None}
    # All at once, for LLVM has to be set up for each time.
    library().addresses({name_of(each.step.form): each.step.form for each in found.values()})
    told = []
    for seed, (text, each) in enumerate(found.items()):
        lanes = _LANES[seed % len(_LANES)]
        one, other = (copied(random_waves(seed % 4, machine.mode, lanes)) for _ in range(2))
        interpret(one, [each.instruction], machine)
        assert run_natively(other, [each.step]) == 1, text
        told += [f"{text}, {lanes}: {difference}" for difference in differences(one, other)]
    assert not told, f"{len(told)}:\n" + "\n".join(told[:60])
    return len(found)


@pytest.mark.parametrize(("group", "machine"), drawn(product(range(_GROUPS), MACHINES[:2]), 4))
def test_rows(group: int, machine: Machine) -> None:
    names = [
        name for name in ROWS if machine is MACHINES[0] or vector_rows("gfx942")[name].on_floats
    ]
    assert compare([t for name in names[group::_GROUPS] for t in row_texts(name)], machine)


@pytest.mark.parametrize("machine", MACHINES[2:], ids=("gfx90a", "gfx950"))
def test_rows_of_another_chip(machine: Machine) -> None:
    names = [n for n in ROWS if not any(known(t, MACHINES[0]) for t in row_texts(n))]
    assert compare([t for name in names for t in row_texts(name)], machine)


def test_every_row_has_a_test() -> None:
    missing = [
        name
        for name in FUNCTIONS
        if not any(known(text, machine) for machine in MACHINES for text in row_texts(name))
    ]
    assert set(missing) == {"v_minimum3_f16", "v_maximum3_f16"}  # there are only packed ones


@pytest.mark.parametrize(
    ("texts", "machine"), drawn(product((compare_texts, packed_texts, lane_texts), MACHINES[:2]), 3)
)
def test_others(texts: Iterable[str], machine: Machine) -> None:
    assert callable(texts)
    assert compare(texts(), machine) > 20


def test_scalars() -> None:
    assert compare(scalar_texts(), MACHINES[0]) > 200
