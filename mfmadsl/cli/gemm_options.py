"""The values that options of `mfmadsl gemm` take: fields of the tiling, steps of the epilogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mfmadsl.argument import clipped
from mfmadsl.cli.choice import Choice
from mfmadsl.cli.specs import ARCH
from mfmadsl.epilogue import STEPS
from mfmadsl.model import ELEMENT_TYPES, OVERLAPS, Intrinsic, Tiling
from mfmadsl.nearest import or_meant

if TYPE_CHECKING:
    from mfmadsl.gemm import Gemm

DTYPES = tuple(
    dict.fromkeys(
        t.dtype for t in ELEMENT_TYPES.values()
        if t.name not in ("uint8", "int32", "float8_e8m0fnu")
    )
)  # fmt: skip
"""What A and B may hold; those of fewer than eight bits with scales."""

_SHORT = {
    "f16": "float16", "fp16": "float16", "half": "float16", "bf16": "bfloat16",
    "f32": "float32", "fp32": "float32", "float": "float32",
    "f64": "float64", "fp64": "float64", "double": "float64", "i8": "int8", "i32": "int32",
    "fp6": "float6_e2m3fn", "bf6": "float6_e3m2fn", "fp4": "float4_e2m1fn",
}  # fmt: skip
_OCTETS = ("fp8", "bf8")  # each chip has types of its own that are called so
SUM_DTYPES = ("float16", "bfloat16", "float32", "float64", "int32")

OUTPUTS = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
"""The elements of a C in an MX format (`mx_output`)."""

WEIGHTS = ("q4f16", "gptq", "awq", "mxfp4", "int8")
"""The formats of weights (`quantised_matmul`), which are told before TVM is imported."""

_DEFAULTS = {
    each.name: each.default
    for each in fields(Tiling)
    if each.name != "instruction"  # that is --intrinsic
}
TILING_FIELDS = tuple(_DEFAULTS)

WORDS = {"overlap": tuple(OVERLAPS)}
"""Fields of a tiling that have one of some words, and which."""

_PAIRS = ("block", "waves")
_FLAGS = tuple(name for name, default in _DEFAULTS.items() if isinstance(default, bool))
_DIGITS = 9  # of a number in a tiling: no chip has room for more

EXTENT = click.IntRange(1, 2**31 - 1)
"""M, N, K and the batch: beyond it no index of a kernel reaches."""


class Dtype(Choice):
    """A type by its name or by a short one; fp8 and bf8 stay, for the chip says which they are."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The type's full name, or fp8 or bf8. Raises BadParameter if there is no such type."""
        name = str(value).lower()
        if name in _OCTETS and self.choices == DTYPES:
            return name
        own = {ELEMENT_TYPES[each].short: each for each in self.choices if each in ELEMENT_TYPES}
        return super().convert(_SHORT.get(name, own.get(name, value)), param, ctx)


Command = TypeVar("Command", bound=Callable[..., Any])


def product_options(command: Command) -> Command:
    """The options that say which product: its chip, extents, layouts and types. `gemm_of` takes
    them."""
    options = [
        click.option("--arch", type=ARCH, required=True),
        click.option("-m", type=EXTENT, required=True),
        click.option("-n", type=EXTENT, required=True),
        click.option("-k", type=EXTENT, required=True),
        click.option(
            "--batch", type=EXTENT, metavar="N", help="So many products, of matrices each."
        ),
        click.option("--trans-a", is_flag=True, help="A lies as K x M."),
        click.option("--trans-b", is_flag=True, help="B lies as N x K."),
        click.option(
            "--in-dtype",
            type=Dtype(DTYPES),
            help="Of A and B; float16 by default. Short names, too, such as half, bf16, f32, i8; "
            "fp8 and bf8 are the chip's own.",
        ),
        click.option("--b-dtype", type=Dtype(DTYPES), help="Of B, if it is another."),
        click.option("--out-dtype", type=Dtype(SUM_DTYPES), help="Of C; that of the sums, if not."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def weight_options(command: Command) -> Command:
    """The options that say how B is stored in a few bits. `gemm_of` takes them."""
    options = [
        click.option(
            "--weights",
            type=Choice(WEIGHTS),
            help="B is stored in a few bits, in this format, and becomes the type of A.",
        ),
        click.option(
            "--group",
            type=EXTENT,
            metavar="K",
            help="So many k of --weights have a scale in common; 128 of gptq and awq, 32 of q4f16, "
            "if not.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def gemm_of(
    arch: str,
    m: int,
    n: int,
    k: int,
    batch: int | None,
    trans_a: bool,
    trans_b: bool,
    in_dtype: str | None,
    b_dtype: str | None,
    out_dtype: str | None,
    *,
    intrinsic: Intrinsic | None = None,
    epilogue: tuple[str, ...] = (),
    tiling: Mapping[str, Any] = MappingProxyType({}),
    form: str = "plain",
    weights: str | None = None,
    group: int | None = None,
    mx_output: str | None = None,
    experts: int | None = None,
    tokens: int | None = None,
) -> Gemm:
    """The GEMM that `product_options` and `weight_options` describe.

    Raises click.UsageError for options that do not go with `weights`, or not without.
    """
    if group is not None and weights is None:
        raise click.UsageError("--group needs --weights: whose scales are they?")
    if trans_b and weights is not None:
        raise click.UsageError(
            f"--trans-b: weights of {weights} lie as that format says; leave it out"
        )
    from mfmadsl.gemm import Gemm  # it imports TVM

    dtypes = (_of_chip(in_dtype, arch), _of_chip(b_dtype, arch), out_dtype)
    layouts = trans_b, None, trans_a
    return Gemm(
        intrinsic, arch, m, n, k, *layouts, dtypes, batch, epilogue, tiling, form, weights, group,
        mx_output, experts, tokens,
    )  # fmt: skip


def _of_chip(dtype: str | None, arch: str) -> str | None:
    """The type that a chip calls so; that of another one where it has none, to be refused."""
    if dtype not in _OCTETS:
        return dtype
    called = [t for t in ELEMENT_TYPES.values() if t.short == dtype]
    return next((t for t in called if arch in t.chips), called[0]).dtype


class Steps(click.ParamType[tuple[str, ...]]):
    """Names of steps, such as `bias,relu`, in their order."""

    name = "STEP[,STEP...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The names of steps with commas between them. Raises BadParameter if there is no such."""
        if isinstance(value, tuple):  # the default
            return value
        names = tuple(part.strip() for part in str(value).split(","))
        for name in names:
            if name not in STEPS:
                told = f"there is no step {clipped(name)!r}, but: {', '.join(STEPS)}"
                self.fail(told + or_meant(name, list(STEPS)), param, ctx)
        return names


def tiling_changes(texts: Iterable[str]) -> dict[str, Any]:
    """Fields and values of texts such as `block=256x128`; of a repeated field the last.

    Raises click.UsageError for a field that there is not, or a value that it cannot have.
    """
    return dict(_change(text) for text in texts)


def _change(text: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise click.UsageError(f"--tiling {text!r} is not FIELD=VALUE")
    if name == "instruction":
        raise click.UsageError("--tiling instruction: give --intrinsic instead")
    if name not in TILING_FIELDS:
        raise click.UsageError(
            f"--tiling: there is no field {clipped(name)!r}, but: {', '.join(TILING_FIELDS)}"
            + or_meant(name, TILING_FIELDS)
        )
    if name in _FLAGS:
        flags = {"yes": True, "true": True, "no": False, "false": False}
        if value.lower() not in flags:
            raise click.UsageError(f"--tiling {name}: {value!r} is neither yes nor no")
        return name, flags[value.lower()]
    if name in WORDS:
        if value not in WORDS[name]:
            raise click.UsageError(
                f"--tiling {name}: {clipped(value)!r} is none of {', '.join(WORDS[name])}"
                + or_meant(value, WORDS[name])
            )
        return name, value
    parts = [x for x in value.split("x") if x.isascii() and x.isdigit()]
    if any(len(x.lstrip("0")) > _DIGITS for x in parts):
        raise click.UsageError(
            f"--tiling {name}: {clipped(value)!r} has more than {_DIGITS} digits"
        )
    numbers = [int(x) for x in parts]
    wanted = 2 if name in _PAIRS else 1
    if len(numbers) != wanted or len(value.split("x")) != wanted or 0 in numbers:
        form = "two positive numbers such as 128x64" if wanted == 2 else "a positive number"
        raise click.UsageError(f"--tiling {name}: {value!r} is not {form}")
    return name, tuple(numbers) if wanted == 2 else numbers[0]
