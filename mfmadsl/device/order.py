"""What comes before what, of the work that streams do: HIP's rules.

Each piece of work has a bit, and each place from which work is asked for a mask of those that are
done before: streams, events, the host, nodes of a graph. What the host has waited for comes before
all that follows, and is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mfmadsl.device.notes import Note, NoteKind

NOT_BLOCKING = 1
"""hipStreamNonBlocking: such a stream and the one of all do not wait for each other."""

_OF_ALL = (0, 1)
"""NULL and hipStreamLegacy."""

Key = tuple[int, int]
"""A stream: its device, and its handle; 0 for the one of all."""


def key_of(device: int, stream: int) -> Key:
    """What names a stream."""
    return device, 0 if stream in _OF_ALL else stream


@dataclass
class _Graph:
    """A graph that runs: what came before it, and behind what the nodes stand that have run."""

    start: int
    done: dict[int, int] = field(default_factory=dict)
    node: int | None = None


class StreamOrder:
    """What has happened, as masks of pieces of work, which count from 0."""

    def __init__(self) -> None:
        self._streams: dict[Key, int] = {}
        self._free: set[Key] = set()  # those that do not block
        self._events: dict[int, int] = {}
        self._left: dict[int, int] = {}  # of streams that are gone, by device
        self._graphs: dict[Key, list[_Graph]] = {}
        self.host = 0
        self._count = 0

    def works(self, key: Key) -> tuple[int, int]:
        """A stream does a piece of work: its number, and the mask of what comes before."""
        before = self._before(key)
        number, self._count = self._count, self._count + 1
        self._streams[key] = before | 1 << number
        return number, before

    def _before(self, key: Key) -> int:
        before = self.host | self._streams.get(key, 0)
        if self._graphs.get(key) or key in self._free:
            return before  # the others were asked when the graph began
        device, stream = key
        return before | (
            self._blocking(device) if not stream else self._streams.get((device, 0), 0)
        )

    def _blocking(self, device: int) -> int:
        """All that is done on streams that the one of all waits for."""
        return _joined(
            m for k, m in self._streams.items() if k[0] == device and k not in self._free
        )

    def happened(self, note: Note) -> None:
        """Learn from what is told."""
        key, other = key_of(note.device, note.stream), note.other
        match note.kind:
            case NoteKind.STREAM_MADE:
                self._streams.pop(key, None)
                self._free.discard(key)
                if other & NOT_BLOCKING:
                    self._free.add(key)
            case NoteKind.STREAM_GONE:
                self._left[note.device] = self._left.get(note.device, 0) | self._before(key)
                self._streams.pop(key, None)
            case NoteKind.RECORDED:
                self._events[other] = self._before(key)
            case NoteKind.AWAITED:
                self._streams[key] = self._before(key) | self._events.get(other, 0)
            case NoteKind.EVENT_GONE:
                self._events.pop(other, None)
            case NoteKind.HOST_AWAITED_EVENT:
                self.host |= self._events.get(other, 0)
            case NoteKind.HOST_AWAITED_STREAM:
                self.host |= self._before(key)
            case NoteKind.HOST_AWAITED_DEVICE:
                self.host |= self.all_done(note.device)
            case NoteKind.EXCHANGED:
                self.host |= self.all_done()
            case NoteKind.GRAPH_BEGINS | NoteKind.NODE_BEGINS | NoteKind.NODE_AFTER:
                self._in_graph(note, key)
            case NoteKind.GRAPH_ENDS:
                self._end_node(key)
                graph = self._graphs[key].pop()
                self._streams[key] = graph.start | _joined(graph.done.values())

    def _in_graph(self, note: Note, key: Key) -> None:
        graphs = self._graphs.setdefault(key, [])
        if note.kind is NoteKind.GRAPH_BEGINS:
            graphs.append(_Graph(self._before(key)))
        elif note.kind is NoteKind.NODE_BEGINS:
            self._end_node(key)
            graphs[-1].node = note.other
            self._streams[key] = graphs[-1].start
        else:
            self._streams[key] |= graphs[-1].done.get(note.other, 0)

    def _end_node(self, key: Key) -> None:
        graph = self._graphs[key][-1]
        if graph.node is not None:
            graph.done[graph.node] = self._streams[key]

    def all_done(self, device: int | None = None) -> int:
        """All that streams have done on a device, or on all of them."""
        streams = _joined(m for k, m in self._streams.items() if device in (None, k[0]))
        return streams | _joined(m for d, m in self._left.items() if device in (None, d))

    def forget(self, kept: int) -> None:
        """Of what has been done only a mask is asked for from now on."""
        if kept:
            self._streams = {key: mask & kept for key, mask in self._streams.items()}
            self._events = {event: mask & kept for event, mask in self._events.items()}
            self._left = {device: mask & kept for device, mask in self._left.items()}
            self.host &= kept
        elif not any(self._graphs.values()):
            self._events.clear()
            self._left.clear()
            self._streams.clear()
            self.host = self._count = 0


def _joined(masks: Iterable[int]) -> int:
    joined = 0
    for mask in masks:
        joined |= mask
    return joined
