"""The ways in which an instruction can be written: encodings, modifiers and constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice, product

from tests.emulator.instructions.manual.modifiers import INLINE_FLOATS, Source


@dataclass(frozen=True)
class Form:
    """One way to write an instruction, and what it means.

    `lanes` says which lane each lane reads its first source from. `placed` is the lowest bit and
    the width of the result in its register, and whether the rest stays.
    """

    suffix: str = ""
    sources: tuple[Source, ...] = ()
    modifiers: str = ""
    lanes: Callable[[int], int] = lambda lane: lane
    placed: tuple[int, int, bool] | None = None
    clamp: bool = False
    factor: float = 1


def forms(count: int) -> Iterator[Form]:
    """The forms of an instruction of so many sources, whether there are such or not."""
    plain = Form(sources=(Source(),) * count)
    yield from [plain] * 5
    yield replace(plain, suffix="_e32")
    for i in range(count):
        changes = [Source(negate=True), Source(absolute=True), Source(negate=True, absolute=True)]
        changes += [Source(constant=text) for text in ("1", "64", "-16", *INLINE_FLOATS)]
        changes += [Source(constant=c) for c in ("0x40490fdb", "0xc0490fdb", "-100", "0x7f80")]
        changes += [Source(constant="0.5", negate=True), Source(constant="-4.0", absolute=True)]
        changes.append(Source(extend=True))
        for source in changes:
            yield _with(plain, i, source)
            yield _with(replace(plain, suffix="_e32"), i, source)
    for first in (Source(), Source(negate=True)):
        yield replace(_with(plain, 0, first), modifiers=" clamp", clamp=True)
    for text, factor in (("mul:2", 2.0), ("mul:4", 4.0), ("div:2", 0.5)):
        yield replace(plain, modifiers=f" {text}", factor=factor)
        yield replace(plain, modifiers=f" clamp {text}", factor=factor, clamp=True)
    yield from _op_sel(plain)
    yield from _sub_words(plain)
    yield from _lane_patterns(plain)


def _with(form: Form, place: int, source: Source) -> Form:
    return replace(form, sources=(*form.sources[:place], source, *form.sources[place + 1 :]))


def _op_sel(plain: Form) -> Iterator[Form]:
    count = len(plain.sources)
    for chosen in [*range(count + 1), None]:
        flags = [int(i == chosen or chosen is None) for i in range(count + 1)]
        selected = tuple(
            replace(s, selection=(16, 16) if flag else None)
            for s, flag in zip(plain.sources, flags, strict=False)
        )
        text = ",".join(map(str, flags))
        placed = (16, 16, True) if flags[-1] else None
        yield replace(plain, sources=selected, modifiers=f" op_sel:[{text}]", placed=placed)


def _sub_words(plain: Form) -> Iterator[Form]:
    parts = {"BYTE_0": (0, 8), "BYTE_3": (24, 8), "WORD_1": (16, 16), "DWORD": (0, 32)}
    changes = (Source(), Source(extend=True), Source(negate=True, absolute=True))
    targets = cycle([
        ("DWORD", "UNUSED_PAD", None),
        ("WORD_1", "UNUSED_PRESERVE", (16, 16, True)),
        ("BYTE_2", "UNUSED_PAD", (16, 8, False)),
        ("WORD_0", "UNUSED_SEXT", None),
        ("BYTE_0", "UNUSED_PRESERVE", (0, 8, True)),
    ])  # fmt: skip
    count = len(plain.sources)
    for i, (name, part), change in product(range(count), parts.items(), changes):
        form = _with(plain, i, replace(change, selection=part))
        selected = " ".join(f"src{j}_sel:{name if j == i else 'DWORD'}" for j in range(count))
        for target, rest, placed in islice(targets, 2):
            text = f" dst_sel:{target} dst_unused:{rest} {selected}"
            yield replace(form, suffix="_sdwa", modifiers=text, placed=placed)
    selected = " ".join(f"src{j}_sel:DWORD" for j in range(count))
    for output, clamp, factor in (("clamp", True, 1.0), ("mul:2", False, 2.0)):
        text = f" {output} dst_sel:DWORD dst_unused:UNUSED_PAD {selected}"
        yield replace(plain, suffix="_sdwa", modifiers=text, clamp=clamp, factor=factor)


def _lane_patterns(plain: Form) -> Iterator[Form]:
    for control, lanes in (
        ("quad_perm:[1,0,3,2]", lambda lane: lane ^ 1),
        ("row_newbcast:3", lambda lane: lane // 16 * 16 + 3),
    ):
        for first in (Source(), Source(negate=True), Source(absolute=True)):
            form = _with(plain, 0, first)
            text = f" {control} row_mask:0xf bank_mask:0xf"
            yield replace(form, suffix="_dpp", modifiers=text, lanes=lanes)
    yield replace(plain, suffix="_dpp", modifiers=" row_mask:0xf bank_mask:0xf")
    yield replace(plain, suffix="_dpp", modifiers=" row_shl:16 row_mask:0xf bank_mask:0xf")
