"""Reading files, `use`, and the library that ships with the package."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from mfmadsl.language import LanguageError, SpecFileError, find, library, library_files, load
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
    with pytest.raises(LanguageError, match=r"is too large|unexpected"):
        load(path)
