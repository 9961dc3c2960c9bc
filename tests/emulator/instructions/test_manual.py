"""Every row in all its forms: source and output modifiers, op_sel, SDWA, DPP and constants.

What LLVM's assembler does not take, the emulator refuses; what it takes, the emulator computes as
the manual has it (see `manual`), or refuses as well, if it is among `meaningless`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.row import Row
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.bits import width_of
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from tests.emulator.assembler import accepted
from tests.emulator.instructions.manual.bits import is_nan
from tests.emulator.instructions.manual.conversions import CONVERSIONS
from tests.emulator.instructions.manual.edges import sample
from tests.emulator.instructions.manual.floats import FLOATS, TRANSCENDENTAL, apart, flushed
from tests.emulator.instructions.manual.forms import Form, forms
from tests.emulator.instructions.manual.integers import INTEGERS, SATURATING
from tests.emulator.instructions.manual.modifiers import (
    INLINE_FLOATS,
    Source,
    clamped_float,
    scaled_float,
)
from tests.emulator.waves import put, vector, wave

ARCH = "gfx950"
ROWS = vector_rows(ARCH)
MODELS: dict[str, Callable[..., int]] = {**INTEGERS, **FLOATS, **CONVERSIONS}
OLD = 0xA5C3_96E1_0F1E_2D3C


@dataclass
class Case:
    """A form of a row, with the line that is tested."""

    name: str
    form: Form
    line: str
    row: Row = field(repr=False)


def sources_of(row: Row) -> list[str]:
    return list(row.kinds[: len(row.kinds) - row.accumulates])


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
    for form in forms(len(registers)):
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
    return value % (1 << 8 * row.result.itemsize)


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
    return bool(part == value)


def packed_equal(name: str, found: int, expected: int) -> bool:
    """Two halves side by side, of which NaN has many forms."""
    if found == expected:
        return True
    kind = "bf16" if "bf16" in name else "f16"
    if not name.startswith(("v_cvt_pk", "v_pack")):
        return False
    return all(
        (found >> s & 0xFFFF) == (expected >> s & 0xFFFF)
        or (is_nan(found >> s & 0xFFFF, kind) and is_nan(expected >> s & 0xFFFF, kind))
        for s in (0, 16)
    )


def lanes_of(case: Case, generator: random.Random) -> list[int]:
    """The lanes that are compared: all of them, if there is nothing but the arithmetic."""
    plain = not case.form.modifiers and case.form.sources == (Source(),) * len(case.form.sources)
    return list(range(64)) if plain else generator.sample(range(64), 12)


def test_every_row_has_a_model() -> None:
    tested_elsewhere = {name for name in ROWS if "fp8" in name or "bf8" in name or "fp4" in name}
    assert set(MODELS) == set(ROWS) - tested_elsewhere


@pytest.mark.parametrize("name", NAMES)
def test_forms(name: str, legal: dict[str, bool]) -> None:
    generator = random.Random(name)
    tested = 0
    exists = legal[cases(name)[0].line]
    for case in cases(name):
        flushes = case.form.factor != 1
        machine = Machine(ARCH, ("f16", "f32", "f64") if flushes else (), ieee=not flushes)
        inputs = [sample(f"{kind[0]}{width_of(kind)}", generator, 64) for kind in case.row.kinds]
        for lane in range(2):  # the two zeros, either way around
            for i, values in enumerate(inputs):
                values[lane] = (lane + i) % 2 << (width_of(case.row.kinds[i]) - 1)
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
                f"{case.line}: {found[lane]:#x}, not {value:#x}, of "
                f"{[hex(x[lane]) for x in inputs]}"
            )
    assert tested or not exists


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
