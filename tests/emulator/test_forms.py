"""Every row in all its forms: source and output modifiers, op_sel, SDWA, DPP and constants.

What LLVM's assembler does not take, the emulator refuses; what it takes, the emulator computes as
the manual has it (see `manual`), or refuses as well, if it is among `meaningless`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.assembly import parse_instruction
from mfmadsl.emulator.instruction_table import compile_instruction
from mfmadsl.emulator.machine import Machine
from mfmadsl.emulator.row import Row
from mfmadsl.emulator.vector import vector_rows
from mfmadsl.emulator.wave import width_of
from tests.emulator.assembler import accepted
from tests.emulator.machine import put, vector, wave
from tests.emulator.manual.bits import is_nan, number
from tests.emulator.manual.conversions import CONVERSIONS
from tests.emulator.manual.edges import sample
from tests.emulator.manual.floats import FLOATS, TRANSCENDENTAL, apart, flushed
from tests.emulator.manual.integers import INTEGERS, SATURATING
from tests.emulator.manual.modifiers import INLINE_FLOATS, Source, clamped_float, scaled_float
from tests.emulator.test_manual import packed_equal

ARCH = "gfx950"
ROWS = vector_rows(ARCH)
MODELS: dict[str, Callable[..., int]] = {**INTEGERS, **FLOATS, **CONVERSIONS}
OLD = 0xA5C3_96E1_0F1E_2D3C


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

    @property
    def output(self) -> bool:
        return self.clamp or self.factor != 1


@dataclass
class Case:
    """A form of a row, with the line that is tested."""

    name: str
    form: Form
    line: str
    row: Row = field(repr=False)


def sources_of(row: Row) -> list[str]:
    return list(row.kinds[: len(row.kinds) - row.accumulates])


def forms(row: Row) -> Iterator[Form]:
    """All forms that an instruction of these types could have, whether there are such or not."""
    kinds = sources_of(row)
    count = len(kinds)
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
    yield from _op_sel(plain, kinds)
    yield from _sub_words(plain, kinds)
    yield from _lane_patterns(plain)


def _with(form: Form, place: int, source: Source) -> Form:
    return replace(form, sources=(*form.sources[:place], source, *form.sources[place + 1 :]))


def _op_sel(plain: Form, kinds: list[str]) -> Iterator[Form]:
    count = len(kinds)
    for chosen in [*range(count + 1), None]:
        flags = [int(i == chosen or chosen is None) for i in range(count + 1)]
        selected = tuple(
            replace(s, selection=(16, 16) if flag else None)
            for s, flag in zip(plain.sources, flags, strict=False)
        )
        text = ",".join(map(str, flags))
        placed = (16, 16, True) if flags[-1] else None
        yield replace(plain, sources=selected, modifiers=f" op_sel:[{text}]", placed=placed)


def _sub_words(plain: Form, kinds: list[str]) -> Iterator[Form]:
    parts = {"BYTE_0": (0, 8), "BYTE_3": (24, 8), "WORD_1": (16, 16), "DWORD": (0, 32)}
    targets = [("DWORD", "UNUSED_PAD", None), ("WORD_1", "UNUSED_PRESERVE", (16, 16, True)),
               ("BYTE_2", "UNUSED_PAD", (16, 8, False)), ("WORD_0", "UNUSED_SEXT", None)]  # fmt: skip
    for i, _ in enumerate(kinds):
        for name, part in parts.items():
            for change in (Source(), Source(extend=True), Source(negate=True, absolute=True)):
                chosen = replace(change, selection=part)
                form = _with(plain, i, chosen)
                selections = " ".join(
                    f"src{j}_sel:{name if j == i else 'DWORD'}" for j in range(len(kinds))
                )
                for target, rest, placed in targets:
                    text = f" dst_sel:{target} dst_unused:{rest} {selections}"
                    yield replace(form, suffix="_sdwa", modifiers=text, placed=placed)
    selections = " ".join(f"src{j}_sel:DWORD" for j in range(len(kinds)))
    for output, clamp, factor in (("clamp", True, 1.0), ("mul:2", False, 2.0)):
        text = f" {output} dst_sel:DWORD dst_unused:UNUSED_PAD {selections}"
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


def cases(name: str) -> list[Case]:
    row = ROWS[name]
    registers = [f"v[{2 * i + 2}:{2 * i + 3}]" if width_of(kind) == 64 else f"v{2 * i + 2}"
                 for i, kind in enumerate(sources_of(row))]  # fmt: skip
    if name in ("v_accvgpr_read_b32", "v_accvgpr_mov_b32"):
        registers = [r.replace("v", "a") for r in registers]
    target = "v[0:1]" if row.result.itemsize == 8 else "v0"
    if name in ("v_accvgpr_write_b32", "v_accvgpr_mov_b32"):
        target = "a0"
    found = []
    for form in forms(row):
        operands = [s.spelled(r) for s, r in zip(form.sources, registers, strict=True)]
        line = f"{name}{form.suffix} {target}, {', '.join(operands)}{form.modifiers}"
        found.append(Case(name, form, line, row))
    return found


NAMES = sorted(MODELS)


@pytest.fixture(scope="module")
def legal() -> dict[str, bool]:
    """All lines, and whether they are instructions of gfx950 to LLVM."""
    lines = [case.line for name in NAMES for case in cases(name)]
    return dict(zip(lines, accepted(lines, ARCH), strict=True))


def meaningless(case: Case) -> bool:
    """Whether the manuals do not say what LLVM's assembler takes all the same."""
    form, kinds = case.form, sources_of(case.row)
    floating = case.row.result.kind == "f"
    if form.clamp and not floating and case.name not in SATURATING:
        return True
    if form.factor != 1 and not floating:
        return True
    if "op_sel" in form.modifiers:
        narrow = [width_of(kind) == 16 for kind in kinds]
        wide = any(s.selection and not n for s, n in zip(form.sources, narrow, strict=True))
        return (
            wide or (form.placed is not None and case.row.result.itemsize != 2) or not any(narrow)
        )
    if "UNUSED_SEXT" in form.modifiers:
        return True
    return any(s.constant in INLINE_FLOATS or "x40" in s.constant or "xc0" in s.constant
               for s, kind in zip(form.sources, kinds, strict=True)
               if kind[0] != "f" and width_of(kind) == 16)  # fmt: skip


def expected(case: Case, lane: int, inputs: list[list[int]]) -> int:
    """The register after the instruction."""
    form, row, name = case.form, case.row, case.name
    bits = []
    for i, kind in enumerate(row.kinds):
        register = inputs[i][form.lanes(lane) if i == 0 else lane]
        source = form.sources[i] if i < len(form.sources) else Source()
        bits.append(source.read(register, kind))
    kind = result_kind(row)
    model = SATURATING[name] if form.clamp and not kind else MODELS[name]
    if form.factor != 1:
        model = flushed_sources(model, row.kinds, kind)
    value = model(*bits)
    value = scaled_float(value, kind, form.factor) if form.factor != 1 else value
    value = clamped_float(value, kind) if form.clamp and kind else value
    return value % 2 ** (8 * row.result.itemsize)


def flushed_sources(model: Callable[..., int], kinds: tuple[str, ...], result: str
                    ) -> Callable[..., int]:  # fmt: skip
    """The same, where no float has denormals."""
    identity = {kind: flushed(lambda x: x, kind) for kind in ("f16", "f32", "f64")}
    return lambda *sources: identity[result](
        model(*(identity.get(kind, int)(s) for s, kind in zip(sources, kinds, strict=True)))
    )


def result_kind(row: Row) -> str:
    """The float type of a result, or nothing."""
    return f"f{8 * row.result.itemsize}" if row.result.kind == "f" else ""


def run(case: Case, inputs: list[list[int]], machine: Machine) -> list[int]:
    """What the target holds after the instruction."""
    waves = wave()
    wide = case.row.result.itemsize == 8
    operation = compile_instruction(parse_instruction(case.line), machine)
    bank = "a" if case.name.startswith("v_accvgpr_") else "v"
    put(waves, {"v[0:1]": np.full(64, OLD, np.uint64), "a[0:1]": np.full(64, OLD, np.uint64)})
    for i, values in enumerate(inputs[: len(case.form.sources)]):
        pair = f"{bank}[{2 * i + 2}:{2 * i + 3}]" if bank == "v" else f"a[{2 * i + 2}:{2 * i + 3}]"
        put(waves, {pair: np.array(values, np.uint64)})
        put(waves, {pair.replace("a", "v"): np.array(values, np.uint64)})
    if case.row.accumulates:
        put(waves, {"v[0:1]": np.array(inputs[-1], np.uint64)})
    with np.errstate(all="ignore"):
        operation.execute(waves)
    if case.line.split()[1].startswith("a"):
        waves.vector[0:2] = waves.accumulation[0:2]
    return [int(x) for x in vector(waves, 0, np.uint64 if wide else np.uint32)]


def agrees(case: Case, found: int, value: int) -> bool:
    """Whether a register holds the value, in its place, and what is to stay."""
    size = 8 * case.row.result.itemsize
    low, width, keeps = case.form.placed or (0, max(size, 32), False)
    part = found >> low & (2**width - 1)
    rest = found & ~((2**width - 1) << low)
    old = (OLD if size == 64 else OLD % 2**32) & ~((2**width - 1) << low)
    if rest != (old if keeps else 0):
        return False
    kind = result_kind(case.row)
    if width < size and kind and is_nan(value, kind):
        return True
    if width < size or not kind:
        same = part == value % 2**width
        return same or (not kind and not case.form.placed and packed_equal(case.name, part, value))
    if is_nan(value, kind):
        return part < 2**size and is_nan(part, kind)
    if part >= 2**size:
        return False
    if case.name in TRANSCENDENTAL:
        return apart(part, value, kind) <= 1
    return part == value or number(part, kind) == number(value, kind) == 0


def lanes_of(case: Case, generator: random.Random) -> list[int]:
    """The lanes that are compared: all of them, if there is nothing but the arithmetic."""
    plain = not case.form.modifiers and case.form.sources == (Source(),) * len(case.form.sources)
    return list(range(64)) if plain else generator.sample(range(64), 12)


@pytest.mark.parametrize("name", NAMES)
def test_forms(name: str, legal: dict[str, bool]) -> None:
    generator = random.Random(name)
    tested = 0
    exists = legal[cases(name)[0].line]
    for case in cases(name):
        flushes = case.form.factor != 1
        machine = Machine(ARCH, ("f16", "f32", "f64") if flushes else (), ieee=not flushes)
        inputs = [sample(f"{kind[0]}{width_of(kind)}", generator, 64) for kind in case.row.kinds]
        inputs = [
            [x | generator.getrandbits(64) << width_of(kind) & 2**64 - 1 for x in values]
            for kind, values in zip(case.row.kinds, inputs, strict=True)
        ]
        try:
            found = run(case, inputs, machine)
        except EmulationError:
            assert not legal[case.line] or meaningless(case), f"refused: {case.line}"
            continue
        # Where constants may stand is not the emulator's concern.
        constants = any(source.constant for source in case.form.sources)
        assert legal[case.line] or not exists or constants, f"no instruction: {case.line}"
        assert not meaningless(case), f"what does this mean: {case.line}"
        tested += 1
        for lane in lanes_of(case, generator):
            value = expected(case, lane, inputs)
            assert agrees(case, found[lane], value), (
                case.line, [hex(x[lane]) for x in inputs], hex(found[lane]), hex(value))  # fmt: skip
    assert tested


def test_output_modifiers_are_ignored_where_the_chip_ignores_them() -> None:
    """In IEEE mode, which is what kernels of HSA start in, and where denormals may come out."""
    ones = [[0x3F800000] * 64, [0x40000000] * 64]
    (case,) = (c for c in cases("v_add_f32") if c.line.endswith("v4 mul:4"))
    for flushes, ieee in (((), False), (("f32",), True), ((), True), (("f64",), False)):
        assert run(case, ones, Machine(ARCH, flushes, ieee=ieee)) == [0x40400000] * 64
    assert run(case, ones, Machine(ARCH, ("f32",), ieee=False)) == [0x41400000] * 64


def test_without_dx10_clamp_nan_stays() -> None:
    nan = [[0x7FC00000] * 64, [0x3F800000] * 64]
    (case,) = (c for c in cases("v_add_f32") if c.line == "v_add_f32 v0, v2, v4 clamp")
    assert run(case, nan, Machine(ARCH)) == [0] * 64
    assert all(is_nan(x, "f32") for x in run(case, nan, Machine(ARCH, dx10_clamp=False)))
