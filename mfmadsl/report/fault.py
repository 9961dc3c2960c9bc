"""Faults of a kernel as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.emulator.error import Fault


def fault_json(fault: Fault, count: int) -> dict[str, Any]:
    """One fault, and how often it was seen; null for what it is not the fault of."""
    return {
        "kind": fault.kind,
        "message": fault.message,
        "line": fault.line,
        "instruction": fault.instruction,
        "source": fault.source,
        "workgroup": list(fault.workgroup) if fault.workgroup else None,
        "wave": fault.wave,
        "lane": fault.lane,
        "earlier": asdict(fault.earlier) if fault.earlier else None,
        "count": count,
    }
