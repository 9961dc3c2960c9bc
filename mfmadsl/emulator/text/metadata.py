"""The code object metadata at the end of assembly text: arguments and launch facts of a kernel.

Source: LLVM's "User Guide for AMDGPU Backend", section "Code Object Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml  # PyYAML: the metadata is a YAML document

from mfmadsl.emulator.error import EmulationError

STRING = "!str"
"""LLVM's tag of a text that would else be read as a number or the like."""

_NAMES = (".name", ".symbol")
_INTEGER = "tag:yaml.org,2002:int"
_CORE = (
    ("tag:yaml.org,2002:null", "(?:~|null|Null|NULL|)$", ("~", "n", "N", "")),
    ("tag:yaml.org,2002:bool", "(?:true|True|TRUE|false|False|FALSE)$", tuple("tTfF")),
    (_INTEGER, "(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", tuple("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"(?:[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$",
        tuple("-+.0123456789"),
    ),
)
"""What plain scalars are that are no texts: tags, forms and first letters, in the order in which
they are asked. They are those of YAML 1.2 (10.3.2, the core schema), which LLVM writes and reads.
PyYAML has those of YAML 1.1, where `off` is no text, and `1e3` is one."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The C one is ten times faster, where it exists."""

    yaml_implicit_resolvers: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


def _integer(loader: Any, node: Any) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)


def _mapping(loader: Any, node: Any) -> Iterator[dict[Any, Any]]:
    """A mapping, in which names are texts, whatever they look like."""
    for key, value in node.value:
        if isinstance(value, yaml.ScalarNode) and key.value in _NAMES:
            value.tag = STRING
    found: dict[Any, Any] = {}
    yield found
    found.update(loader.construct_mapping(node))


for _tag, _form, _first in _CORE:
    _Loader.add_implicit_resolver(_tag, re.compile(_form), _first)
_Loader.add_constructor(_INTEGER, _integer)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor(STRING, lambda loader, node: loader.construct_scalar(node))

_DOCUMENT = re.compile(r"\.amdgpu_metadata\n(.*?)\.end_amdgpu_metadata", re.DOTALL)
_COUNTS = (
    "vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count",
    "group_segment_fixed_size", "private_segment_fixed_size", "max_flat_workgroup_size",
)  # fmt: skip


@dataclass(frozen=True)
class KernelArgument:
    """Where one argument lies in the kernel argument segment, and what is said of it.

    `writes`: the kernel is known to write to the memory that it points to. The types are empty
    where they are not told.
    """

    name: str
    offset: int
    size: int
    kind: str
    writes: bool = False
    value_type: str = ""
    type_name: str = ""


def passed(arguments: Iterable[KernelArgument]) -> list[KernelArgument]:
    """The arguments that a caller passes; the rest tell the kernel of its launch."""
    return [each for each in arguments if not each.kind.startswith("hidden_")]


@dataclass(frozen=True)
class Metadata:
    """What the metadata says of one kernel; `counts` by their names there, without the dot."""

    counts: Mapping[str, int] = field(default_factory=dict)
    arguments: tuple[KernelArgument, ...] = ()
    workgroup_size: tuple[int, ...] | None = None


def read_metadata(text: str, kernel: str) -> Metadata:
    """What the metadata of an assembly text says of one kernel; empty where there is none.

    Raises EmulationError if it is not what LLVM writes.
    """
    document = _DOCUMENT.search(text)
    if not document:
        return Metadata()
    try:
        entries = next(yaml.load_all(document[1], _Loader)).get("amdhsa.kernels") or ()
        named = (each for each in entries if each.get(".name") == kernel)
        entry: Mapping[str, Any] = next(named, {})
        required = entry.get(".reqd_workgroup_size")
        return Metadata(
            {name: int(entry[f".{name}"]) for name in _COUNTS if f".{name}" in entry},
            _arguments(entry),
            tuple(map(int, required)) if required else None,
        )
    except yaml.YAMLError as error:
        raise EmulationError(f"the metadata is no YAML: {error}") from None
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError):
        raise EmulationError("the metadata does not describe kernels as LLVM does") from None


def _arguments(entry: Mapping[str, Any]) -> tuple[KernelArgument, ...]:
    return tuple(
        KernelArgument(
            str(each.get(".name", "")), int(each[".offset"]), int(each[".size"]),
            str(each[".value_kind"]),
            str(each.get(".actual_access", "")) in ("write_only", "read_write"),
            str(each.get(".value_type", "")),
            str(each.get(".type_name", "")),
        )
        for each in entry.get(".args") or ()
    )  # fmt: skip
