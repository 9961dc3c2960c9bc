"""What Linux says of AMX's tile registers, which it gives to processes that ask for them.

Of x86-64: linux/arch/x86/include/uapi/asm/prctl.h, and Documentation/arch/x86/xstate.rst.
"""

from __future__ import annotations

import ctypes
import platform
import sys

_ARCH_PRCTL, _GET_SUPPORTED, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1021, 0x1023, 18


def gives_tiles() -> bool:
    """Whether the system gives tile registers to those that ask; this does not ask."""
    if not _is_linux_on_x86():
        return False
    supported = ctypes.c_uint64(0)
    answer = _call(_GET_SUPPORTED, ctypes.byref(supported))
    return answer == 0 and bool(supported.value >> _TILE_DATA & 1)


def may_use_tiles() -> bool:
    """Ask for tile registers, without whose leave the first use ends the process."""
    return _is_linux_on_x86() and _call(_REQUEST_PERMISSION, ctypes.c_uint64(_TILE_DATA)) == 0


def _is_linux_on_x86() -> bool:
    return sys.platform == "linux" and platform.machine() == "x86_64"


def _call(option: int, argument: object) -> int:
    answer: int = ctypes.CDLL(None).syscall(_ARCH_PRCTL, option, argument)
    return answer
