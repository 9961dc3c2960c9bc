"""TVM's MetaSchedule as the ladders use it."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any
from unittest.mock import patch


def without_tensor_intrinsics() -> AbstractContextManager[Any]:
    """Keep a TuneContext from parsing all TensorIntrins that come with TVM.

    It imports them whatever the space, which takes half a minute; the ladders' spaces have none.
    """
    name = "tvm.s_tir.tensor_intrin"
    return patch.dict(sys.modules, {} if name in sys.modules else {name: ModuleType(name)})
