"""What IREE's compiler makes of a product: which kernels run, on which bytes of which buffers.

`iree-compile --compile-to=hal` writes a module as text, whose host code is recorded into one
command buffer. All shapes are known here, so that every number in it is a constant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

COMMANDS = frozenset({"create", "dispatch", "execution_barrier", "finalize"})
"""Of a command buffer, those that are understood."""

_CONSTANT = re.compile(r"(%[\w.$-]+) = arith\.constant (\d+) : index")
_FUNCTION = re.compile(
    r"(%\w+) = hal\.executable\.lookup\.function .*? function\(@(\w+)::@\w+::@([\w.$]+)\)"
)
_DISPATCH = re.compile(
    r"hal\.command_buffer\.dispatch<.*?\)\[(%\w+)\] workgroups\(\[(.*?)\]\)(.*?)"
    r" bindings\(\[(.*?)\]\) flags",
    re.DOTALL,
)
_EXECUTE = re.compile(
    r"hal\.device\.queue\.execute\.indirect<.*? bindings\(\[\n(.*?)\n *\]\)", re.S
)
_BUFFER = re.compile(r"\((%\w+) : [!\w.]+\)\[(%\w+), (%\w+)\]")
_ARGUMENT = re.compile(r"(%\w+) = hal\.buffer_view\.buffer<%arg(\d+) :")
_RESULT = re.compile(r"hal\.buffer_view\.create buffer\((%\w+) :")


@dataclass(frozen=True)
class Binding:
    """Bytes of a buffer that a dispatch reads or writes."""

    buffer: int
    offset: int
    length: int


@dataclass(frozen=True)
class Dispatch:
    """One launch: a kernel of an executable, and what its pointers lead to, in their order."""

    executable: str
    symbol: str
    workgroups: tuple[int, int, int]
    bindings: tuple[Binding, ...]


@dataclass(frozen=True)
class Module:
    """The launches of one call, one after the other, and the bytes of each of its buffers.

    `arguments` and `result` are numbers of buffers; all others are workspaces.
    """

    sizes: tuple[int, ...]
    arguments: tuple[int, ...]
    result: int
    dispatches: tuple[Dispatch, ...]


def read_module(text: str) -> Module:
    """From what `iree-compile --compile-to=hal` writes of a module with one function.

    Raises ValueError for host code that is not understood.
    """
    functions = [part.partition("\n  }\n")[0] for part in text.split("\n  util.func ")[1:]]
    recorded = [each for each in functions if "= hal.command_buffer.create " in each]
    called = [each for each in functions if each.startswith("public ")]
    if len(recorded) != 1 or len(called) != 1:
        raise ValueError(
            f"{len(called)} functions that are called and {len(recorded)} that record a command "
            "buffer, but one of each is understood"
        )
    names, sizes = _buffers(called[0])
    arguments = {int(number): name for name, number in _ARGUMENT.findall(called[0])}
    results = _RESULT.findall(called[0])
    if sorted(arguments) != list(range(len(arguments))) or len(results) != 1:
        raise ValueError("arguments that are not buffers, or several results")
    missing = {*arguments.values(), *results} - set(names)
    if missing:
        raise ValueError(f"the command buffer is not given {', '.join(sorted(missing))}")
    return Module(
        sizes,
        tuple(names.index(arguments[number]) for number in sorted(arguments)),
        names.index(results[0]),
        _dispatches(recorded[0], sizes),
    )


def _buffers(function: str) -> tuple[list[str], tuple[int, ...]]:
    """Names and bytes of what the command buffer is given, in its order."""
    constants = _constants(function)
    given = _EXECUTE.findall(function)
    if len(given) != 1:
        raise ValueError(f"{len(given)} command buffers are executed, but one is understood")
    names, sizes = [], []
    for line in given[0].splitlines():
        found = _BUFFER.search(line)
        if not found or _number(found[2], constants):
            raise ValueError(f"a buffer of the call is not understood: {line.strip()}")
        names.append(found[1])
        sizes.append(_number(found[3], constants))
    return names, tuple(sizes)


def _dispatches(function: str, sizes: tuple[int, ...]) -> tuple[Dispatch, ...]:
    unknown = set(re.findall(r"hal\.command_buffer\.(\w+)", function)) - COMMANDS
    if unknown:
        raise ValueError(f"commands that are not understood: {', '.join(sorted(unknown))}")
    constants = _constants(function)
    kernels = {
        name: (executable, symbol) for name, executable, symbol in _FUNCTION.findall(function)
    }
    found = []
    for kernel, workgroups, between, bindings in _DISPATCH.findall(function):
        if between:
            raise ValueError(f"a dispatch has more than buffers: {between.strip()[:80]}")
        if kernel not in kernels:
            raise ValueError(f"a dispatch of {kernel}, which is not looked up")
        x, y, z = (_number(name.strip(), constants) for name in workgroups.split(","))
        bound = tuple(
            Binding(*(_number(name, constants) for name in names))
            for names in _BUFFER.findall(bindings)
        )
        for each in bound:
            if each.buffer >= len(sizes) or each.offset + each.length > sizes[each.buffer]:
                raise ValueError(f"{each} lies outside of the buffers, which have {sizes} bytes")
        found.append(Dispatch(*kernels[kernel], (x, y, z), bound))
    if not found or len(found) != function.count("hal.command_buffer.dispatch<"):
        raise ValueError(f"{len(found)} dispatches are understood, which are not all, or none")
    return tuple(found)


def _constants(function: str) -> dict[str, int]:
    return {name: int(value) for name, value in _CONSTANT.findall(function)}


def _number(name: str, constants: Mapping[str, int]) -> int:
    if name not in constants:
        raise ValueError(f"{name} is not a constant")
    return constants[name]
