"""`read_code_object`: the file that HIP loads, to kernels in assembly text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mfmadsl.argument import check_type, clipped, described
from mfmadsl.emulator.code_object.bundle import LARGEST, unbundled
from mfmadsl.emulator.code_object.descriptor import SIZE, Descriptor, read_descriptor
from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.image import (
    DESCRIPTOR,
    ElfSymbol,
    Image,
    read_image,
)
from mfmadsl.emulator.code_object.notes import read_kernels
from mfmadsl.emulator.code_object.section import ElfSection
from mfmadsl.emulator.code_object.source_lines import SourceLines
from mfmadsl.emulator.code_object.writing import NO_SOURCES, Code, assembly_text
from mfmadsl.emulator.text.data import CODE
from mfmadsl.model import architecture

_LARGEST_KERNEL = 16 << 20  # bytes of its code
_NAME = re.compile(r"[A-Za-z_$][\w$.@]*", re.ASCII)


@dataclass(frozen=True)
class KernelCode:
    """One kernel: what the metadata and the descriptor say of it, and its machine code at an
    address.

    Where nobody says how long that is, it is not `sized`: more may follow, that is no code.
    """

    name: str
    metadata: Mapping[str, Any]
    descriptor: Descriptor
    code: bytes
    sized: bool = True
    address: int = 0


@dataclass(frozen=True)
class CodeObject:
    """What HIP loads as a module: the chip that it is for, and its kernels by name.

    `features` has `xnack` and `sramecc` where the code is for chips that have them on (True) or
    off (False), and not for both. `version` is that of the code object, 3 to 6. `functions` are
    what kernels may call, `sections` what they may reach by addresses, and `variables` addresses
    and bytes of what of that has a name. `sources` has the lines of the source,
    where the object does.
    """

    arch: str
    features: Mapping[str, bool]
    version: int
    kernels: Mapping[str, KernelCode]
    functions: tuple[Code, ...] = ()
    sections: tuple[ElfSection, ...] = ()
    variables: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sources: SourceLines = NO_SOURCES

    @property
    def target(self) -> str:
        """The chip with its features, such as `gfx90a:sramecc+:xnack-`."""
        return self.arch + "".join(f":{x}{'-+'[on]}" for x, on in sorted(self.features.items()))

    def assembly(self, kernel: str, addressed: bool = False) -> str:
        """The text of one kernel in LLVM's syntax, with its directives and its metadata.

        It tells where instructions lie if the kernel computes addresses, or if it shall be
        `addressed`.

        Raises CodeObjectError where there is no such kernel, and for code that cannot be told as
        text: an instruction that is not known.
        """
        if kernel not in self.kernels:
            names = ", ".join(self.kernels)
            raise CodeObjectError(f"there is no kernel {described(kernel)}, but: {names}")
        one = self.kernels[kernel]
        return assembly_text(
            self.target, self.version, one.name, one.metadata, one.descriptor.directives,
            Code(one.address, one.code, one.sized), architecture(self.arch), self.functions,
            self.sections, addressed, self.sources,
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
    return read_loaded(bytes(data), arch, CODE)


@lru_cache(maxsize=16)
def read_loaded(data: bytes, arch: str | None, base: int) -> CodeObject:
    """As `read_code_object`, of an object that is loaded from an address on."""
    if len(data) > LARGEST:
        raise CodeObjectError(f"it has more than {LARGEST >> 20} MiB, so it is no code object")
    object_bytes = unbundled(data, arch)
    image = read_image(object_bytes, base)
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
    return CodeObject(
        image.chip.name,
        image.features,
        image.version,
        kernels,
        tuple(_functions(image)),
        tuple(section for section in image.sections.values() if section.content),
        _variables(image),
        SourceLines.of(object_bytes),
    )


def _variables(image: Image) -> dict[str, tuple[int, int]]:
    """Address and bytes of each name that is neither code nor a kernel's descriptor."""
    return {
        symbol.name: (symbol.address, symbol.size)
        for symbol in image.symbols.values()
        if symbol.size
        and not symbol.is_function
        and not symbol.name.endswith(DESCRIPTOR)
        and (section := image.sections.get(symbol.section)) is not None
        and not section.is_code
    }


def _functions(image: Image) -> Iterator[Code]:
    """The functions that are no kernels, in the order of their addresses, as far as they are code.

    A jump to what is left out, as there is too much of it, is refused when it is executed.
    """
    taken, total = set(), 0
    for symbol in sorted(image.symbols.values(), key=lambda each: (each.address, each.name)):
        section = image.sections.get(symbol.section)
        if not symbol.is_function or symbol.name + DESCRIPTOR in image.symbols:
            continue
        if section is None or not section.is_code or symbol.address in taken:
            continue
        if not section.holds(symbol.address, max(4, symbol.size)):
            continue
        end = (
            symbol.address + symbol.size
            if symbol.size
            else _next_code(image, section, symbol.address)
        )
        total += end - symbol.address
        if total > _LARGEST_KERNEL:
            return
        taken.add(symbol.address)
        content = section.part(symbol.address, end - symbol.address)
        yield Code(symbol.address, content, symbol.size > 0)


def _kernel(image: Image, symbol: str, metadata: Mapping[str, Any]) -> KernelCode:
    name = symbol.removesuffix(DESCRIPTOR)
    if name == symbol or name != metadata[".name"] or not _NAME.fullmatch(name):
        raise CodeObjectError(f"its descriptor is called {clipped(symbol)!r}, not NAME{DESCRIPTOR}")
    if symbol not in image.symbols:
        raise CodeObjectError(f"there is no symbol `{symbol}`")
    place = image.symbols[symbol]
    if place.size not in (SIZE, 0):  # 0 is that of a place that somebody wrote by hand
        raise CodeObjectError(f"its descriptor has {place.size} bytes, not {SIZE}")
    content = _section(image, place).part(place.address, SIZE)
    try:
        descriptor = read_descriptor(content, image.chip)
    except CodeObjectError as error:
        raise CodeObjectError(f"its descriptor is broken: {error}") from None
    entry = place.address + descriptor.entry
    code, sized = _code(image, name, entry)
    return KernelCode(name, metadata, descriptor, code, sized, entry)


def _code(image: Image, name: str, entry: int) -> tuple[bytes, bool]:
    """The machine code that begins at an address, and whether somebody says how long it is.

    HIP starts a kernel at its descriptor's entry and asks for no symbol of the code.
    """
    place = image.symbols.get(name)
    if place is not None and place.address != entry:
        raise CodeObjectError(f"its code at 0x{entry:x} is not the function of its name")
    section = next((s for s in image.sections.values() if s.is_code and s.holds(entry, 4)), None)
    if section is None or entry % 4:
        raise CodeObjectError(f"at 0x{entry:x} there is no code")
    return _extent(image, section, entry, place.size if place is not None else 0)


def _extent(image: Image, section: ElfSection, start: int, stated: int) -> tuple[bytes, bool]:
    """The bytes of code, and whether a symbol states how many there are."""
    size = stated or _next_code(image, section, start) - start
    if size > _LARGEST_KERNEL:
        raise CodeObjectError(f"its function has {size} bytes")
    return section.part(start, size), stated > 0


def _next_code(image: Image, section: ElfSection, entry: int) -> int:
    """Where code ends of which nobody says it: at the next function or kernel, or with its section.

    Other symbols do not end it: assemblers keep the labels within a kernel as such.
    """
    end = section.address + len(section.content)
    place = bisect_right(image.code_starts, entry)
    return min([end, *image.code_starts[place : place + 1]])


def _section(image: Image, symbol: ElfSymbol) -> ElfSection:
    if symbol.section not in image.sections:
        raise CodeObjectError(f"`{symbol.name}` lies in no section that is loaded")
    return image.sections[symbol.section]
