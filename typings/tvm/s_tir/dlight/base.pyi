from typing import Any

from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

class ScheduleRule:
    def apply(self, func: PrimFunc, target: Any, tunable: bool) -> Schedule | None: ...
