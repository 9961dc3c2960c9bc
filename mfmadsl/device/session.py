"""One program's conversation with the emulated GPU: what it asks, in the order in which it asks."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from mfmadsl.device.compiler import (
    CompileError,
    compile_program,
    compile_reply,
    read_program,
    texts_reply,
)
from mfmadsl.device.gpu import Gpu
from mfmadsl.device.history import History
from mfmadsl.device.launch import (
    Function,
    LaunchRecord,
    modelled,
    resident_groups,
    run_launch,
)
from mfmadsl.device.memory import MOST_ARGUMENT_BYTES, SharedMemory
from mfmadsl.device.module import Module
from mfmadsl.device.notes import read_note
from mfmadsl.device.protocol import (
    ADDRESS,
    GUARDED,
    HEADER,
    LOADED,
    NUMBER,
    PLACED,
    RESIDENT,
    RequestKind,
    Start,
    Status,
    device_reply,
    function_reply,
    read_start,
)
from mfmadsl.device.provenance import Foreign, reach_of
from mfmadsl.emulator.code_object import CodeObjectError, read_code_object
from mfmadsl.emulator.machine.memory import GlobalMemory
from mfmadsl.emulator.sanitizer.sanitize import Sanitizer
from mfmadsl.emulator.text.assembly import moved, parse_assembly
from mfmadsl.emulator.text.data import CODE
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.model import assumed

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Profile

_ELF = b"\x7fELF"
Reply = tuple[Status, bytes]


class Session:
    """The state that the emulated GPU keeps of one program."""

    def __init__(self, gpu: Gpu, channel: socket.socket) -> None:
        self._gpu, self._channel = gpu, channel
        self._memory: SharedMemory | None = None
        self._modules: dict[int, Module] = {}
        self._functions: dict[int, Function] = {}
        self._number = 0
        self._version: int | None = None
        self._history: History | None = None  # under the sanitizer
        self._profiles: dict[tuple[object, ...], Profile] = {}

    def close(self) -> None:
        """Give back what the program had."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        self._modules.clear()
        self._functions.clear()

    def serve(self) -> None:
        """Answer until the program ends."""
        while (request := self._request()) is not None:
            error, content = self._answered(*request)
            try:
                self._channel.sendall(HEADER.pack(error, len(content)) + content)
            except OSError:  # the program ended while it waited
                return

    def _request(self) -> tuple[int, bytes, list[int]] | None:
        head, files, _, _ = socket.recv_fds(self._channel, HEADER.size, 1)
        rest = self._received(HEADER.size - len(head)) if head else None
        if rest is None:
            return None
        operation, size = HEADER.unpack(head + rest)
        body = self._received(size)
        return None if body is None else (operation, body, files)

    def _received(self, size: int) -> bytes | None:
        """So many bytes; None if the program ends before."""
        content = bytearray(size)
        view = memoryview(content)
        while view:
            got = self._channel.recv_into(view)
            if not got:
                return None
            view = view[got:]
        return bytes(content)

    def _answered(self, operation: int, body: bytes, files: list[int]) -> Reply:
        """The answer, or an error where finding it fails by a mistake of the emulator's own."""
        try:
            return self._answer(operation, body, files)
        except (MfmadslError, OSError, MemoryError):
            raise
        except Exception as error:
            self._gpu.tell(f"the emulator itself has failed: {type(error).__name__}: {error}")
            return Status.UNKNOWN, b""

    def _answer(self, operation: int, body: bytes, files: list[int]) -> Reply:
        if operation == RequestKind.HELLO and files and self._memory is None:
            return self._hello(files[0], *ADDRESS.unpack(body))
        if operation == RequestKind.COMPILE:
            return self._compile(body)
        if operation == RequestKind.LOAD:
            return self._load(body)
        if operation == RequestKind.UNLOAD:
            (number,) = NUMBER.unpack(body)
            known = self._modules.pop(number, None) is not None
            return (Status.SUCCESS if known else Status.INVALID_HANDLE), b""
        if operation == RequestKind.FUNCTION:
            (module,) = NUMBER.unpack_from(body)
            return self._function(module, body[NUMBER.size :].decode(errors="replace"))
        if operation == RequestKind.RESIDENT:
            return self._resident(*RESIDENT.unpack(body))
        if operation == RequestKind.NAMES:
            return self._names(*NUMBER.unpack(body))
        if operation == RequestKind.PLACE and self._memory is not None:
            return self._place(self._memory, *PLACED.unpack(body))
        if operation == RequestKind.VARIABLE:
            (module,) = NUMBER.unpack_from(body)
            return self._variable(module, body[NUMBER.size :].decode(errors="replace"))
        if operation == RequestKind.NOTE and self._history is not None:
            self._history.happened(read_note(body))
            return Status.SUCCESS, b""
        if operation == RequestKind.GUARD and self._history is not None:
            return Status.SUCCESS, b"".join(GUARDED.pack(*x) for x in self._history.guarded())
        if operation == RequestKind.LAUNCH and self._memory is not None:
            return self._launch(body, self._memory)
        return Status.NOT_SUPPORTED, b""

    def _hello(self, file: int, start: int) -> Reply:
        gpu = self._gpu
        self._memory = SharedMemory(file, start, gpu.options.devices == 1)
        if gpu.options.sanitize:
            self._history = History(self._memory.content, start, gpu.chip.dies > 1, gpu.accuse)
        return Status.SUCCESS, device_reply(
            gpu.chip,
            gpu.product,
            gpu.memory_bytes,
            gpu.models_time,
            gpu.options.devices,
            gpu.options.sanitize,
        )

    def _compile(self, body: bytes) -> Reply:
        """The code object of a program in HIP's C++, or the compiler's log."""
        try:
            return Status.SUCCESS, compile_reply(
                compile_program(read_program(body), self._gpu.chip.name)
            )
        except CompileError as error:
            self._gpu.log(f"a program does not compile: {error}")
            return Status.INVALID_VALUE, texts_reply([str(error).encode()])

    def _load(self, image: bytes) -> Reply:
        chip = self._gpu.chip.name
        try:
            loaded = read_code_object(image, None if image.startswith(_ELF) else chip)
        except CodeObjectError as error:
            self._gpu.tell(f"a code object cannot be loaded: {error}")
            return Status.INVALID_IMAGE, b""
        if loaded.arch != chip:
            self._gpu.tell(
                f"a code object is for {loaded.arch}, but the emulated GPU is a {chip}: build it "
                f"for {chip}, or start with `mfmadsl device --arch {loaded.arch}`"
            )
            return Status.NO_BINARY_FOR_GPU, b""
        self._number += 1
        self._modules[self._number] = Module(image, loaded)
        size = max((s.address + len(s.content) for s in loaded.sections), default=0)
        return Status.SUCCESS, LOADED.pack(self._number, 0, size)

    def _place(self, memory: SharedMemory, number: int, address: int) -> Reply:
        """Put a module's code and data into memory, from an address on."""
        module = self._modules.get(number)
        if module is None:
            return Status.INVALID_HANDLE, b""
        placed = module.placed(self._gpu.chip.name, address)
        for section in placed.object.sections:
            memory.write(address + section.address, section.content)
        if self._history is not None:
            end = max((s.address + len(s.content) for s in placed.object.sections), default=0)
            self._history.written(address, end)
        self._modules[number] = placed
        return Status.SUCCESS, b""

    def _variable(self, number: int, name: str) -> Reply:
        """Where a variable of a module lies, and its bytes."""
        module = self._modules.get(number)
        if module is None:
            return Status.INVALID_HANDLE, b""
        if name not in module.object.variables:
            known = ", ".join(module.object.variables) or "none"
            self._gpu.log(f"there is no variable `{name}` in a module, but: {known}")
            return Status.NOT_FOUND, b""
        address, size = module.object.variables[name]
        return Status.SUCCESS, PLACED.pack(module.base + address, size)

    def _function(self, module: int, name: str) -> Reply:
        found = self._modules.get(module)
        if found is None:
            return Status.INVALID_HANDLE, b""
        loaded = found.object
        if name not in loaded.kernels:
            known = ", ".join(loaded.kernels)
            self._gpu.log(f"there is no kernel `{name}` in a module, but: {known}")
            return Status.NOT_FOUND, b""
        try:
            text = loaded.assembly(name)
            program = moved(parse_assembly(text, name), found.base - CODE)
            function = Function(self._number + 1, text, program)
            if function.kernarg_bytes > MOST_ARGUMENT_BYTES:
                raise ArgumentError(f"it takes {function.kernarg_bytes} bytes of arguments")
            threads = program.most_threads or assumed(program.arch).max_threads
            reply = function_reply(
                function.number,
                function.kernarg_bytes,
                [(a.offset, a.size) for a in function.passed],
                program.directive("group_segment_fixed_size"),
                program.directive("private_segment_fixed_size"),
                program.directive("next_free_vgpr"),
                threads,
            )
        except MfmadslError as error:
            self._gpu.tell(f"it cannot be run: {error}")
            return Status.INVALID_IMAGE, b""
        self._number += 1
        self._functions[function.number] = function
        return Status.SUCCESS, reply

    def _resident(self, number: int, threads: int, lds_bytes: int) -> Reply:
        """How many workgroups of a kernel a compute unit holds."""
        function = self._functions.get(number)
        if function is None:
            return Status.INVALID_HANDLE, b""
        return Status.SUCCESS, NUMBER.pack(resident_groups(function, threads, lds_bytes))

    def _names(self, module: int) -> Reply:
        """The names of a module's kernels, each with a NUL behind it."""
        loaded = self._modules.get(module)
        if loaded is None:
            return Status.INVALID_HANDLE, b""
        return Status.SUCCESS, b"".join(name.encode() + b"\0" for name in loaded.object.kernels)

    def _launch(self, body: bytes, memory: SharedMemory) -> Reply:
        start, self._version = read_start(body, self._version)
        if start.allocations is not None:
            memory.allocate(start.allocations)
        function = self._functions[start.function]
        gpu = self._gpu
        with gpu.turn:  # one launch at a time, of whatever program
            try:
                profile = self._modelled(function, start, memory) if gpu.models_time else None
                launched = self._run(function, start, memory)
            except ArgumentError as error:
                gpu.tell(f"kernel `{function.program.name}` cannot be launched: {error}")
                return Status.INVALID_CONFIGURATION, b""
            launched = replace(launched, profile=profile)
            gpu.record(launched)
        if launched.failed:
            return Status.LAUNCH_FAILURE, b""
        spent = launched.modelled
        nanoseconds = 0 if spent is None else round(spent * 1e9 + gpu.product.launch)
        return Status.SUCCESS, ADDRESS.pack(nanoseconds)

    def _run(self, function: Function, start: Start, memory: SharedMemory) -> LaunchRecord:
        """Run a launch, watched if asked."""
        budget, history, seed = self._gpu.options.budget, self._history, self._gpu.next_seed
        if history is None:
            return run_launch(function, start, memory, budget, seed=seed)
        modules = list(self._modules.values())
        launched = history.begins(function.program.name, start.device, start.stream)

        def watched(content: GlobalMemory) -> Sanitizer:
            beside = Foreign(reach_of(content, start.arguments, modules), launched.watch)
            return Sanitizer(function.program, True, memory=history.unwritten, beside=beside)

        try:
            return run_launch(function, start, memory, budget, watched, seed)
        finally:
            history.ends(launched)

    def _modelled(self, function: Function, start: Start, memory: SharedMemory) -> Profile | None:
        """In the model, looked at once for launches that differ in pointers only; None of a kernel
        at fault, which is told when it runs."""
        scalars = [
            start.arguments[a.offset : a.offset + a.size]
            for a in function.passed
            if a.kind == "by_value"
        ]
        key = (start.function, start.grid, start.block, start.lds_bytes, *scalars)
        if key not in self._profiles:
            gpu = self._gpu
            try:
                self._profiles[key] = modelled(
                    function, start, memory, gpu.product, gpu.options.budget
                )
            except ArgumentError:
                raise
            except Exception:  # of the kernel or of the emulator: told when it runs
                return None
        return self._profiles[key]


def served(gpu: Gpu, channel: socket.socket) -> None:
    """Serve one program on its channel, and tell if that goes wrong."""
    session = Session(gpu, channel)
    with channel:
        try:
            session.serve()
        except (MfmadslError, OSError, MemoryError) as error:
            gpu.tell(f"a program is served no longer: {error or type(error).__name__}")
        finally:
            session.close()
