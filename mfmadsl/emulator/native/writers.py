"""Who writes the code of which forms."""

from __future__ import annotations

from collections.abc import Callable

from mfmadsl.emulator.native import masks, scalar
from mfmadsl.emulator.native.check_lds import write_lds_load_check, write_lds_store_check
from mfmadsl.emulator.native.check_memory import (
    write_memory_load_check,
    write_memory_store_check,
)
from mfmadsl.emulator.native.code import NativeCode
from mfmadsl.emulator.native.division import write_division_scale, write_division_step
from mfmadsl.emulator.native.elementwise import write_row
from mfmadsl.emulator.native.exchange import EXCHANGES
from mfmadsl.emulator.native.form import CodeForm
from mfmadsl.emulator.native.global_memory import write_buffer, write_global
from mfmadsl.emulator.native.lds import write_lds
from mfmadsl.emulator.native.matrix import write_matrix
from mfmadsl.emulator.native.packed import write_mixed, write_packed, write_packed_move
from mfmadsl.emulator.native.places import (
    write_buffer_places,
    write_global_places,
    write_lds_places,
)
from mfmadsl.emulator.native.scalar_memory import write_scalar_load


def _nothing(code: NativeCode, form: CodeForm) -> None:
    """What only passes."""


WRITERS: dict[str, Callable[[NativeCode, CodeForm], None]] = {
    "nothing": _nothing,
    "row": write_row,
    "scalar": scalar.write_scalar,
    "scalar-compare": scalar.write_compare,
    "save-exec": scalar.write_save_exec,
    "compare": masks.write_compare,
    "choice": masks.write_choice,
    "carry": masks.write_carry,
    "wide-sum": masks.write_wide_sum,
    "lds": write_lds,
    "global": write_global,
    "buffer": write_buffer,
    "scalar-load": write_scalar_load,
    "lds-places": write_lds_places,
    "global-places": write_global_places,
    "buffer-places": write_buffer_places,
    "lds-load-check": write_lds_load_check,
    "lds-store-check": write_lds_store_check,
    "memory-load-check": write_memory_load_check,
    "memory-store-check": write_memory_store_check,
    "packed": write_packed,
    "packed-move": write_packed_move,
    "mixed": write_mixed,
    "matrix": write_matrix,
    "division-scale": write_division_scale,
    "division-step": write_division_step,
    **EXCHANGES,
}
