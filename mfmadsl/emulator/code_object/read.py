"""`read_code_object`: the file that HIP loads, to kernels in assembly text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mfmadsl.argument import check_type, clipped, described
from mfmadsl.emulator.code_object.bundle import LARGEST, unbundled
from mfmadsl.emulator.code_object.descriptor import SIZE, Descriptor, read_descriptor
from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.image import ElfSection, ElfSymbol, Image, read_image
from mfmadsl.emulator.code_object.notes import read_kernels
from mfmadsl.emulator.code_object.writing import assembly_text
from mfmadsl.model import architecture

_LARGEST_KERNEL = 16 << 20  # bytes of its code
_DESCRIPTOR = ".kd"
_NAME = re.compile(r"[A-Za-z_$][\w$.@]*", re.ASCII)


@dataclass(frozen=True)
class KernelCode:
    """One kernel: what the metadata and the descriptor say of it, and its machine code."""

    name: str
    metadata: Mapping[str, Any]
    descriptor: Descriptor
    code: bytes


@dataclass(frozen=True)
class CodeObject:
    """What HIP loads as a module: the chip that it is for, and its kernels by name.

    `features` has `xnack` and `sramecc` where the code is for chips that have them on (True) or
    off (False), and not for both. `version` is that of the code object, 3 to 6.
    """

    arch: str
    features: Mapping[str, bool]
    version: int
    kernels: Mapping[str, KernelCode]

    @property
    def target(self) -> str:
        """The chip with its features, such as `gfx90a:sramecc+:xnack-`."""
        return self.arch + "".join(f":{x}{'-+'[on]}" for x, on in sorted(self.features.items()))

    def assembly(self, kernel: str) -> str:
        """The text of one kernel in LLVM's syntax, with its directives and its metadata.

        Raises CodeObjectError where there is no such kernel, and for code that cannot be told as
        text: an instruction that is not known, a call, an address that counts from the code's own.
        """
        if kernel not in self.kernels:
            names = ", ".join(self.kernels)
            raise CodeObjectError(f"there is no kernel {described(kernel)}, but: {names}")
        one = self.kernels[kernel]
        return assembly_text(
            self.target, self.version, one.name, one.metadata, one.descriptor.directives, one.code,
            architecture(self.arch),
        )  # fmt: skip


def read_code_object(data: bytes, arch: str | None = None) -> CodeObject:
    """Read a code object, as `hipModuleLoadData` takes it: an ELF file, or a bundle of several.

    `arch` is the chip that is wanted: of a bundle it says which, and code for another chip is
    refused. What is read once is kept. Raises CodeObjectError for what is no code object, is
    broken, or is for a chip that is not known; and ArgumentError for an unknown `arch`.
    """
    check_type("data", data, (bytes, bytearray, memoryview), "the bytes of a code object")
    if arch is not None:
        arch = architecture(arch).name
    return _read(bytes(data), arch)


@lru_cache(maxsize=16)
def _read(data: bytes, arch: str | None) -> CodeObject:
    if len(data) > LARGEST:
        raise CodeObjectError(f"it has more than {LARGEST >> 20} MiB, so it is no code object")
    image = read_image(unbundled(data, arch))
    if arch not in (None, image.chip.name):
        raise CodeObjectError(f"it is for {image.chip.name}, not for {arch}")
    described_kernels = read_kernels(image.metadata)
    kernels = {}
    for symbol, metadata in described_kernels.items():
        name = str(metadata[".name"])
        try:
            kernels[name] = _kernel(image, symbol, metadata)
        except CodeObjectError as error:
            raise CodeObjectError(f"kernel {described(name)}: {error}") from None
    return CodeObject(image.chip.name, image.features, image.version, kernels)


def _kernel(image: Image, symbol: str, metadata: Mapping[str, Any]) -> KernelCode:
    name = symbol.removesuffix(_DESCRIPTOR)
    if name == symbol or name != metadata[".name"] or not _NAME.fullmatch(name):
        raise CodeObjectError(
            f"its descriptor is called {clipped(symbol)!r}, not NAME{_DESCRIPTOR}"
        )
    if symbol not in image.symbols:
        raise CodeObjectError(f"there is no symbol `{symbol}`")
    place = image.symbols[symbol]
    if place.size != SIZE:
        raise CodeObjectError(f"its descriptor has {place.size} bytes, not {SIZE}")
    content = _section(image, place).part(place.address, SIZE)
    try:
        descriptor = read_descriptor(content, image.chip)
    except CodeObjectError as error:
        raise CodeObjectError(f"its descriptor is broken: {error}") from None
    code = _code(image, name, place.address + descriptor.entry)
    return KernelCode(name, metadata, descriptor, code)


def _code(image: Image, name: str, entry: int) -> bytes:
    """The machine code of the function that begins at an address."""
    function = image.symbols.get(name)
    if function is None or not function.is_function or function.address != entry:
        raise CodeObjectError(f"its code at 0x{entry:x} is not the function of its name")
    section = _section(image, function)
    if not section.is_code or entry % 4:
        raise CodeObjectError(f"at 0x{entry:x} there is no code")
    if not 0 < function.size <= _LARGEST_KERNEL:
        raise CodeObjectError(f"its function has {function.size} bytes")
    return section.part(entry, function.size)


def _section(image: Image, symbol: ElfSymbol) -> ElfSection:
    if symbol.section not in image.sections:
        raise CodeObjectError(f"`{symbol.name}` lies in no section that is loaded")
    return image.sections[symbol.section]
