"""Tilings that were measured: read from a database of TVM's MetaSchedule, which `tune` writes.

Of its two files only that of the records is read here: a record's trace begins with annotations
that say for which product it is, and with which tiling. So neither MetaSchedule nor what it needs
is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from mfmadsl.error import MfmadslError
from mfmadsl.model import Architecture, Tiling, product_called, product_of
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.legal import check_values, of_plain_numbers
from mfmadsl.schedule.product.memory import number

if TYPE_CHECKING:
    from mfmadsl.schedule.product.normalise import Product
    from mfmadsl.schedule.product.prologue import Prologue

FOLDER = "MFMADSL_TUNED"
"""The environment variable that names the folder of the database."""

RECORDS, WORKLOADS = "records.json", "workloads.json"
KEY, TILING, SOURCE = "mfmadsl.tuning_key", "mfmadsl.tiling", "mfmadsl.measured_on"
MODEL = "model"
"""The source of what was measured in the model of the chip; others are names of GPUs, or `model of`
a product that is not the one which is meant if nobody says which."""

_FIELDS = fields(Tiling)
_LEAST_BUCKET = 16  # rows: the least that a tile has
_UNKNOWN_ROWS = 256  # what M is taken for where it is a symbol


def source_of(product: str | None) -> str:
    """The source of what is measured in the model of a product, or of the one that is meant."""
    found = None if product is None else product_called(product)
    if found is None or found == product_of(found.arch):
        return MODEL
    return f"{MODEL} of {found.name}"


def is_model(source: str) -> bool:
    """Whether a time is the model's, and not a GPU's."""
    return source == MODEL or source.startswith(f"{MODEL} of ")


def bucket(m: int) -> int:
    """The bucket of M: the next power of two, but 16 at least."""
    return max(_LEAST_BUCKET, 1 << (m - 1).bit_length())


@dataclass(frozen=True)
class Key:
    """What a tiling is kept by: a product on a chip, with as many rows as were measured."""

    arch: str
    batches: int
    m: int
    n: int
    k: int
    types: tuple[str, str, str]
    """Of A, B and C; where elements are made of others, such as `float16:32*0.125*1`, with what
    each array has: the bits of a place, how many of these each k and each row take, and `r` where
    they lie along rows."""
    lies: str
    """A letter for each of A and B: `n` if K runs along memory, `t` if across."""

    def __str__(self) -> str:
        extents = f"{self.batches}x{self.m}x{self.n}x{self.k}"
        return " ".join([self.arch, extents, *self.types, self.lies])

    def is_alike(self, other: Key) -> bool:
        """Whether what was measured for the other may be taken: M may differ within its bucket."""
        return bucket(self.m) == bucket(other.m) and replace(other, m=self.m) == self


def read_key(text: str) -> Key:
    """The key that was written so. Raises ValueError for anything else."""
    arch, extents, a, b, c, lies = text.split(" ")
    batches, m, n, k = map(int, extents.split("x"))
    return Key(arch, batches, m, n, k, (a, b, c), lies)


def key_of(product: Product, chip: Architecture) -> Key | None:
    """The key of a product; None where N, K or the batches are symbols."""
    s, m, n, k = (number(extent) for extent in product.extents)
    if s is None or n is None or k is None:
        return None
    lies = "".join(
        "t" if each.axis == axis else "n"
        for each, axis in zip(product.memory[:2], "ij", strict=True)
    )
    made = (*map(_stored, product.prologues), "")
    a, b, c = (dtype + of for dtype, of in zip(product.types, made, strict=True))
    return Key(chip.name, s, _UNKNOWN_ROWS if m is None else m, n, k, (a, b, c), lies)


def _stored(prologue: Prologue | None) -> str:
    """What elements are made of, as their type has it behind it; nothing if they are loaded."""
    if prologue is None:
        return ""
    arrays = (
        f"{8 * each.place_bytes:g}*{each.per_k:g}*{each.per_row:g}{'r' if each.along_rows else ''}"
        for each in prologue.stored
    )
    return ":" + "+".join(arrays)


def written(tiling: Tiling) -> str:
    """A tiling as an annotation has it: fields and values, such as `block=128x64 k_step=32`."""
    return " ".join(f"{name}={_value_text(value)}" for name, value in asdict(tiling).items())


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "x".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def read(text: str) -> Tiling | None:
    """A tiling from an annotation; None for what is none."""
    try:
        told = dict(word.split("=", 1) for word in text.split())
        values = {each.name: _value(told[each.name], each.name) for each in _FIELDS}
        tiling = Tiling(**values)  # type: ignore[arg-type]  # check_values looks at each
        check_values(tiling, least_stages=0)
    except (KeyError, ValueError, MfmadslError):
        return None
    return of_plain_numbers(tiling) if len(told) == len(_FIELDS) else None


def _value(text: str, field: str) -> tuple[int, int] | str | int:
    if field in ("block", "waves"):
        m, n = map(int, text.split("x"))
        return m, n
    if field in ("instruction", "overlap"):
        return text
    if text in ("yes", "no"):
        return text == "yes"
    return int(text)


@dataclass(frozen=True)
class Measured:
    """A tiling that was measured for a product, on what, and its seconds."""

    key: Key
    tiling: Tiling
    source: str
    seconds: float


def tuned_tilings(key: Key) -> list[Tiling]:
    """The tilings that were measured for a product, the fastest first, where a database is named.

    Of the M of the bucket those of the nearest are taken, and of these those of a GPU, if there are
    any. Raises ScheduleError if the folder that MFMADSL_TUNED names has no such file, or one with
    something else in it.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return []
    path = Path(folder, RECORDS)
    try:
        changed = path.stat()
    except OSError as error:
        raise ScheduleError(
            f"{FOLDER}: {path}: {error.strerror}: name a folder that `mfmadsl tune` has written"
        ) from None
    alike = [
        each
        for each in measured(path, changed.st_mtime_ns, changed.st_size)
        if key.is_alike(each.key)
    ]
    nearest = min((abs(each.key.m - key.m) for each in alike), default=0)
    found = [each for each in alike if abs(each.key.m - key.m) == nearest]
    on_gpu = [each for each in found if not is_model(each.source)]
    ranked = sorted(on_gpu or found, key=lambda each: each.seconds)
    return list(dict.fromkeys(each.tiling for each in ranked))


@lru_cache(maxsize=8)
def measured(path: Path, changed: int, size: int) -> tuple[Measured, ...]:
    """The records of ours; read anew when the file has changed. Others of MetaSchedule's are passed
    over, and so is a line that is cut off at the end.

    Raises ScheduleError for a line that is none of MetaSchedule's.
    """
    found = []
    try:
        whole, _, _ = path.read_text(errors="replace").rpartition("\n")
    except OSError as error:
        raise ScheduleError(f"{path}: cannot be read: {error.strerror}") from None
    for line_number, line in enumerate(whole.splitlines(), start=1):
        try:
            _, (trace, seconds, *_) = json.loads(line)
            told = dict(_annotations(trace))
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
            raise ScheduleError(
                f"{path}: line {line_number} is none of MetaSchedule's database: name another "
                "folder"
            ) from None
        try:
            tiling = read(told[TILING])
            if tiling is None or not seconds:
                continue
            mean = sum(map(float, seconds)) / len(seconds)
            if 0 < mean < inf:
                found.append(Measured(read_key(told[KEY]), tiling, told[SOURCE], mean))
        except (LookupError, TypeError, ValueError, OverflowError):
            continue
    return tuple(found)


def _annotations(trace: object) -> Iterator[tuple[str, str]]:
    """The annotations of a trace as MetaSchedule writes it: name, operands, attributes, results."""
    for name, operands, attributes, _ in trace[0]:  # type: ignore[index]
        if name == "Annotate":
            yield str(attributes[0]), str(operands[1]).strip('"')
