"""NumPy's types, by the names that `.mfma` files and TVM have for them."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # the types that NumPy lacks: bfloat16 and the eight-bit floats
import numpy as np


def numpy_type(name: str) -> np.dtype[Any]:
    """The type called `name`; TypeError, NumPy's own, if there is none."""
    return np.dtype(getattr(ml_dtypes, name, name))
