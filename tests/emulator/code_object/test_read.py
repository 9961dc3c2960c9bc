"""Code objects: what is read of them, and which are refused with a word on why."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from io import BytesIO

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.backend.gpu.linker import link
from mfmadsl.emulator import emulate
from mfmadsl.emulator.code_object import (
    CodeObject,
    CodeObjectError,
    code_object_size,
    read_code_object,
)
from mfmadsl.emulator.code_object.image import read_image
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.emulator.text.data import CODE
from mfmadsl.error import ArgumentError
from mfmadsl.model import ARCHITECTURES
from tests.emulator.code_object.objects import code_object, instructions, object_file, two_kernels

CHIPS = list(ARCHITECTURES)


def bundle(*entries: tuple[str, bytes]) -> bytes:
    """As `clang-offload-bundler` lays it out, each entry at a multiple of 4096."""
    table = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    content = b""
    for name, data in entries:
        table += struct.pack("<QQQ", 4096 + len(content), len(data), len(name)) + name.encode()
        content += data + bytes(-len(data) % 4096)
    return table.ljust(4096, b"\0") + content


def read_bytes(memory: bytes, start: int, count: int) -> bytes:
    return memory[start : start + count]


def changed(data: bytes, place: int, new: bytes) -> bytes:
    return data[:place] + new + data[place + len(new) :]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("version", [4, 5, 6])
def test_chip_version_and_kernels_are_read(arch: str, version: int) -> None:
    found = read_code_object(code_object(arch, version))
    assert (found.arch, found.version) == (arch, version)
    assert list(found.kernels) == ["double", "other"]
    assert found.kernels["other"].descriptor.directives["group_segment_fixed_size"] == 1024


@pytest.mark.parametrize("arch", CHIPS)
def test_the_text_is_that_which_was_assembled(arch: str) -> None:
    """The program of either: instructions, where branches lead, arguments and directives."""
    text = read_code_object(code_object(arch)).assembly("double")
    ours, theirs = parse_assembly(text, "double"), parse_assembly(two_kernels(arch), "double")
    assert instructions(text) == instructions(two_kernels(arch))[: len(instructions(text))]
    led_to = sorted(place for name, place in ours.labels.items() if name != ".Ldouble_end")
    assert led_to == sorted(theirs.labels[name] for name in ("double", ".Lend", ".Lagain"))
    assert (ours.arch, ours.arguments, ours.registers) == (
        theirs.arch, theirs.arguments, theirs.registers,
    )  # fmt: skip
    for name, value in theirs.directives.items():
        # Registers are those given out, and the assembler of the tests has xnack off.
        if name not in ("next_free_vgpr", "next_free_sgpr", "reserve_xnack_mask"):
            assert ours.directive(name) == value, name
    granule = ARCHITECTURES[arch].register_granule
    assert ours.directive("next_free_vgpr") == granule


@pytest.mark.parametrize(("arch", "version"), [*((arch, 5) for arch in CHIPS), ("gfx90a", 4)])
def test_a_text_assembled_again_is_the_same_code(arch: str, version: int) -> None:
    """LLVM makes of it the instructions and the descriptor that it was read from."""
    found = read_code_object(code_object(arch, version))
    for name, kernel in found.kernels.items():
        linked = link(object_file(found.assembly(name), arch))
        assert linked is not None
        again = read_code_object(linked).kernels[name]
        assert again.code == kernel.code
        assert again.descriptor.directives == kernel.descriptor.directives


@pytest.mark.parametrize("arch", CHIPS)
def test_it_runs(arch: str) -> None:
    x = np.arange(64, dtype=np.float32)
    emulate(read_code_object(code_object(arch)).assembly("double"), [x], (1,), (64,))
    lane = np.arange(64, dtype=np.float32)
    assert (x == np.where(lane < 48, lane * 8 + np.float32(np.pi), lane)).all()


def test_what_is_read_once_is_kept() -> None:
    data = code_object()
    assert read_code_object(data) is read_code_object(bytes(bytearray(data)))


@pytest.mark.parametrize(
    ("flags", "features", "target"),
    [
        (0x000, {}, "gfx90a"),
        (0x500, {}, "gfx90a"),
        (0xB00, {"sramecc": False, "xnack": True}, "gfx90a:sramecc-:xnack+"),
        (0xE00, {"sramecc": True, "xnack": False}, "gfx90a:sramecc+:xnack-"),
    ],
)
def test_features_are_those_that_are_set(
    flags: int, features: dict[str, bool], target: str
) -> None:
    found = read_code_object(changed(code_object("gfx90a"), 48, struct.pack("<I", flags | 0x3F)))
    assert (found.features, found.target) == (features, target)
    assert parse_assembly(found.assembly("double")).directive("reserve_xnack_mask") == int(
        features.get("xnack") is not False
    )


@pytest.mark.parametrize(
    ("flags", "target"),
    [
        (0x000, "gfx90a"),
        (0x100, "gfx90a:xnack+"),
        (0x200, "gfx90a:sramecc+"),
        (0x300, "gfx90a:sramecc+:xnack+"),
    ],
)
def test_features_of_version_3_are_on_by_a_bit_each(flags: int, target: str) -> None:
    third = changed(code_object("gfx90a", 4), 8, b"\1")
    found = read_code_object(changed(third, 48, struct.pack("<I", flags | 0x3F)))
    assert (found.version, found.target) == (3, target)


def test_of_a_bundle_the_chip_is_chosen() -> None:
    both = bundle(
        ("host-x86_64-unknown-linux--", b""),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+", b"no ELF file"),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", code_object("gfx90a")),
        ("hip-amdgcn-amd-amdhsa--gfx942", code_object("gfx942")),
    )
    assert read_code_object(both, "gfx90a").arch == "gfx90a"
    assert read_code_object(both, "gfx942").arch == "gfx942"
    with pytest.raises(CodeObjectError, match="none for gfx950"):
        read_code_object(both, "gfx950")
    with pytest.raises(CodeObjectError, match="say for which chip"):
        read_code_object(both)
    only = bundle(("hip-amdgcn-amd-amdhsa--gfx942", code_object("gfx942")))
    assert read_code_object(only).arch == "gfx942"


def test_its_size_is_found_where_only_its_address_is_known() -> None:
    for data in (code_object(), bundle(("hip-amdgcn-amd-amdhsa--gfx942", code_object()))):
        memory = data + bytes(range(256))
        size = code_object_size(partial(read_bytes, memory))
        assert read_code_object(memory[:size]) == read_code_object(data)
        assert size <= len(data)
    with pytest.raises(CodeObjectError, match="neither an ELF file nor a bundle"):
        code_object_size(lambda start, count: bytes(count))


def linked_to_themselves(elf: bytes) -> bytes:
    """Each section says that it belongs to itself."""
    start, count = struct.unpack_from("<Q", elf, 40)[0], struct.unpack_from("<H", elf, 60)[0]
    for section in range(count):
        elf = changed(elf, start + 64 * section + 40, struct.pack("<I", section))
    return elf


SPOILED: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda _: b"", "neither an ELF file nor a bundle"),
    (lambda _: b"hello", "neither an ELF file nor a bundle"),
    (lambda _: b"CCOB" + bytes(64), "compressed: compile with --no-offload-compress, or take"),
    (lambda _: bundle(), "no code object for an AMD GPU"),
    (lambda _: bundle()[:26], "ends within its table"),
    (lambda elf: bundle(("hip-amdgcn-amd-amdhsa--gfx942", elf))[:5000], "lies beyond its end"),
    (lambda elf: elf[:40], "ends within the header"),
    (lambda elf: changed(elf, 4, b"\1"), "not of 64 bits"),
    (lambda elf: changed(elf, 18, b"\x3e\0"), "for machine 62, not for AMD GPUs"),
    (lambda elf: changed(elf, 8, b"\0"), "for ABI 64.0"),
    (lambda elf: changed(elf, 16, b"\1"), "link it, with `ld.lld -shared`"),
    (lambda elf: changed(elf, 48, b"\x2f").replace(b"--gfx942", b"--gfx906"), "no matrix cores"),
    (lambda elf: changed(elf, 48, b"\xee").replace(b"amdgcn-amd", b"other--amd"), "number 0xee"),
    (lambda elf: elf[:-100], "broken ELF file"),
    (linked_to_themselves, "broken ELF file"),
    (lambda elf: elf.replace(b".symbol\xa9double.kd", b".symbol\xa9dobule.kd"), "dobule.kd"),
    (lambda elf: elf.replace(b"\xa9double.kd", b"\xa9doub e.kd"), "doub e.kd"),
    (lambda elf: elf.replace(b"\xaeamdhsa.kernels", b"\xaeamdhsa.kernals"), "as LLVM does"),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILED)
def test_what_is_none_or_broken_is_refused(spoil: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        read_code_object(spoil(code_object()))


@pytest.mark.parametrize(
    ("place", "bit", "message"),
    [
        (12, 1, "bits of it that have to be 0 are not"),
        (45, 1, "0x100 of COMPUTE_PGM_RSRC3"),
        (51, 2, "0x2000000 of COMPUTE_PGM_RSRC1"),
        (57, 4, "0x400 of user registers"),
        (52, 8, "it has 6 scalar registers for the user, but values for 2"),
        (44, 63, "its accumulation registers begin at 256, but it has 40"),
    ],
)
def test_descriptors_that_contradict_themselves_are_refused(
    place: int, bit: int, message: str
) -> None:
    elf = code_object()
    content = read_code_object(elf).kernels["other"].descriptor.content
    start = elf.index(content)
    spoiled = changed(elf, start + place, bytes([elf[start + place] ^ bit]))
    with pytest.raises(CodeObjectError, match=f"kernel 'other': its descriptor .*{message}"):
        read_code_object(spoiled)


def test_arguments_are_checked() -> None:
    with pytest.raises(CodeObjectError, match="it is for gfx942, not for gfx90a"):
        read_code_object(code_object(), "gfx90a")
    with pytest.raises(ArgumentError, match="unknown chip 'mi300'"):
        read_code_object(code_object(), "mi300")
    with pytest.raises(ArgumentError, match="the bytes of a code object"):
        read_code_object("text")  # type: ignore[arg-type]
    with pytest.raises(CodeObjectError, match="there is no kernel 'no', but: double, other"):
        read_code_object(code_object()).assembly("no")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("s_call_b64 s[4:5], double", "jumps out of the kernel"),
        ("exp mrt0 v0, v0, v0, v0", r"byte 0 of the code, .*: gfx908 has no such instruction"),
        ("s_branch double", "jumps out of the kernel"),
    ],
)
def test_code_that_is_no_text_is_refused_kernel_by_kernel(code: str, message: str) -> None:
    found = read_code_object(code_object("gfx908", other=code))
    assert "s_load_dwordx2" in found.assembly("double")
    with pytest.raises(CodeObjectError, match=f"kernel `other`: .*{message}"):
        found.assembly("other")


def data_of(directives: str) -> tuple[dict[str, bytes], dict[str, int]]:
    """Sections that directives add, as they are loaded, and where symbols lie."""
    linked = link(object_file(two_kernels("gfx942") + directives, "gfx942"))
    assert linked is not None
    sections = {each.name: each.content for each in read_code_object(linked).sections}
    return sections, {name: s.address for name, s in read_image(linked).symbols.items()}


def test_addresses_in_data_are_written_as_a_loader_does() -> None:
    sections, places = data_of(
        "\t.data\n\t.globl here\nhere:\n\t.quad double+8, 5, here+16, .Lown+4, nowhere\n"
        "\t.weak nowhere\n.Lown:\n\t.quad 6\n"
    )
    own = places["here"] + 40
    addresses = (places["double"] + 8, -CODE + 5, places["here"] + 16, own + 4, -CODE, -CODE + 6)
    assert sections[".data"] == b"".join((CODE + x).to_bytes(8, "little") for x in addresses)


def test_variables_without_values_are_zeros() -> None:
    sections, _ = data_of('\t.section .bss,"aw",@nobits\n\t.zero 300\n')
    assert sections[".bss"] == bytes(300)


def test_addresses_that_no_loader_writes_are_refused() -> None:
    text = two_kernels("gfx942") + "\t.data\n\t.globl here\nhere:\n\t.quad double\n"
    linked = link(object_file(text, "gfx942"))
    assert linked is not None
    elf = ELFFile(BytesIO(linked))
    place = elf.get_section_by_name(".rela.dyn")["sh_offset"]
    other_kind = bytearray(linked)
    other_kind[place + 8 : place + 12] = (6).to_bytes(4, "little")
    with pytest.raises(CodeObjectError, match="relocations of kind 6 are none that a loader knows"):
        read_code_object(bytes(other_kind))
    in_code = bytearray(linked)
    in_code[place : place + 8] = elf.get_section_by_name(".text")["sh_addr"].to_bytes(8, "little")
    with pytest.raises(CodeObjectError, match=r"is to be written to 0x\w+, where there is no data"):
        read_code_object(bytes(in_code))


@st.composite
def mutilated(draw: st.DrawFn) -> bytes:
    """The code object with some bytes changed, cut out or put in; most near its tables."""
    data = bytearray(code_object())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, 2048) | st.integers(0, len(data)))
        piece = draw(st.binary(max_size=8))
        data[place : place + draw(st.sampled_from([len(piece), len(piece), 0, 64]))] = piece
    return bytes(data[: draw(st.just(len(data)) | st.integers(0, len(data)))])


@given(mutilated())
@settings(max_examples=300)
def test_a_spoiled_code_object_is_read_or_refused(data: bytes) -> None:
    try:
        found = read_code_object(data)
    except CodeObjectError:
        return
    assert isinstance(found, CodeObject)
    for name in found.kernels:
        try:
            parse_assembly(found.assembly(name), name)
        except (CodeObjectError, EmulationError):
            continue
