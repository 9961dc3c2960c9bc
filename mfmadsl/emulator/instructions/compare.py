"""Vector comparisons, whose result is one bit a lane (CDNA3 ISA, VOPC)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.instructions.row import Row, row
from mfmadsl.emulator.machine.bits import Array, Mask
from mfmadsl.emulator.machine.wave import EXEC_PAIR, Waves
from mfmadsl.emulator.text.operand import Register

Compare = Callable[[Array, Array], Array]

_ORDERED: dict[str, Compare] = {
    "f": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), dtype=np.bool_),
    "eq": np.equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
_INTEGER: dict[str, Compare] = {
    **_ORDERED,
    "ne": np.not_equal,
    "t": lambda a, b: ~_ORDERED["f"](a, b),
}
_FLOATING: dict[str, Compare] = {
    **_ORDERED,
    "lg": lambda a, b: (a < b) | (a > b),
    "neq": lambda a, b: ~(a == b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nge": lambda a, b: ~(a >= b),
    "nlt": lambda a, b: ~(a < b),
    "nle": lambda a, b: ~(a <= b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "tru": lambda a, b: ~_ORDERED["f"](a, b),
}


def _classes(value: Array, wanted: Array) -> Array:
    """v_cmp_class: whether a float is of one of the ten classes that bits of `wanted` name."""
    bits = value.view(f"u{value.itemsize}")
    mantissa = {2: 10, 4: 23, 8: 52}[value.itemsize]
    quiet = bits >> bits.dtype.type(mantissa - 1) & bits.dtype.type(1) != 0
    negative = np.signbit(value)
    tiny = np.abs(value) < np.finfo(value.dtype).smallest_normal
    nan, infinite, zero = np.isnan(value), np.isinf(value), value == 0
    normal, denormal = ~nan & ~infinite & ~tiny, tiny & ~zero
    members = [
        nan & ~quiet,
        nan & quiet,
        *(kind & negative for kind in (infinite, normal, denormal, zero)),
        *(kind & ~negative for kind in (zero, denormal, normal, infinite)),
    ]
    found = np.zeros(np.broadcast_shapes(value.shape, wanted.shape), dtype=np.bool_)
    for bit, member in enumerate(members):
        found = found | (member & (wanted >> wanted.dtype.type(bit) & wanted.dtype.type(1) != 0))
    return found


COMPARE: dict[str, Row] = {}
for _size in ("16", "32", "64"):
    for _letter, _relations in (("i", _INTEGER), ("u", _INTEGER), ("f", _FLOATING)):
        _kind = _letter + _size
        for _relation, _function in _relations.items():
            COMPARE[f"v_cmp_{_relation}_{_kind}"] = row(f"{_kind} {_kind}", _function)
    COMPARE[f"v_cmp_class_f{_size}"] = row(f"f{_size} u32", _classes)
COMPARE |= {name.replace("v_cmp_", "v_cmpx_"): entry for name, entry in COMPARE.items()}


def write_comparison(waves: Waves, target: Register, result: Mask, to_exec: bool) -> None:
    """The mask into the target and, for v_cmpx, into EXEC too."""
    waves.write_mask(target, result)
    if to_exec:
        waves.write_mask(EXEC_PAIR, result)
