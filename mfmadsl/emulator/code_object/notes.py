"""The metadata of a code object, which assembly has as YAML and a code object as MessagePack.

Source: LLVM, "User Guide for AMDGPU Backend", section "Code Object Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgpack
import yaml

from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.text.metadata import STRING


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """The C one is ten times faster."""


def _text(dumper: Any, text: str) -> Any:
    """A text that may be read as a number, or another word of YAML's or C's, gets LLVM's tag: LLVM
    reads no quotes."""
    tag = "tag:yaml.org,2002:str" if _PLAIN.match(text) else STRING
    return dumper.represent_scalar(tag, text)


_Dumper.add_representer(str, _text)
_PLAIN = re.compile(r"(?!\.?(null|true|false|nan|inf|infinity)$)\.?[a-z_$]", re.IGNORECASE)
_MOST_NESTED = 16
_VERSIONS = {3: [1, 0], 4: [1, 1], 5: [1, 2], 6: [1, 2]}  # of code objects: of their metadata


def read_kernels(packed: bytes) -> dict[str, Mapping[str, Any]]:
    """What the metadata says of each kernel, by the name of its descriptor.

    Raises CodeObjectError if it does not describe kernels.
    """
    try:
        document = msgpack.unpackb(packed, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise CodeObjectError(f"its metadata is no MessagePack: {error or 'it ends'}") from None
    kernels = document.get("amdhsa.kernels") if isinstance(document, dict) else None
    if not isinstance(kernels, list) or not _is_plain(kernels):
        raise CodeObjectError("its metadata does not describe kernels as LLVM does")
    found = {}
    for kernel in kernels:
        names = (
            [kernel.get(key) for key in (".name", ".symbol")] if isinstance(kernel, dict) else []
        )
        if not names or not all(isinstance(name, str) for name in names):
            raise CodeObjectError("its metadata has a kernel without a name or a symbol")
        found[str(names[1])] = kernel
    return found


def _is_plain(value: object, depth: int = 0) -> bool:
    """Whether it is of lists, maps, texts and numbers, as YAML has them."""
    if depth > _MOST_NESTED:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(v, depth + 1) for key, v in value.items())
    if isinstance(value, list):
        return all(_is_plain(each, depth + 1) for each in value)
    return isinstance(value, str | int)


def as_yaml(kernel: Mapping[str, Any], version: int) -> str:
    """The document of one kernel, as assembly for a version of code objects has it."""
    document = {"amdhsa.kernels": [dict(kernel)], "amdhsa.version": _VERSIONS[version]}
    text = yaml.dump(document, Dumper=_Dumper, default_flow_style=None, width=1 << 16)
    return f"---\n{text}...\n"
