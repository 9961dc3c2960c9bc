"""The instructions of a micro-kernel, proved to compute C[i, j] += sum over k A[i, k] * B[k, j]."""

from __future__ import annotations

from typing import NamedTuple

from mfmadsl.model.cpu import TILE_ROWS
from mfmadsl.model.microkernel import Slot, Step, VectorOperand, group, products


class WrongProduct(NamedTuple):
    """Which operand lies wrongly, and what is multiplied instead."""

    operand: str
    message: str


def find_steps(
    a: VectorOperand, b: VectorOperand, c: VectorOperand, tiles: bool
) -> tuple[Step, ...] | WrongProduct:
    """Instructions that add each product of the tiles to its sum once, in the order of k, then C.

    The operands are one-to-one, so that each element has one place: of the registers of A and B
    that could be a step's, the first product of that step names one of each.
    """
    size, height = group(a.type, c.type), TILE_ROWS if tiles else 1
    depth = a.shape[1]
    first_a = {a.place(unit * height, 0): unit for unit in range(a.registers // height)}
    first_b = {b.place(unit * height, 0): unit for unit in range(b.registers // height)}
    found: list[tuple[int, Step]] = []
    done: set[tuple[int, int, int]] = set()
    for unit in range(c.registers // height):
        i, j = c.place(unit * height, 0)
        for k in range(depth):
            left, right = first_a.get((i, k)), first_b.get((k, j))
            if left is None or right is None:
                continue
            step = Step(unit, left, right)
            made = [_places(at, a, b, c) for at in products(step, c.elements, size, tiles)]
            if all(_fits(*places) for places in made):
                found.append((k, step))
                done.update((*sum_, of_a[1]) for sum_, of_a, _ in made)
    if len(done) < c.shape[0] * c.shape[1] * depth:
        return _missing(a, b, c, tiles, done)
    return tuple(step for _, step in sorted(found))


Places = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def _places(
    slots: tuple[Slot, Slot, Slot], a: VectorOperand, b: VectorOperand, c: VectorOperand
) -> Places:
    """(row, column) of what a product is of: of C, A and B."""
    of_c, of_a, of_b = slots
    return c.place(*of_c), a.place(*of_a), b.place(*of_b)


def _fits(of_c: tuple[int, int], of_a: tuple[int, int], of_b: tuple[int, int]) -> bool:
    """Whether it is one of those that the sum is of."""
    return of_a[0] == of_c[0] and of_b[1] == of_c[1] and of_a[1] == of_b[0]


def _missing(
    a: VectorOperand,
    b: VectorOperand,
    c: VectorOperand,
    tiles: bool,
    done: set[tuple[int, int, int]],
) -> WrongProduct:
    """The first product that no instruction makes, and what the nearest one makes instead."""
    sums = ((register, e) for register in range(c.registers) for e in range(c.elements))
    slot, i, j, k = next(
        (slot, *c.place(*slot), k)
        for slot in sums
        for k in range(a.shape[1])
        if (*c.place(*slot), k) not in done
    )
    height = TILE_ROWS if tiles else 1
    step = Step(slot[0] // height, a.slot(i, k)[0] // height, b.slot(k, j)[0] // height)
    where = f"element {slot[1]} of register {slot[0]} is C[{i},{j}]"
    wanted = f"A[{i},{k}] * B[{k},{j}]"
    every = list(products(step, c.elements, group(a.type, c.type), tiles))
    wrong = [at for at in every if not _fits(*_places(at, a, b, c))]
    own = [at for at in wrong if at[0] == slot]
    if not wrong:
        return WrongProduct("b", f"{where}, to which no instruction adds {wanted}")
    of_c, of_a, of_b = _places((own or wrong)[0], a, b, c)
    operand = "a" if of_a[0] != of_c[0] else "b"
    made = f"A[{of_a[0]},{of_a[1]}] * B[{of_b[0]},{of_b[1]}]"
    if own:
        return WrongProduct(operand, f"{where}, which needs {wanted}, but it is given {made}")
    message = f"{where}: what gives it {wanted} gives {made} to C[{of_c[0]},{of_c[1]}]"
    return WrongProduct(operand, message)
