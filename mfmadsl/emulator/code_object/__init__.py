"""Code objects: the machine code that HIP loads, as the text that the emulator reads."""

from mfmadsl.emulator.code_object.bundle import code_object_size, is_code_object
from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.read import CodeObject, KernelCode, read_code_object

__all__ = [
    "CodeObject",
    "CodeObjectError",
    "KernelCode",
    "code_object_size",
    "is_code_object",
    "read_code_object",
]
