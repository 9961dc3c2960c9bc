"""What a function makes of groups of neighbouring columns of its product."""

from __future__ import annotations

from tvm.tirx import PrimFunc

from mfmadsl.schedule.product.column_groups import GroupOutput
from mfmadsl.schedule.product.compared_columns import compared_output
from mfmadsl.schedule.product.paired_columns import paired_output


def group_output(function: PrimFunc) -> GroupOutput | None:
    """The results of groups of columns that a function has, None where it has none.

    Raises ScheduleError, with the name of the block, for a comparison that only looks like one.
    """
    return compared_output(function) or paired_output(function)
