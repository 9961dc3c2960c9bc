"""One program's conversation with the emulated GPU: what it asks, in the order in which it asks."""

from __future__ import annotations

import socket
from dataclasses import replace

from mfmadsl.device.gpu import Gpu
from mfmadsl.device.launch import Function, modelled_seconds, run_launch
from mfmadsl.device.memory import MOST_ARGUMENT_BYTES, SharedMemory
from mfmadsl.device.protocol import (
    ADDRESS,
    HEADER,
    NUMBER,
    RequestKind,
    Start,
    Status,
    device_reply,
    function_reply,
    read_start,
)
from mfmadsl.emulator.code_object import CodeObject, CodeObjectError, read_code_object
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.model import assumed

_ELF = b"\x7fELF"
Reply = tuple[Status, bytes]


class Session:
    """The state that the emulated GPU keeps of one program."""

    def __init__(self, gpu: Gpu, channel: socket.socket) -> None:
        self._gpu, self._channel = gpu, channel
        self._memory: SharedMemory | None = None
        self._modules: dict[int, CodeObject] = {}
        self._functions: dict[int, Function] = {}
        self._number = 0
        self._version: int | None = None
        self._seconds: dict[tuple[object, ...], float] = {}

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
            error, content = self._answer(*request)
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

    def _answer(self, operation: int, body: bytes, files: list[int]) -> Reply:
        if operation == RequestKind.HELLO and files and self._memory is None:
            return self._hello(files[0], *ADDRESS.unpack(body))
        if operation == RequestKind.LOAD:
            return self._load(body)
        if operation == RequestKind.UNLOAD:
            (number,) = NUMBER.unpack(body)
            known = self._modules.pop(number, None) is not None
            return (Status.SUCCESS if known else Status.INVALID_HANDLE), b""
        if operation == RequestKind.FUNCTION:
            (module,) = NUMBER.unpack_from(body)
            return self._function(module, body[NUMBER.size :].decode(errors="replace"))
        if operation == RequestKind.LAUNCH and self._memory is not None:
            return self._launch(body, self._memory)
        return Status.NOT_SUPPORTED, b""

    def _hello(self, file: int, start: int) -> Reply:
        gpu = self._gpu
        self._memory = SharedMemory(file, start)
        return Status.SUCCESS, device_reply(
            gpu.chip, gpu.product, gpu.memory_bytes, gpu.models_time
        )

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
        self._modules[self._number] = loaded
        return Status.SUCCESS, NUMBER.pack(self._number)

    def _function(self, module: int, name: str) -> Reply:
        loaded = self._modules.get(module)
        if loaded is None:
            return Status.INVALID_HANDLE, b""
        if name not in loaded.kernels:
            known = ", ".join(loaded.kernels)
            self._gpu.log(f"there is no kernel `{name}` in a module, but: {known}")
            return Status.NOT_FOUND, b""
        try:
            text = loaded.assembly(name)
            program = parse_assembly(text, name)
            if program.data:
                raise ArgumentError("it reaches constants or variables of its code object")
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

    def _launch(self, body: bytes, memory: SharedMemory) -> Reply:
        start, self._version = read_start(body, self._version)
        if start.allocations is not None:
            memory.allocate(start.allocations)
        function = self._functions[start.function]
        gpu = self._gpu
        with gpu.turn:  # one launch at a time, of whatever program
            try:
                modelled = self._modelled(function, start, memory) if gpu.models_time else None
                launched = run_launch(
                    function, start, memory, gpu.options.sanitize, gpu.options.budget
                )
            except ArgumentError as error:
                gpu.tell(f"kernel `{function.program.name}` cannot be launched: {error}")
                return Status.INVALID_CONFIGURATION, b""
            gpu.record(replace(launched, modelled=modelled))
        if launched.failed:
            return Status.LAUNCH_FAILURE, b""
        nanoseconds = 0 if modelled is None else round(modelled * 1e9 + gpu.product.launch)
        return Status.SUCCESS, ADDRESS.pack(nanoseconds)

    def _modelled(self, function: Function, start: Start, memory: SharedMemory) -> float | None:
        """Seconds in the model, looked at once for launches that differ in pointers only; None of a
        kernel at fault, which is told when it runs."""
        scalars = [
            start.arguments[a.offset : a.offset + a.size]
            for a in function.passed
            if a.kind == "by_value"
        ]
        key = (start.function, start.grid, start.block, start.lds_bytes, *scalars)
        if key not in self._seconds:
            gpu = self._gpu
            try:
                self._seconds[key] = modelled_seconds(
                    function, start, memory, gpu.product, gpu.options.budget
                )
            except EmulationError:
                return None
        return self._seconds[key]


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
