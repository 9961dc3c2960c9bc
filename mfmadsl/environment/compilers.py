"""Which compilers of C and C++ there are."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from dataclasses import dataclass

Command = tuple[str, ...]

_ZIG = (sys.executable, "-m", "ziglang")
_ZIG_OPTIONS = ("-DMFMADSL_ONLY_HEADERS", "-fno-sanitize=undefined")
"""As `zig cc` it links nothing of its own C++ library: runtime/text.h says why."""


@dataclass(frozen=True)
class Compiler:
    """The command that compiles C++, the one that links, and options of both."""

    command: Command
    linker: Command
    options: Command = ()


def find_compilers() -> list[Compiler]:
    """The C++ compilers there are, in the order in which they are tried.

    `$CXX` alone if it is set; else those on PATH; else the one of the pip package ziglang.
    """
    if chosen := _words(os.environ.get("CXX", "")):
        return [Compiler(tuple(chosen), tuple(chosen))]
    found = []
    for name in ("g++", "clang++", "c++"):
        if path := shutil.which(name):
            found.append(Compiler((path,), (path,)))
    if importlib.util.find_spec("ziglang"):
        found.append(Compiler((*_ZIG, "c++"), (*_ZIG, "cc"), _ZIG_OPTIONS))
    return found


def find_c_compiler() -> Command | None:
    """The system's C compiler, `$CC` before others, or that of the pip package ziglang."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return (path,)
    if importlib.util.find_spec("ziglang"):
        return *_ZIG, "cc"
    return None


def _words(command: str) -> list[str]:
    """As a shell takes it apart; a quote that nobody closes is one word."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]
