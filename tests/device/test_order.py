"""What comes before what, where programs cannot show it."""

from __future__ import annotations

import pytest

from mfmadsl.device.notes import Note, NoteKind, Region
from mfmadsl.device.order import NOT_BLOCKING, StreamOrder, key_of

NOWHERE = Region(0, 0, 0, 0, 0, 0)
ONE, TWO, FREE, ALL = 0x10, 0x20, 0x30, 0


class Told:
    """An order with two streams that block, and one that does not."""

    def __init__(self) -> None:
        self.order = StreamOrder()
        self(NoteKind.STREAM_MADE, ONE)
        self(NoteKind.STREAM_MADE, TWO)
        self(NoteKind.STREAM_MADE, FREE, NOT_BLOCKING)

    def __call__(self, kind: NoteKind, stream: int = 0, other: int = 0, device: int = 0) -> None:
        self.order.happened(Note(kind, device, stream, other, NOWHERE, NOWHERE))

    def works(self, stream: int, device: int = 0) -> tuple[int, int]:
        number, before = self.order.works(key_of(device, stream))
        return number, before


@pytest.mark.parametrize(
    ("first", "then", "ordered"),
    [(ONE, TWO, 0), (ONE, ALL, 1), (ALL, ONE, 1), (FREE, ALL, 0), (ALL, FREE, 0), (ONE, ONE, 1)],
)
def test_the_stream_of_all_waits_for_those_that_block(first: int, then: int, ordered: int) -> None:
    told = Told()
    assert told.works(first) == (0, 0)
    assert told.works(then) == (1, ordered)


def test_streams_of_two_devices_do_not_wait_for_each_other() -> None:
    told = Told()
    told.works(ALL)
    assert told.works(ALL, device=1) == (1, 0)
    told(NoteKind.HOST_AWAITED_DEVICE, device=1)
    assert told.order.host == 0b10
    told(NoteKind.HOST_AWAITED_DEVICE, device=0)
    assert told.order.host == 0b11


def test_work_of_a_stream_that_is_gone_is_waited_for_with_the_device() -> None:
    told = Told()
    told.works(FREE)
    told(NoteKind.STREAM_GONE, FREE)
    told(NoteKind.STREAM_MADE, FREE)  # at the same address
    assert told.works(FREE) == (1, 0)
    told(NoteKind.HOST_AWAITED_DEVICE)
    assert told.order.host == 0b11


def test_an_event_has_what_its_stream_had_when_it_was_recorded() -> None:
    told = Told()
    told.works(ONE)
    told(NoteKind.RECORDED, ONE, 7)
    told.works(ONE)
    told(NoteKind.AWAITED, TWO, 7)
    assert told.works(TWO) == (2, 0b01)
    told(NoteKind.EVENT_GONE, 0, 7)
    told(NoteKind.AWAITED, FREE, 7)
    assert told.works(FREE) == (3, 0)


def test_a_graph_within_a_graph_is_done_before_what_comes_after_its_node() -> None:
    told = Told()
    told.works(ONE)
    told(NoteKind.GRAPH_BEGINS, ONE)
    told(NoteKind.NODE_BEGINS, ONE, 1)
    told(NoteKind.GRAPH_BEGINS, ONE)
    for node in (11, 12):
        told(NoteKind.NODE_BEGINS, ONE, node)
        assert told.works(ONE)[1] == 0b1
    told(NoteKind.GRAPH_ENDS, ONE)
    told(NoteKind.NODE_BEGINS, ONE, 2)
    assert told.works(ONE)[1] == 0b1
    told(NoteKind.NODE_BEGINS, ONE, 3)
    told(NoteKind.NODE_AFTER, ONE, 1)
    assert told.works(ONE)[1] == 0b111
    told(NoteKind.GRAPH_ENDS, ONE)
    assert told.works(ONE)[1] == 0b11111


def test_what_is_forgotten_is_no_longer_in_any_mask() -> None:
    told = Told()
    told.works(ONE)
    told.works(TWO)
    told.order.forget(0b10)
    assert told.works(ONE) == (2, 0)
    told.order.forget(0)
    assert told.works(TWO) == (0, 0)
