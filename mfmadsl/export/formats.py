"""The formats that layouts are written in.

Another one is a file with a function that writes operands and one that reads them back, and a line
here: the command line offers what is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mfmadsl.argument import check_choice, check_type
from mfmadsl.error import ArgumentError
from mfmadsl.export import ck, cute, elements, iree, triton
from mfmadsl.export.error import ExportError
from mfmadsl.model import Intrinsic, Layout, Operand, architecture


@dataclass(frozen=True)
class Format:
    """How layouts are written, of which operands if nobody says, and how they are read back.

    `write` takes an instruction, some of its operands, and the chip that it is written for.
    """

    write: Callable[[Intrinsic, Sequence[Operand], str | None], str]
    read: Callable[[str], dict[str, Layout]]
    operands: tuple[str, ...] | None = None


FORMATS: Mapping[str, Format] = {
    "triton": Format(triton.write, triton.read),
    "iree": Format(iree.write, iree.read),
    "ck": Format(ck.write, ck.read, ck.OPERANDS),
    "cute": Format(cute.write, cute.read),
    "json": Format(elements.write_json, elements.read_json),
    "csv": Format(elements.write_csv, elements.read_csv),
}


def export_layouts(
    intrinsic: Intrinsic, form: str, operand: str | None = None, arch: str | None = None
) -> str:
    """Where the elements of an instruction's operands lie, in the words of another project.

    `form` is one of "triton", "iree", "ck", "cute", "json", "csv"; `operand` is one that the
    instruction has, or None for all; `arch` is the chip that Triton's layout names, else the newest
    one that has the instruction. The text is read back before it is returned, and is that layout.

    Raises ExportError, with the reason, where the format has no words for it; ArgumentError or
    ArgumentTypeError for a form, an operand or a chip that there is not.
    """
    check_type("intrinsic", intrinsic, Intrinsic, "an intrinsic, such as find() gives")
    check_choice("form", form, FORMATS)
    arch = None if arch is None else architecture(arch).name
    if arch is not None and arch not in intrinsic.chips:
        raise ArgumentError(f"{intrinsic.name} is no instruction of {arch}")
    written = FORMATS[form]
    if operand is None:
        told = [o for o in intrinsic.operands.values() if o.name in (written.operands or (o.name,))]
    else:
        check_type("operand", operand, str, "an operand's name")
        told = [intrinsic.operand(operand)]
    text = written.write(intrinsic, told, arch)
    if written.read(text) != {o.name: o.layout for o in told}:
        raise ExportError(
            f"{intrinsic.name}: what was written as {form} is not read back as it is: please tell "
            "the authors of mfmadsl"
        )
    return text


def read_layouts(text: str, form: str) -> dict[str, Layout]:
    """The layouts of what `export_layouts` has made, by operand."""
    return FORMATS[form].read(text)
