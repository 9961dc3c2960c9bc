"""Intrinsics, layouts and kernels for people and programs to read."""

from mfmadsl.report.intrinsic import intrinsic_json, intrinsic_summary, intrinsic_table
from mfmadsl.report.kernel import kernel_json, kernel_summary
from mfmadsl.report.layout import layout_json
from mfmadsl.report.read import read_summary
from mfmadsl.report.schema import json_schema

__all__ = [
    "intrinsic_json",
    "intrinsic_summary",
    "intrinsic_table",
    "json_schema",
    "kernel_json",
    "kernel_summary",
    "layout_json",
    "read_summary",
]
