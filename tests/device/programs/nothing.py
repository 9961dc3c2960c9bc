"""Every function of HIP with zeros for all of its arguments: none may crash. Prints how many were
called.

    mfmadsl device -- python nothing.py
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import hip

MOST_ARGUMENTS = 11
declared = (Path(hip.__file__).parent / "chip.pxd").read_text()
names = sorted(set(re.findall(r"^cdef [^(]*?\b(hip\w+)\(", declared, re.M)))
library = ctypes.CDLL("libamdhip64.so")
zeros = [ctypes.c_void_p(0)] * MOST_ARGUMENTS
names.remove("hipCreateChannelDesc")  # which gives a structure, to where the caller says
for name in names:
    function = getattr(library, name)
    function(*zeros)
    library.hipGetLastError()
print(len(names), "functions took nothing")
