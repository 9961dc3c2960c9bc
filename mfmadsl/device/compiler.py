"""Programs in HIP's C++ that are compiled while a program runs: what libhiprtc.so asks for.

A clang compiles them (`environment/assembler.py` says which), with headers of our own in
`hiprtc/`: ROCm's are not asked for. Functions that LLVM has no instructions for are those of the
back end, `math_functions.ll`.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from mfmadsl.backend.gpu.linker import LinkError, link
from mfmadsl.environment.assembler import find_assembler
from mfmadsl.error import MfmadslError

_HEADERS = Path(__file__).parent / "hiprtc"
_FUNCTIONS = "mfmadsl.backend.gpu", "math_functions.ll"
_TARGET = ("-target", "amdgcn-amd-amdhsa", "-nogpulib")
_LANGUAGE = (
    "-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-fdeclspec", "-fuse-cuid=none",
    "-O3", "-std=c++17", "-include", "hip_runtime.h",
)  # fmt: skip
_CODE = ("-x", "ir", *_TARGET, "-O3", "-Xclang", "-disable-llvm-passes", "-c")
_CHIP = re.compile(r"--?(?:gpu-architecture|offload-arch|gpu-arch)=([\w:+-]+)\Z")
_LINKED = ("-fgpu-rdc", "--gpu-rdc")
_NAME = "mfmadsl_name_"
"""Variables that hold the addresses of what name expressions name."""

_NAMED = re.compile(rf"^@{_NAME}(\d+) = .*$\n", re.MULTILINE)
_SYMBOL = re.compile(r'@(?:"((?:[^"\\]|\\.)+)"|([\w.$-]+))')

_LINKER = re.compile(r"\berror: .*")

_COUNTS = struct.Struct("<3I")
_SIZE = struct.Struct("<I")


class CompileError(MfmadslError, RuntimeError):
    """A program does not compile; the message is the compiler's log."""


@dataclass(frozen=True)
class HipProgram:
    """A program as its host tells it: headers by the names that it includes them by."""

    text: str
    name: str
    headers: Mapping[str, str]
    options: tuple[str, ...]
    expressions: tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """A code object, the compiler's warnings, and the symbols of the name expressions."""

    code: bytes
    log: str
    symbols: tuple[str, ...]


def read_program(body: bytes) -> HipProgram:
    """A program as `hiprtc/program.c` writes it."""
    headers, options, expressions = _COUNTS.unpack_from(body)
    at, texts = _COUNTS.size, []
    for _ in range(2 + 2 * headers + options + expressions):
        (size,) = _SIZE.unpack_from(body, at)
        at += _SIZE.size
        texts.append(body[at : at + size].decode(errors="replace"))
        at += size + 1
    text, name, *rest = texts
    included = dict(zip(rest[1 : 2 * headers : 2], rest[: 2 * headers : 2], strict=True))
    rest = rest[2 * headers :]
    return HipProgram(text, name, included, tuple(rest[:options]), tuple(rest[options:]))


def compile_reply(compiled: Compiled) -> bytes:
    """What `hiprtc/program.c` reads."""
    parts = [compiled.log.encode(), compiled.code, *(each.encode() for each in compiled.symbols)]
    return texts_reply(parts)


def texts_reply(parts: Sequence[bytes]) -> bytes:
    """Texts, each with its size before it and a NUL behind it."""
    return b"".join(_SIZE.pack(len(part)) + part + b"\0" for part in parts)


def compile_program(source: HipProgram, chip: str) -> Compiled:
    """The code object of a program, for the chip of its options, or for `chip`.

    Raises CompileError with the compiler's log, or with what is missing here.
    """
    compiler = find_assembler()
    if compiler is None:
        raise CompileError("there is no clang to compile this with: pip install ziglang")
    if any(option in _LINKED for option in source.options):
        raise CompileError("-fgpu-rdc: programs are not linked on an emulated device")
    chips = [found[1] for option in source.options if (found := _CHIP.match(option))]
    options = [option for option in source.options if not _CHIP.match(option)]
    arch = chips[-1] if chips else chip
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        place = Path(folder)
        text = place / (Path(source.name).name or "program")
        written = _written(place / "include", source.headers)
        text.write_text(source.text + _asked(source.expressions))
        functions, ir, object_file = (place / name for name in ("functions", "ir", "object"))
        functions.write_bytes(_functions(compiler))
        linked = ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(functions))
        folders = (f"-I{written}", f"-I{_HEADERS}")
        made = ("-S", "-emit-llvm", str(text), "-o", str(ir))
        log = _run(
            (*compiler, *_LANGUAGE, f"--offload-arch={arch}", *folders, *linked, *options, *made),
            place,
        )
        symbols = _without_names(ir, len(source.expressions))
        processor = arch.partition(":")[0]
        _run((*compiler, *_CODE, f"-mcpu={processor}", str(ir), "-o", str(object_file)), place)
        try:
            code = link(object_file.read_bytes())
        except LinkError as error:
            raise CompileError(
                "\n".join(_LINKER.findall(str(error))) or "it does not link"
            ) from None
    if code is None:
        raise CompileError("there is no lld to link this with: pip install ziglang")
    return Compiled(code, log, symbols)


def _written(folder: Path, headers: Mapping[str, str]) -> Path:
    """Write headers where they are included from. Raises CompileError for one beside the folder."""
    for name, text in headers.items():
        place = (folder / name).resolve()
        if not place.is_relative_to(folder.resolve()):
            raise CompileError(f"the header `{name}` would lie outside of the program's own folder")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def _asked(expressions: Sequence[str]) -> str:
    """Text that makes the compiler keep what each expression names, and tell its symbol."""
    return "".join(
        f'\nextern "C" __device__ const void *{_NAME}{place} = (const void *)({_address(each)});'
        for place, each in enumerate(expressions)
    )


def _address(expression: str) -> str:
    return expression if expression.lstrip().startswith("&") else f"&{expression}"


def _without_names(ir: Path, count: int) -> tuple[str, ...]:
    """What the name expressions name; the text that told is taken out again."""
    text = ir.read_text()
    found = {}
    for line in _NAMED.finditer(text):
        symbol = _SYMBOL.search(line[0].partition(" = ")[2])
        if symbol is not None:
            found[int(line[1])] = symbol[1] or symbol[2]
    ir.write_text(_NAMED.sub("", text))
    if len(found) != count:
        raise CompileError("a name expression names neither a kernel nor a variable")
    return tuple(found[place] for place in range(count))


@cache
def _functions(compiler: tuple[str, ...]) -> bytes:
    """The back end's mathematical functions, as this compiler links them."""
    package, name = _FUNCTIONS
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        text, target = Path(folder, "text"), Path(folder, "bitcode")
        text.write_text((files(package) / name).read_text())
        command = ("-x", "ir", *_TARGET, "-emit-llvm", "-c", str(text), "-o", str(target))
        _run((*compiler, *command), Path(folder))
        return target.read_bytes()


def _run(command: Sequence[str], folder: Path) -> str:
    """What a command says, without the folder's name. Raises CompileError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = done.stderr.replace(f"{folder}/", "")
    if done.returncode:
        raise CompileError(said or f"{command[0]} ended with {done.returncode}")
    return said
