"""Bytes that nobody has written since they were allocated."""

from __future__ import annotations

import numpy as np

from mfmadsl.device.unwritten import Unwritten

PAGE = 4096


def memory(pages: int = 8) -> tuple[np.ndarray, Unwritten]:
    content = np.zeros(pages * PAGE, np.uint8)
    return content, Unwritten(content)


def undefined(store: Unwritten, *places: int) -> list[bool]:
    return [bool(x) for x in store.load_narrow(np.array(places), 1)]


def test_what_is_allocated_is_undefined_until_it_is_written() -> None:
    _, store = memory()
    assert undefined(store, 0, PAGE) == [False, False]
    store.allocate(PAGE, 2 * PAGE)
    assert undefined(store, 0, PAGE, 3 * PAGE - 1, 3 * PAGE) == [False, True, True, False]
    store.define(PAGE + 10, PAGE)
    assert undefined(store, PAGE + 9, PAGE + 10, 2 * PAGE + 9, 2 * PAGE + 10) == [
        True, False, False, True,
    ]  # fmt: skip
    store.store_words(np.array([PAGE]), np.zeros((1, 1), np.uint32))
    assert undefined(store, PAGE + 3, PAGE + 4) == [False, True]
    store.allocate(PAGE, 2 * PAGE)
    assert undefined(store, PAGE, PAGE + 10) == [True, True]


def test_a_copy_has_what_its_source_has() -> None:
    _, store = memory()
    store.allocate(0, PAGE)
    store.allocate(2 * PAGE, 2 * PAGE)
    store.define(0, 8)
    store.copy(2 * PAGE + 100, 0, 16)
    assert undefined(store, 2 * PAGE + 99, 2 * PAGE + 100, 2 * PAGE + 108) == [True, False, True]
    store.copy(2 * PAGE, 6 * PAGE, 2 * PAGE)
    assert undefined(store, 2 * PAGE + 108, 4 * PAGE - 1) == [False, False]


def test_what_the_host_has_written_by_itself_is_defined() -> None:
    content, store = memory()
    store.allocate(0, 2 * PAGE)
    content[5] = 1
    assert undefined(store, 0, 5, PAGE) == [False, False, True]
