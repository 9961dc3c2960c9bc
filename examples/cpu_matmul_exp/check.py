"""Whether F is right: float64 beside it, and how far float32 arithmetic may be from that.

With u = 2^-24, a sum of n products in float32, each rounded or fused, in whatever order, is off by
at most g(n) = n u / (1 - n u) of the sum of the products' absolute values. So, of E = exp(A x B)
and F = E x C, with hats for what is computed:

    |P^ - P|  <=  d,  d = g(K) |A| |B|
    E^ = exp(P^) (1 + t), |t| <= EXP, and exp(P^) is between E e^-d and E e^d, so that
    |E^ - E|  <=  E h,  h = (1 + EXP) e^d - 1
    |F^ - F|  <=  |E^ - E| |C| + g(N) |E^| |C|  <=  (E (h + g(N) (1 + h))) |C|

exp has the slope E: an error of P is one relative to E. Where all sums of A x B are exact, as those
of `chain.inputs` are, d is 0. What underflows adds 2^-149 a term. float64's own roundings are 2^-29
of these, and left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from examples.cpu_matmul_exp.chain import Floats, Inputs

EXP = 3 * 2.0**-23
"""The relative error that an exp of float32 may have: three units in the last place, what NumPy
states of its own (2.52); a C library's has one, and the polynomial of `mfmadsl.passes` 1.2."""

_UNIT = 2.0**-24


@dataclass(frozen=True)
class Expected:
    """F as float64 has it, M x P, and how far each element in float32 may be from that."""

    f: npt.NDArray[np.float64]
    allowed: npt.NDArray[np.float64]

    def share(self, f: Floats) -> float:
        """The largest error, as a part of what is allowed; infinity of a NaN."""
        share = np.abs(f - self.f) / self.allowed
        return float(np.where(np.isnan(share), np.inf, share).max())

    def difference(self, f: Floats) -> str | None:
        """Where F is wrong, as a sentence; None if it is right."""
        wrong = np.argwhere(~(np.abs(f - self.f) <= self.allowed))
        if not len(wrong):
            return None
        row, column = wrong[0]
        return (
            f"{len(wrong)} of {f.size} elements are wrong, the first of them F[{row}, {column}] = "
            f"{f[row, column]:.9g}, not {self.f[row, column]:.9g} "
            f"+- {self.allowed[row, column]:.2g}"
        )


def expected(given: Inputs, exact_sums: bool = False) -> Expected:
    """F and its bounds, for finite inputs; `exact_sums` states that A x B has no rounding."""
    a, b, c = (each.astype(np.float64) for each in given)
    terms = a.shape[1], c.shape[0]
    e = np.exp(a @ b)
    d = 0.0 if exact_sums else _rounding(terms[0]) * (np.abs(a) @ np.abs(b)) + terms[0] * 2.0**-149
    h = (1 + EXP) * np.exp(d) - 1
    second = _rounding(terms[1])
    allowed = (e * (h + second * (1 + h)) + 2.0**-149) @ np.abs(c) + terms[1] * 2.0**-149
    return Expected(e @ c, allowed)


def _rounding(terms: int) -> float:
    return terms * _UNIT / (1 - terms * _UNIT)
