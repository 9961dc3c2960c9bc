"""Typed buffers: elements in a format, which the descriptor or the instruction says."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.format import element_format
from mfmadsl.emulator.machine.wave import Waves
from tests.emulator.waves import put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)
UNORM, SNORM, USCALED, SSCALED, UINT, SINT, FLOAT = 0, 1, 2, 3, 4, 5, 7
IN_ORDER = 4 | 5 << 3 | 6 << 6 | 7 << 9


def with_elements(
    content: np.ndarray, data: int, kind: int, size: int | None = None, select: int = IN_ORDER
) -> Waves:
    """A wave whose s[4:7] describe the content, and whose v1 is the offset of a lane's element."""
    waves = wave()
    (segment,) = waves.memory.segments
    raw = np.ascontiguousarray(content).view(np.uint8).reshape(-1)
    waves.memory.content(segment)[: raw.size] = raw
    last = select | kind << 12 | data << 15
    words = [segment.address & 0xFFFFFFFF, segment.address >> 32, size or raw.size, last]
    put(waves, {f"s{4 + i}": np.uint32(word) for i, word in enumerate(words)})
    put(waves, {"v1": LANE * np.uint32(raw.size // 64)})
    return waves


BYTES = (np.arange(256) * 37 % 256).astype(np.uint8).reshape(64, 4)
HALVES = (np.arange(128) * 40503 % 65536).astype(np.uint16).reshape(64, 2)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (UNORM, (BYTES / 255).astype(np.float32)),
        (SNORM, np.maximum(BYTES.view(np.int8) / 127, -1).astype(np.float32)),
        (USCALED, BYTES.astype(np.float32)),
        (SSCALED, BYTES.view(np.int8).astype(np.float32)),
        (UINT, BYTES.astype(np.uint32)),
        (SINT, BYTES.view(np.int8).astype(np.int32)),
    ],
)
def test_four_bytes_are_loaded_as_their_format_says(kind: int, expected: np.ndarray) -> None:
    waves = with_elements(BYTES, 10, kind)
    run(waves, "buffer_load_format_xyzw v[8:11], v1, s[4:7], 0 offen")
    run(waves, f"tbuffer_load_format_xyzw v[12:15], v1, s[4:7], 0 format:{10 | kind << 4} offen")
    for i in range(4):
        assert (vector(waves, 8 + i, expected.dtype) == expected[:, i]).all()
        assert (vector(waves, 12 + i, expected.dtype) == expected[:, i]).all()


def test_what_a_format_lacks_is_zero_and_the_last_is_one() -> None:
    for kind, one in ((UINT, np.uint32(1)), (FLOAT, np.float32(1).view(np.uint32))):
        waves = with_elements(HALVES, 5, kind)
        run(waves, "buffer_load_format_xyzw v[8:11], v1, s[4:7], 0 offen")
        assert (vector(waves, 10) == 0).all()
        assert (vector(waves, 11) == one).all()


def test_the_descriptor_chooses_components() -> None:
    waves = with_elements(HALVES, 5, UINT, select=5 | 4 << 3 | 1 << 6 | 0 << 9)
    run(waves, "buffer_load_format_xyzw v[8:11], v1, s[4:7], 0 offen")
    expected = [HALVES[:, 1], HALVES[:, 0], 1, 0]
    assert all((vector(waves, 8 + i) == value).all() for i, value in enumerate(expected))


def test_ten_bits_each_and_two() -> None:
    words = (LANE * np.uint32(2654435761)).astype(np.uint32)
    waves = with_elements(words, 9, UINT)
    run(waves, "buffer_load_format_xyzw v[8:11], v1, s[4:7], 0 offen")
    for i, width in enumerate((10, 10, 10, 2)):
        assert (vector(waves, 8 + i) == words >> 10 * i & (1 << width) - 1).all()


def test_halves_lie_side_by_side_in_registers() -> None:
    waves = with_elements(BYTES, 10, UNORM)
    put(waves, {"v10": LANE + 0xABCD0000, "v11": LANE + 0xABCD0000})
    run(waves, "buffer_load_format_d16_xyzw v[8:9], v1, s[4:7], 0 offen")
    run(waves, "buffer_load_format_d16_x v10, v1, s[4:7], 0 offen")
    run(waves, "buffer_load_format_d16_hi_x v11, v1, s[4:7], 0 offen")
    bits = (BYTES / 255).astype(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32)
    assert (vector(waves, 8) == bits[:, 0] | bits[:, 1] << 16).all()
    assert (vector(waves, 9) == bits[:, 2] | bits[:, 3] << 16).all()
    assert (vector(waves, 10) == bits[:, 0] | 0xABCD0000).all()
    assert (vector(waves, 11) == LANE | bits[:, 0] << 16).all()


def test_elements_beyond_the_end_are_zeros_and_not_written() -> None:
    waves = with_elements(HALVES, 5, UINT, size=4 * 50)
    run(waves, "buffer_load_format_xy v[8:9], v1, s[4:7], 0 offen")
    assert (vector(waves, 8) == np.where(LANE < 50, HALVES[:, 0], 0)).all()
    put(waves, {"v8": LANE, "v9": LANE + 100})
    run(waves, "buffer_store_format_xy v[8:9], v1, s[4:7], 0 offen")
    stored = waves.memory.content(waves.memory.segments[0])[:256].view(np.uint16).reshape(64, 2)
    expected = np.stack([LANE, LANE + 100], axis=1)
    assert (stored == np.where(LANE[:, None] < 50, expected, HALVES)).all()


@pytest.mark.parametrize(
    ("data", "kind", "values", "stored"),
    [
        (10, UNORM, np.linspace(-0.5, 1.5, 256, dtype=np.float32).reshape(64, 4),
         lambda x: np.rint(np.clip(x, 0, 1).astype("f8") * 255).astype(np.uint8)),
        (12, SNORM, np.linspace(-2, 2, 256, dtype=np.float32).reshape(64, 4),
         lambda x: np.rint(np.clip(x, -1, 1).astype("f8") * 32767).astype(np.int16)),
        (12, FLOAT, np.linspace(-9, 9, 256, dtype=np.float32).reshape(64, 4),
         lambda x: x.astype(np.float16)),
        (14, SINT, np.arange(256, dtype=np.int32).reshape(64, 4) - 99, lambda x: x),
    ],
)  # fmt: skip
def test_registers_are_stored_as_the_format_says(data, kind, values, stored) -> None:  # type: ignore[no-untyped-def]
    expected = stored(values)
    waves = with_elements(np.zeros_like(expected), data, kind)
    put(waves, {f"v{8 + i}": np.ascontiguousarray(values[:, i]) for i in range(4)})
    run(waves, f"tbuffer_store_format_xyzw v[8:11], v1, s[4:7], 0 format:{data | kind << 4} offen")
    content = waves.memory.content(waves.memory.segments[0])[: expected.nbytes]
    assert (content.view(expected.dtype).reshape(64, 4) == expected).all()


def test_the_upper_half_of_a_register_is_stored() -> None:
    waves = with_elements(np.zeros(64, np.uint16), 2, UINT)
    put(waves, {"v8": LANE << 16 | 7})
    run(waves, "buffer_store_format_d16_hi_x v8, v1, s[4:7], 0 offen")
    stored = waves.memory.content(waves.memory.segments[0])[:128].view(np.uint16)
    assert (stored == LANE).all()


def test_formats_by_the_names_that_llvm_gives_them() -> None:
    waves = with_elements(HALVES, 1, UNORM)
    name = "[BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_UINT]"
    run(waves, f"tbuffer_load_format_xy v[8:9], v1, s[4:7], 0 format:{name} offen")
    assert (vector(waves, 9) == HALVES[:, 1]).all()


@pytest.mark.parametrize(
    ("code", "data", "kind", "message"),
    [
        ("buffer_load_format_x v8, v1, s[4:7], 0 offen", 6, FLOAT, "the data format 6 with"),
        ("buffer_load_format_x v8, v1, s[4:7], 0 offen", 0, UINT, "the data format 0 with"),
        ("buffer_load_format_x v8, v1, s[4:7], 0 offen", 4, UNORM, "there is no format 32 UNORM"),
        ("buffer_load_format_x v8, v1, s[4:7], 0 offen", 1, FLOAT, "there is no format 8 FLOAT"),
        ("buffer_store_format_x v1, v1, s[4:7], 0 offen", 10, UINT, "stores 1 components to a for"),
        ("buffer_store_format_x v2, v1, s[4:7], 0 offen", 1, UINT, "a number that 8 bits do not"),
        ("buffer_store_format_x v2, v1, s[4:7], 0 offen", 1, SSCALED, "stores of SSCALED are not"),
        ("tbuffer_load_format_x v8, v1, s[4:7], 0 format:999 offen", 1, UINT, "no format that is"),
    ],
)
def test_what_is_not_known_of_a_format_is_refused(
    code: str, data: int, kind: int, message: str
) -> None:
    waves = with_elements(BYTES, data, kind)
    put(waves, {"v2": LANE + 250})
    with pytest.raises(EmulationError, match=message):
        run(waves, code)


def test_an_element_has_as_many_bytes_as_its_components() -> None:
    sizes = [element_format(data, UINT).size for data in (1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14)]
    assert sizes == [1, 2, 2, 4, 4, 4, 4, 8, 8, 12, 16]
