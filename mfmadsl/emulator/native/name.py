"""What the function of a form is called."""

from __future__ import annotations

import hashlib
from functools import cache

from mfmadsl.emulator.native.form import CodeForm


@cache
def name_of(form: CodeForm) -> str:
    """The name of a form's function."""
    return "f" + hashlib.sha256(repr(form).encode()).hexdigest()[:40]
