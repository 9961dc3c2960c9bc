"""How far a kernel's C may be off, and how far it is, beside NumPy in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes  # the types that NumPy lacks: bfloat16 and the eight-bit floats
import numpy as np
import numpy.typing as npt

from mfmadsl.comparison import Comparison, compared
from mfmadsl.emulator.instructions.matrix.arithmetic import arithmetic
from mfmadsl.epilogue import model
from mfmadsl.gemm import blocks
from mfmadsl.gemm.experts import of_experts
from mfmadsl.gemm.problem import BLOCKS, SCALED, SPARSE, Problem
from mfmadsl.gemm.quantised import weights_of
from mfmadsl.gemm.scaled import quantisation_error, scaled_values
from mfmadsl.model import ELEMENT_TYPES, architecture
from mfmadsl.sparsity import decompress

_FLUSHED = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))  # by gfx90a, where denormal
_ROUNDINGS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True)
class Tolerance:
    """What the matrix cores may round away of a product whose K is added up in `parts`."""

    problem: Problem
    parts: int = 1

    @property
    def _cuts_factors(self) -> bool:
        intrinsic = self.problem.intrinsic
        return intrinsic is not None and intrinsic.a.type.short == "xf32"

    @property
    def rule(self) -> str:
        """How the tolerance of an element comes about, in a line."""
        problem = self.problem
        if problem.sum_type == "int32":
            return "exact"
        roundings = f"{self._roundings} * 2^-{53 if problem.sum_type == 'float64' else 24}"
        factors = f"({roundings} + 2^-9)" if self._cuts_factors else roundings
        after = [
            *problem.epilogue,
            *([problem.types[2]] if problem.types[2] != problem.sum_type else []),
            *([f"MX {problem.mx_output}"] if problem.mx_output is not None else []),
        ]
        return f"{factors} * sum |a||b|" + (f", and {', '.join(after)}" if after else "")

    @property
    def relative(self) -> float:
        """How much the chip's matrix cores may round away, of the sum of the products' magnitudes.

        xf32 cuts each factor to 10 bits of fraction besides.
        """
        rounding = 2.0**-53 if self.problem.sum_type == "float64" else 2.0**-24
        return self._roundings * rounding + (2.0**-9 if self._cuts_factors else 0)

    @property
    def _roundings(self) -> int:
        """Units in the last place, those of adding up the parts of K among them."""
        problem = self.problem
        kind = problem.intrinsic.a.type.short if problem.intrinsic else _short(problem.types[0])
        roundings = arithmetic(problem.arch, True, kind).roundings(problem.k)
        if problem.form == BLOCKS:  # the scales' product, that with a sum, and adding up the sums
            roundings += 2 + -(-problem.k // blocks.BLOCK)
        return roundings + self.parts - 1

    def compare(
        self, a: npt.NDArray[Any], b: npt.NDArray[Any], *others: npt.NDArray[Any]
    ) -> Comparison:
        """Where C, the last array, is furthest beyond its tolerance, or nearest to it.

        The product is that of the numbers that the chip reads: gfx90a takes denormal halves and
        bfloats for 0.
        """
        problem = self.problem
        rows, ends = None, None
        if problem.experts is not None:
            (a, b, *operands), rows, ends = self._without_rows([a, b, *others])
        else:
            operands = list(others)
        *operands, c = operands
        if problem.mx_output is not None:
            *operands, elements = operands
            c = scaled_values(elements.view(np.uint8), c, problem.mx_output)
        if problem.form == SCALED:
            a_scales, b_scales, *operands = operands
            a = scaled_values(a, a_scales, problem.types[0])
            b = scaled_values(b, b_scales, problem.types[1])
        elif problem.form == BLOCKS:
            a_scales, b, b_scales, *operands = b, *operands
            a, b = blocks.scaled_values(a, a_scales, 1), blocks.scaled_values(b, b_scales)
        elif problem.weight_format is not None:
            stored, group, dtype = problem.weight_format, problem.weight_group, problem.types[0]
            count = len(stored.arrays(problem.n, problem.k, group, dtype)) - 1
            arrays, operands = [b, *operands[:count]], operands[count:]
            if problem.experts is None:
                b = weights_of(stored, arrays, group, dtype)
            else:
                of_each = zip(*arrays, strict=True)
                b = np.stack([weights_of(stored, list(own), group, dtype) for own in of_each])
            b = b.swapaxes(-1, -2)
        elif problem.form == SPARSE:
            a, b = decompress(a, b), operands.pop(0)
        left = self._read(a.swapaxes(-1, -2) if problem.a_transposed else a)
        right = self._read(b.swapaxes(-1, -2) if problem.b_transposed else b)
        if rows is not None:
            left = left[rows]
        values, tolerances = _product(left, right, ends), np.zeros(c.shape)
        if problem.sum_type != "int32":
            tolerances = _product(np.abs(left), np.abs(right), ends) * self.relative
        numbers = [each.astype(np.float64) for each in operands]
        rounding = _ROUNDINGS.get(problem.sum_type, 0)
        values, bounds = model(problem.epilogue, values, tolerances, numbers, rounding)
        if problem.sum_type != "int32":
            tolerances = bounds
        if problem.types[2] != problem.sum_type:
            tolerances = tolerances + (np.abs(values) + tolerances) * _ROUNDINGS[problem.types[2]]
            tolerances = tolerances + 2.0**-24  # of the smallest halves
        if problem.mx_output is not None:
            tolerances = tolerances + quantisation_error(values, tolerances, problem.mx_output)
        return compared(c, values, tolerances)

    def _without_rows(
        self, arrays: list[npt.NDArray[Any]]
    ) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any] | None, npt.NDArray[Any]]:
        """(the other arrays, the token of each row if there are tokens, the ends of experts)."""
        place = self.problem.rows_parameter
        tokens = None if self.problem.tokens is None else arrays.pop(place)
        ends = arrays.pop(place)
        return arrays, tokens, ends

    def _read(self, matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        values = matrix.astype(np.float64)
        if architecture(self.problem.arch).flushes_halves and matrix.dtype in _FLUSHED:
            values[np.abs(values) < ml_dtypes.finfo(matrix.dtype).smallest_normal] = 0
        return values


def _product(
    left: npt.NDArray[np.float64], right: npt.NDArray[np.float64], ends: npt.NDArray[Any] | None
) -> npt.NDArray[np.float64]:
    return np.asarray(left @ right) if ends is None else of_experts(left, right, ends)


def _short(dtype: str) -> str:
    """The name of a type in those of instructions."""
    return next(t.short for t in ELEMENT_TYPES.values() if t.name == dtype)
