"""What compilers put around code objects of several chips.

Source: LLVM, "Clang Offload Bundler", section "Bundled Binary File Layout".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from mfmadsl.argument import clipped
from mfmadsl.emulator.code_object.error import CodeObjectError

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
_NOT_COMPRESSED = (
    "the bundle is compressed: compile with --no-offload-compress, or take the code object out of "
    "it with `clang-offload-bundler --unbundle --type=o`"
)
_ELF = b"\x7fELF"
_SECTIONS, _SECTION = struct.Struct("<Q"), struct.Struct("<HH")  # e_shoff; e_shentsize, e_shnum
_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")
_MOST_ENTRIES = 256
_LONGEST_NAME = 1024
LARGEST = 256 << 20  # bytes

Read = Callable[[int, int], bytes]
_PROCESSOR = re.compile(r"(?:hip|hipv4|openmp)-amdgcn-amd-amdhsa-[^-]*-(gfx\w+?)((?::\w+[+-])*)")


def is_code_object(data: bytes) -> bool:
    """Whether a file says of itself that it is one, or a bundle of several."""
    return data.startswith((_ELF, _MAGIC, _COMPRESSED))


def unbundled(data: bytes, arch: str | None) -> bytes:
    """The code object itself, and of a bundle that of a chip: of the only one where none is named.

    Raises CodeObjectError for a bundle that is compressed, is broken or does not have it.
    """
    if data.startswith(_COMPRESSED):
        raise CodeObjectError(_NOT_COMPRESSED)
    if not data.startswith(_MAGIC):
        return data
    entries = list(_entries(data))
    wanted = [entry for entry in entries if arch in (None, entry[0])]
    names = ", ".join(dict.fromkeys(name + features for name, features, _ in entries))
    if not entries:
        raise CodeObjectError("the bundle has no code object for an AMD GPU")
    if not wanted:
        raise CodeObjectError(f"the bundle has code for {names}, and none for {arch}")
    if len({name for name, _, _ in wanted}) > 1:
        raise CodeObjectError(f"the bundle has code for {names}: say for which chip it is read")
    # Several for one chip: the one that asks for less, as most chips are set up.
    return min(wanted, key=lambda entry: ("xnack+" in entry[1], len(entry[1])))[2]


def code_object_size(read: Read) -> int:
    """How many bytes a code object or a bundle has, of which only the address is known.

    `read` is given a first byte and a number of bytes, and gives those that are there. Nothing is
    asked for that lies beyond the end. Raises CodeObjectError for what is neither.
    """
    start = read(0, len(_MAGIC))
    if start.startswith(_COMPRESSED):
        raise CodeObjectError(_NOT_COMPRESSED)
    if start == _MAGIC:
        sizes = [first + size for first, size, _ in _table(read)]
    elif start.startswith(_ELF):
        # What links a code object puts the table of sections at its end.
        (table,), (size, count) = _SECTIONS.unpack(read(40, 8)), _SECTION.unpack(read(58, 4))
        sizes = [table + size * count]
    else:
        raise CodeObjectError("it is neither an ELF file nor a bundle of such")
    found = max(sizes, default=0)
    if found > LARGEST:
        raise CodeObjectError(f"it says that it has {found} bytes, so it is no code object")
    return found


def _entries(data: bytes) -> Iterator[tuple[str, str, bytes]]:
    """The chip, its features and the code object of each entry for an AMD GPU."""
    for start, size, name in _table(lambda first, count: data[first : first + count]):
        if start + size > len(data):
            raise CodeObjectError("the bundle is broken: an entry lies beyond its end")
        if match := _PROCESSOR.fullmatch(name):
            yield match[1], match[2], data[start : start + size]
        elif "amdgcn" in name:
            raise CodeObjectError(f"the bundle has an entry for {clipped(name)!r}, unknown")


def _table(read: Read) -> Iterator[tuple[int, int, str]]:
    """The first byte, the size and the name of each entry of a bundle."""
    try:
        (count,) = _COUNT.unpack(read(len(_MAGIC), _COUNT.size))
        if count > _MOST_ENTRIES:
            raise CodeObjectError(f"the bundle is broken: it says that it has {count} entries")
        place = len(_MAGIC) + _COUNT.size
        for _ in range(count):
            start, size, length = _ENTRY.unpack(read(place, _ENTRY.size))
            place += _ENTRY.size
            if length > _LONGEST_NAME:
                raise CodeObjectError(f"the bundle is broken: it has a name of {length} bytes")
            yield start, size, read(place, length).decode("utf-8", "replace")
            place += length
    except struct.error:
        raise CodeObjectError("the bundle is broken: it ends within its table") from None
