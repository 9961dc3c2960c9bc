"""Reading files, `use`, and the library that ships with the package."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from mfmadsl.error import ArgumentError
from mfmadsl.language import (
    LanguageError,
    Source,
    SpecFileError,
    check_source,
    find,
    library,
    library_files,
    load,
    read_source,
)
from tests.language.entries import HALF, spoiled


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_every_file_of_the_library_is_correct() -> None:
    assert len(library_files()) > 1
    assert len(library()) == sum(len(load(path)) for path in library_files())


def test_an_intrinsic_is_found_by_its_name_and_by_its_aliases() -> None:
    expected = library()["mfma_f32_16x16x16_f16"]
    assert find("mfma_f32_16x16x16_f16") is expected
    assert find("v_mfma_f32_16x16x16f16") is expected
    assert find("v_mfma_f32_32x32x2bf16") is library()["mfma_f32_32x32x2_2b_bf16"]
    with pytest.raises(ValueError, match="did you mean `mfma_f32_16x16x16_f16`"):
        find("mfma_f32_16x16x16_f61")


def test_one_mnemonic_may_mean_other_numbers_on_another_chip() -> None:
    name = "mfma_f32_16x16x32_fp8_fp8"
    assert find(name).a.type.name == find(name, "gfx942").a.type.name == "float8_e4m3fnuz"
    assert find(name, "gfx950").a.type.name == "float8_e4m3fn"
    assert find("mfma_scale_f32_32x32x64_f8f6f4").name.endswith("_fp8_fp8")


def test_a_file_uses_layouts_of_its_own_folder_before_the_librarys(tmp_path: Path) -> None:
    write(tmp_path, "own.mfma", "layout pairs(x, k) { lane = x + X * (k / 4) register = k % 4 }")
    text = spoiled("use layouts", "use layouts use own")
    path = write(tmp_path, "half.mfma", text.replace("operand(i, k, pack=4)", "pairs(i, k)"))
    (intrinsic,) = load(path)
    assert intrinsic.a.layout == find("mfma_f32_16x16x16_f16").a.layout


def test_files_that_use_each_other_in_a_circle(tmp_path: Path) -> None:
    write(tmp_path, "a.mfma", "use b")
    write(tmp_path, "b.mfma", "use a")
    with pytest.raises(LanguageError, match=r"in a circle: a\.mfma -> b\.mfma -> a\.mfma"):
        load(tmp_path / "a.mfma")


def test_a_mistake_in_a_used_file_is_shown_in_that_file(tmp_path: Path) -> None:
    write(tmp_path, "own.mfma", "layout l(")
    with pytest.raises(LanguageError, match=r"own\.mfma:1:9"):
        load(write(tmp_path, "half.mfma", "use own"))


@pytest.mark.parametrize("twice", [HALF + HALF, HALF + HALF.replace("e mfma", "e v_mfma")])
def test_a_name_or_an_alias_that_is_defined_twice(tmp_path: Path, twice: str) -> None:
    with pytest.raises(LanguageError, match="is defined twice") as error:
        load(write(tmp_path, "half.mfma", twice))
    assert "the first one is in line" in str(error.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SpecFileError, match=r"is a directory, not a \.mfma file"):
        load(tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecFileError, match=r"none\.mfma: cannot be read: No such file"):
        load(tmp_path / "none.mfma")


def test_a_file_that_cannot_be_read() -> None:
    # Permissions do not keep root out, but nobody reads address 0 of a process.
    with pytest.raises(SpecFileError, match="cannot be read: Input/output error"):
        load(Path("/proc/self/mem"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.mfma"
    path.write_bytes(b"use layouts\n\xff")
    with pytest.raises(SpecFileError, match=r"is not UTF-8 text \(byte 12 is 0xff\)"):
        load(path)


@pytest.mark.parametrize("text", [True, False])
def test_ten_megabytes_of_noise_are_refused_before_they_are_read(
    tmp_path: Path, text: bool
) -> None:
    path = tmp_path / "noise.mfma"
    noise = random.Random(1).randbytes(10_000_000)
    path.write_bytes(noise.hex().encode()[:10_000_000] if text else noise)
    start = time.perf_counter()
    with pytest.raises(SpecFileError, match="is larger than 1024 KiB"):
        load(path)
    assert time.perf_counter() - start < 1  # the one promise about time that users can see


def test_noise_just_below_the_limit_is_an_error_too(tmp_path: Path) -> None:
    path = tmp_path / "noise.mfma"
    path.write_text(random.Random(1).randbytes(500_000).hex())
    with pytest.raises(LanguageError, match=r"the name has \d+ letters|too large|unexpected"):
        load(path)


def chain(folder: Path, length: int, uses: int) -> Path:
    """Files that use the next one, several times each; the first of them."""
    for number in range(length):
        (folder / f"file{number}.mfma").write_text(f"use file{number + 1}\n" * uses)
    (folder / f"file{length}.mfma").write_text("layout last(x, k) { lane = x register = k }\n")
    return folder / "file0.mfma"


def test_a_file_is_read_once_however_often_it_is_used(tmp_path: Path) -> None:
    read: list[Path] = []

    def counted(path: Path) -> Source:
        read.append(path)
        return read_source(path)

    first = chain(tmp_path, 6, 3)
    assert check_source(read_source(first), first, read=counted).diagnostics == ()
    assert len(read) == 6  # read each time, the last one alone would be read 729 times


def test_a_mistake_in_a_file_that_is_used_twice_is_told_once(tmp_path: Path) -> None:
    first = chain(tmp_path, 3, 2)
    (tmp_path / "file3.mfma").write_text("layout last(x, k) { lane = z register = k }\n")
    with pytest.raises(LanguageError) as error:
        load(first)
    assert [d.code for d in error.value.diagnostics] == ["unknown-name"]


def test_files_that_use_files_without_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match="a file that uses a file, 32 times over"):
        load(chain(tmp_path, 2000, 1))


def test_a_file_full_of_mistakes_is_left_alone_after_a_hundred(tmp_path: Path) -> None:
    path = tmp_path / "faulty.mfma"
    faulty = (f"layout l{i}(x, k) {{ lane = z register = k }}\n" for i in range(1500))
    path.write_text("".join(faulty))
    with pytest.raises(LanguageError) as error:
        load(path)
    *told, last = error.value.diagnostics
    assert len(told) == 100
    assert last.message == "too many mistakes: 1400 items from here on are not checked"
    assert last.span.text == "l100"


def test_so_is_a_file_that_uses_what_there_is_not(tmp_path: Path) -> None:
    path = tmp_path / "faulty.mfma"
    path.write_text("".join(f"use nowhere{i}\n" for i in range(1500)))
    with pytest.raises(LanguageError) as error:
        load(path)
    assert [d.code for d in error.value.diagnostics] == ["use"] * 100 + ["stopped"]


def test_entries_that_are_wrong_count_like_all_else(tmp_path: Path) -> None:
    path = tmp_path / "faulty.mfma"
    entry = HALF.partition("intrinsic")[2].partition("alias")[0].partition("{")[2]
    entries = (f"intrinsic e{i} {{{entry}}}\n" for i in range(150))
    path.write_text("".join(entries).replace("gfx942", "gfx924"))
    with pytest.raises(LanguageError) as error:
        load(path)
    assert error.value.diagnostics[-1].code == "stopped"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "path: is a path, not None"),
        ((5,), "path: is a path, not 5"),
        (("",), "path: '' is no path"),
        (("a\0b",), "path: 'a\\x00b' is no path"),
        (("a.mfma", "folder"), "search: is a list of folders, not 'folder'"),
        (("a.mfma", [3]), "search: is a path, not 3"),
    ],
)
def test_what_is_no_path_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        load(*arguments)


def test_a_path_may_be_text(tmp_path: Path) -> None:
    (tmp_path / "half.mfma").write_text(HALF)
    (found,) = load(str(tmp_path / "half.mfma"), [str(tmp_path)])
    assert found.name == "mfma_f32_16x16x16_f16"
    with pytest.raises(SpecFileError, match=r"x\.mfma: cannot be read: No such file"):
        load("x.mfma")


def test_finding_by_what_is_no_name_and_no_chip() -> None:
    with pytest.raises(ArgumentError, match="name: is an intrinsic's name, not None"):
        find(None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"arch: unknown chip 'gfx1'.*gfx942"):
        find("mfma_f32_16x16x16_f16", "gfx1")
    with pytest.raises(ArgumentError, match=r"no intrinsic is called `x{60}\.\.\.`"):
        find("x" * 10**6)
