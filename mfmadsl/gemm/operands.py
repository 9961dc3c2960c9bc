"""Random matrices for a product, the same on every machine."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.argument import check_size
from mfmadsl.epilogue import STEPS
from mfmadsl.gemm import blocks
from mfmadsl.gemm.experts import even_ends, random_ends, stacked
from mfmadsl.gemm.problem import BLOCKS, SCALED, SPARSE, Problem
from mfmadsl.gemm.quantised import random_weights
from mfmadsl.gemm.scaled import GROUP, packed, random_scales
from mfmadsl.gemm.sparse import stored
from mfmadsl.model import ELEMENT_TYPES
from mfmadsl.model.numpy_type import numpy_type

_SEED = 20240229


def operands_of(problem: Problem, compared: bool = True) -> tuple[npt.NDArray[Any], ...]:
    """Random arguments, the same on every machine, and a C full of a value that is no result.

    Raises ArgumentError if they are more than this machine holds: in float64 if they are to be
    `compared`, and as they are where a profile runs some workgroups on them. Experts have as many
    rows each in a profile, and else any number.
    """
    sides = (problem.batch,) if problem.batch else ()
    rows = problem.m if problem.tokens is None else problem.tokens
    a_shape = (problem.k, rows) if problem.a_transposed else (rows, problem.k)
    b_shape = (problem.n, problem.k) if problem.b_transposed else (problem.k, problem.n)
    b_sides = sides if problem.experts is None else (problem.experts,)
    c_shape = (*sides, problem.m, problem.n)
    a_type, b_type, c_type = problem.types
    wanted = [((*sides, *a_shape), a_type), ((*b_sides, *b_shape), b_type)]
    for name in problem.epilogue:
        if takes := STEPS[name].takes:
            wanted.append((c_shape if takes == "matrix" else c_shape[-1:], problem.sum_type))
    sizes = [(prod(s), numpy_type(name).itemsize) for s, name in (*wanted, (c_shape, c_type))]
    if compared:
        check_size(sum(8 * n for n, _ in sizes), "compared in float64, the matrices take")
    else:
        size = sum(n * own for n, own in sizes)
        check_size(size, "a profile runs workgroups in the emulator, and the matrices take")
    generator = np.random.default_rng(_SEED)
    a, b, *others = (_random(generator, shape, numpy_type(name)) for shape, name in wanted)
    given = [a, b]
    if problem.form == SCALED:
        given = [
            *(packed(each, ELEMENT_TYPES[own].bits) for each, own in ((a, a_type), (b, b_type))),
            *(random_scales(generator, each.shape[:-1], problem.k) for each in (a, b)),
        ]
    elif problem.form == BLOCKS:
        given = [
            a,
            blocks.random_scales(generator, a, 1),
            b,
            blocks.random_scales(generator, b),
        ]
    elif problem.weight_format is not None:
        extents = problem.n, problem.k, problem.weight_group
        of_each = [
            random_weights(generator, problem.weight_format, *extents, a_type)
            for _ in range(problem.experts or 1)
        ]
        given = [a, *(of_each[0] if problem.experts is None else stacked(of_each))]
    elif problem.form == SPARSE:
        given = [*stored(generator, a), b]
    if problem.experts is not None:
        place = problem.rows_parameter
        given[place:place] = _rows(generator, problem, problem.experts, compared)
    return (*given, *others, *_results(problem, c_shape))


def _rows(
    generator: np.random.Generator, problem: Problem, experts: int, compared: bool
) -> list[npt.NDArray[np.int32]]:
    """Which token each row is of, if there are tokens, and the ends of experts: as many rows for
    each where a profile is made, and else any."""
    rows = problem.m
    ends = random_ends(generator, rows, experts) if compared else even_ends(rows, experts)
    if problem.tokens is None:
        return [ends]
    return [generator.integers(0, problem.tokens, rows, np.int32), ends]


def _results(problem: Problem, shape: tuple[int, ...]) -> list[npt.NDArray[Any]]:
    """C, and the scales of one in an MX format."""
    if problem.mx_output is None:
        return [np.full(shape, 99, numpy_type(problem.types[2]))]
    *rows, columns = shape
    of_groups = np.full((*rows, columns // GROUP), 99, np.uint8)
    if (bits := ELEMENT_TYPES[problem.mx_output].bits) < 8:
        return [np.full((*rows, columns * bits // 8), 99, np.uint8), of_groups]
    return [np.full(shape, 99, np.uint8).view(numpy_type(problem.mx_output)), of_groups]


def _random(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    if dtype.kind == "i":
        most = min(np.iinfo(dtype).max, 1 << 20)  # added to a sum, it does not overflow
        return generator.integers(-most - 1, most + 1, shape, dtype)
    return generator.standard_normal(shape).astype(dtype)
