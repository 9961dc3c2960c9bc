"""Native code of forms: kept on disk, loaded once, and found by the names of its functions.

What is on disk belongs to a form, to what writes its code, to LLVM and to this processor. A link
named by a form leads to a file named by the digest of an object, which is checked before it runs.
What is missing or broken there is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from mfmadsl.cache_folder import cache_folder, keep, may_run
from mfmadsl.emulator.instructions import matrix
from mfmadsl.emulator.native.code import NativeCode
from mfmadsl.emulator.native.driver import DRIVER, write_driver
from mfmadsl.emulator.native.form import CodeForm
from mfmadsl.emulator.native.team_code import HELP, LEAD, write_help, write_lead
from mfmadsl.emulator.native.writers import WRITERS

Writer = Callable[[ir.Module, str], None]
"""Puts a function of a name into a module."""

_MOST_OBJECTS, _MOST_FOLDERS = 1024, 4
_OBJECT = "object-"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def _target_machine() -> llvm.TargetMachine:
    """This processor; an engine takes what it is given, and takes it along when it goes."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
        reloc="pic",
    )


@cache
def surroundings() -> str:
    """A digest of all that the code of a form depends on besides the form."""
    told = (
        llvmlite.__version__, llvm.llvm_version_info, llvm.get_default_triple(),
        llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(),
    )  # fmt: skip
    content = hashlib.sha256(repr(told).encode())
    for folder in (Path(__file__).parent, Path(matrix.__file__).parent):
        for source in sorted(folder.glob("*.py")):
            content.update(source.read_bytes())
    return content.hexdigest()


@cache
def _converts_halves() -> bool:
    return bool(llvm.get_host_cpu_features().get("f16c", True))


def _folder() -> Path:
    return cache_folder() / f"native-{surroundings()[:16]}"


def _read(path: Path) -> bytes:
    """What is in a file that nobody else can have written; nothing if there is no such file."""
    try:
        return path.read_bytes() if may_run(path) else b""
    except OSError:
        return b""


def _object_of(name: str) -> tuple[str, bytes]:
    """The object on disk that has a function, with its digest; no bytes if there is none."""
    link = _folder() / name
    try:
        told = os.readlink(link) if link.lstat().st_uid == os.geteuid() else ""
    except OSError:
        return "", b""
    digest = told.removeprefix(_OBJECT)
    content = _read(_folder() / told) if _DIGEST.fullmatch(digest) else b""
    return digest, content if hashlib.sha256(content).hexdigest() == digest else b""


@cache
def _remove_outdated() -> None:
    """Leave the code of a few other versions only, of which some may be in use."""
    try:
        folders = sorted(cache_folder().glob("native-*"), key=lambda each: each.stat().st_mtime)
    except OSError:
        return
    for folder in folders[:-_MOST_FOLDERS]:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(names: list[str], content: bytes) -> None:
    folder, told = _folder(), _OBJECT + hashlib.sha256(content).hexdigest()
    _remove_outdated()
    keep(folder / told, content, f"{_OBJECT}*", _MOST_OBJECTS)
    for name in names:
        beside = folder / f"{name}.{os.getpid()}"
        try:
            beside.symlink_to(told)
            beside.replace(folder / name)
        except OSError:
            return


def _compiled(writers: Mapping[str, Writer]) -> bytes:
    """Nothing allows LLVM fast mathematics: each operation is rounded as IEEE 754 says.

    LLVM's passes on its IR would take as long again, and gain nothing here.
    """
    machine = _target_machine()
    module = ir.Module()
    for name, write in writers.items():
        write(module, name)
    parsed = llvm.parse_assembly(str(module))
    found: bytes = machine.emit_object(parsed)
    return found


class Library:
    """All code that this process has loaded."""

    def __init__(self) -> None:
        self._engines: dict[str, llvm.ExecutionEngine] = {}  # by the digests of their objects
        self._addresses: dict[str, int] = {}
        self._on_disk: dict[str, bool] = {}

    @property
    def is_for_this_processor(self) -> bool:
        """Whether LLVM has code for halves there: of an x86 without F16C it would call functions
        that are not there."""
        return _converts_halves()

    def is_loaded(self, name: str) -> bool:
        """Whether a function is there already."""
        return name in self._addresses

    def is_kept(self, name: str) -> bool:
        """Whether a function is on disk, as far as that is known without reading it."""
        if name not in self._on_disk:
            self._on_disk[name] = (_folder() / name).exists()
        return self._on_disk[name]

    def addresses(self, forms: Mapping[str, CodeForm]) -> dict[str, int]:
        """Where the code of forms is, which is loaded or compiled if need be."""
        self._load({name: _writer(form) for name, form in forms.items()})
        return {name: self._addresses[name] for name in forms}

    def driver(self) -> Any:
        """The function that executes steps: see `native/driver.py`."""
        self._load({"driver": write_driver})
        return DRIVER(self._addresses["driver"])

    def team(self) -> tuple[Any, Any]:
        """The functions of threads that execute steps together: see `native/team_code.py`."""
        self._load({"lead": write_lead, "help": write_help})
        return LEAD(self._addresses["lead"]), HELP(self._addresses["help"])

    def _load(self, writers: Mapping[str, Writer]) -> None:
        absent = {}
        for name, write in writers.items():
            if name in self._addresses:
                continue
            digest, content = _object_of(name)
            if content:
                self._find(name, digest, content)
            else:
                absent[name] = write
        if absent:
            content = _compiled(absent)
            digest = hashlib.sha256(content).hexdigest()
            for name in absent:
                self._find(name, digest, content)
            _keep(list(absent), content)

    def _find(self, name: str, digest: str, content: bytes) -> None:
        engine = self._engines.get(digest)
        if engine is None:
            engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
            engine.add_object_file(llvm.ObjectFileRef.from_data(content))
            engine.finalize_object()
            self._engines[digest] = engine
        self._addresses[name] = engine.get_function_address(name)


def _writer(form: CodeForm) -> Writer:
    def write(module: ir.Module, name: str) -> None:
        code = NativeCode(module, name)
        WRITERS[form.writer](code, form)
        code.finish()

    return write


@cache
def library() -> Library:
    """The library of this process."""
    return Library()
