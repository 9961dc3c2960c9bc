"""Tuning: tilings of a product measured, and kept in a database of TVM's MetaSchedule."""

from __future__ import annotations

from mfmadsl.tune.database import Database as Database
from mfmadsl.tune.measure import by_model as by_model
from mfmadsl.tune.measure import on_gpu as on_gpu
from mfmadsl.tune.search import Trial as Trial
from mfmadsl.tune.search import tune as tune
from mfmadsl.tune.tracker import on_servers as on_servers

__all__ = [
    "Database",
    "Trial",
    "by_model",
    "on_gpu",
    "on_servers",
    "tune",
]
