"""Reads of the LDS in which lanes exchange elements: rules, and what the emulator does."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from tvm.script import tirx as T  # noqa: N812

import mfmadsl
from mfmadsl.language import LanguageError, Source, library, load_entries, reads
from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.formatter import format_source
from mfmadsl.language.llvm import LLVM_READS
from mfmadsl.model import Read
from mfmadsl.report import json_schema
from tests.cli.command import run
from tests.emulator.instructions.test_lds import codes_in_lds
from tests.emulator.waves import run as execute
from tests.emulator.waves import vector

TEXT = """\
/// Gives each lane a column.
read ds_read_b64_tr_b16 {
  shape         bits=16 lanes=16 registers=4
  from_lane     (LANE * register + lane) / REGISTER
  from_element  lane % REGISTER
  call          "llvm.amdgcn.ds.read.tr16.b64.v4i16"
  chips         gfx950
}
"""
EVERY = pytest.mark.parametrize("read", reads().values(), ids=lambda r: r.name)


def mistakes(folder: Path, text: str) -> list[Diagnostic]:
    (folder / "x.mfma").write_text(text)
    with pytest.raises(LanguageError) as error:
        load_entries(folder / "x.mfma")
    return list(error.value.diagnostics)


def test_a_correct_entry_becomes_the_model(tmp_path: Path) -> None:
    (tmp_path / "x.mfma").write_text(TEXT)
    entries = load_entries(tmp_path / "x.mfma")
    assert (entries.intrinsics, entries.accelerators) == ([], [])
    (read,) = entries.reads
    assert (read.name, read.doc) == ("ds_read_b64_tr_b16", "Gives each lane a column.")
    assert (read.bits, read.lanes, read.registers, read.lane_bytes) == (16, 16, 4, 8)
    assert (read.call, read.chips) == ("llvm.amdgcn.ds.read.tr16.b64.v4i16", ("gfx950",))
    assert read.source[: 2 * 4] == (
        (0, 0), (4, 0), (8, 0), (12, 0),
        (0, 1), (4, 1), (8, 1), (12, 1),
    )  # fmt: skip
    assert read.origin(1, 2) == (8, 1)
    assert read.origin(33, 2) == (40, 1)


def test_the_library_has_those_of_gfx950_apart_from_its_intrinsics() -> None:
    assert list(reads()) == ["ds_read_b64_tr_b16", "ds_read_b64_tr_b8"]
    assert not set(reads()) & set(library())


@EVERY
def test_the_emulator_gives_each_lane_what_the_entry_says(read: Read) -> None:
    waves, codes = codes_in_lds(read.bits, read.lane_bytes // 4)
    execute(waves, f"{read.name} v[0:{read.lane_bytes // 4 - 1}], v8", read.chips[0])
    words = [vector(waves, i) for i in range(read.lane_bytes // 4)]
    found = np.ascontiguousarray(np.stack(words, axis=1)).view(f"u{read.bits // 8}")
    for lane, register in product(range(64), range(read.registers)):
        assert found[lane, register] == codes[read.origin(lane, register)]


@EVERY
def test_llvm_emits_it_on_its_chips_and_on_no_other(read: Read) -> None:
    dtype = {16: "int16x4", 8: "int32x2"}[read.bits]
    element, count = dtype.split("x")
    call, size = read.call, int(count)

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def main(source: T.handle, target: T.handle) -> None:
        a = T.match_buffer(source, (64, size), element)
        b = T.match_buffer(target, (64, size), element)
        lane = T.launch_thread("threadIdx.x", 64)
        staged = T.alloc_buffer((64, size), element, scope="shared")
        for i in T.serial(size):
            staged[lane, i] = a[lane, i]
        T.evaluate(T.tvm_storage_sync("shared"))
        b[lane, T.ramp(0, 1, size)] = T.call_llvm_intrin(
            dtype, T.llvm_lookup_intrinsic_id(call), T.address_of(staged[lane, 0])
        )

    kernel = mfmadsl.build(main, read.chips[0])
    assert f"\t{read.name} " in kernel.assembly
    codes = np.random.default_rng(1).integers(0, 256, (64, 8), np.uint8)
    found = np.zeros_like(codes)
    mfmadsl.emulate(kernel, [codes.view(element), found.view(element)])
    elements, got = codes.view(f"u{read.bits // 8}"), found.view(f"u{read.bits // 8}")
    for lane, register in product(range(64), range(read.registers)):
        assert got[lane, register] == elements[read.origin(lane, register)]
    with pytest.raises(mfmadsl.MfmadslError):
        mfmadsl.build(main, "gfx942")


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("bits=16", "bits=4", "shape", "bits=4 is none of 8, 16 or 32"),
        ("lanes=16", "lanes=12", "shape", "lanes=12 is none of 2, 4, 8, 16, 32 or 64"),
        ("registers=4", "registers=3", "shape", "registers=3 is none of 1, 2, 4, 8 or 16"),
        (" lanes=16", "", "shape", "the shape lacks lanes"),
        ("bits=16", "bit=16", "shape", "the shape of a read has no `bit`"),
        ("bits=16", "bits=16 bits=16", "shape", "shape `bits` is given twice"),
        ("registers=4", "registers=16", "shape", "a lane reads 16 elements of 16 bits: 256"),
        ("registers=4", "registers=8", "name", "the name says another shape than 128 bits of 16"),
        ("registers=4", "registers=8", "call", "gives 4 elements of 16 bits"),
        ("bits=16", "bits=32", "name", "the name says another shape than 128 bits of 32"),
        ("gfx950", "gfx942", "chip", 'LLVM has no "llvm.amdgcn.ds.read.tr16.b64.v4i16" on gfx942'),
        ("gfx950", "gfx951", "chip", "`gfx951` is no chip with matrix cores"),
        ("gfx950", "gfx950 gfx950", "chip", "chip `gfx950` is given twice"),
        ("tr16.b64.v4i16", "tr32.b64.v2i32", "call", "LLVM 22 has no read"),
        ("lane % REGISTER", "lane % 5", "register", "is element 4, but a lane reads 0 to 3"),
        ("+ lane) / REG", "+ lane + 4) / REG", "lane", "comes from lane 16, but a group has"),
        ("lane % REGISTER", "0", "collision", "are both element 0 of lane 0"),
        ("lane % REGISTER", "k % 4", "unknown-name", "`k` is neither `lane` nor `register`"),
        ("lane % REGISTER", "lane % 0", "arithmetic", "divides by zero"),
        ("  chips         gfx950\n", "", "field", "read `ds_read_b64_tr_b16` has no `chips`"),
        ("  from_lane  ", "  from_element  ", "field", "field `from_element` is given twice"),
        ("read ds_", "read Ds_", "name", "in lower case"),
    ],
)
def test_a_rule_that_is_broken(tmp_path: Path, old: str, new: str, code: str, message: str) -> None:
    assert TEXT.count(old) == 1
    found = mistakes(tmp_path, TEXT.replace(old, new))
    assert [d for d in found if d.code == code and message in d.message], found


def test_what_llvm_has_is_told_with_a_hint(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TEXT.replace("v4i16", "v4i61"))
    assert found.hint == 'did you mean "llvm.amdgcn.ds.read.tr16.b64.v4i16"?'
    assert all(call.startswith("llvm.amdgcn.ds.read.tr") for call in LLVM_READS)


def test_a_name_is_defined_once(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TEXT + TEXT)
    assert (found.code, found.message) == ("duplicate", "`ds_read_b64_tr_b16` is defined twice")


def test_it_has_a_canonical_form() -> None:
    assert format_source(Source("x", TEXT)) == TEXT
    messy = TEXT.replace("  shape         ", " shape ").replace(" / ", "/").replace("=", " = ")
    assert format_source(Source("x", messy)) == TEXT


def test_the_commands_on_files_take_it(tmp_path: Path) -> None:
    path = tmp_path / "x.mfma"
    path.write_text(TEXT)
    assert run("check", path).output == "1 read, no mistakes\n"
    assert run("fmt", "--check", path).exit_code == 0
    shown = run("show", "ds_read_b64_tr_b16", "--spec", path)
    assert shown.exit_code == 0
    assert shown.output == run("show", "ds_read_b64_tr_b16").output.replace(
        reads()["ds_read_b64_tr_b16"].doc, "Gives each lane a column."
    )
    assert "from    lane = register * 4 + lane // 4, element = lane % 4" in shown.output
    assert "\n 5 |  1:1  5:1  9:1 13:1\n" in shown.output
    told = json.loads(run("show", "ds_read_b64_tr_b16", "--format", "json").output)
    jsonschema.validate(told, json_schema())
    assert told["elements"][5 * 4 + 2] == {
        "lane": 5, "register": 2, "from_lane": 9, "element": 1,
    }  # fmt: skip
    compiled = run("compile", path, "-o", tmp_path / "out")
    said = "no module is made: reads and fragments are described only\n"
    assert (compiled.exit_code, compiled.output) == (0, said)
