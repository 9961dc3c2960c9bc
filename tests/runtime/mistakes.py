"""Uses of `tvm.rocm` that are refused, by HIP or before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
import tvm_ffi

from mfmadsl import ArgumentError
from tests.runtime.module_bytes import module_bytes
from tests.runtime.scenario import KERNELS, array, module, scenario, stand_in
from tests.runtime.strided import strided


@scenario
def bytes_that_are_no_module() -> Any:
    """Those that are loaded although they are cut off somewhere, or go on."""
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.hsaco")
    whole = module_bytes(KERNELS)
    loaded = []
    for wrong in (*(whole[:end] for end in range(len(whole))), whole + b"x", b"\xff" * 64):
        try:
            load(wrong)
            loaded.append(len(wrong))
        except ArgumentError:
            continue
    return loaded


@scenario
def code_of_another_kind() -> Any:
    tvm_ffi.get_global_func("ffi.Module.load_from_bytes.hip")(module_bytes(KERNELS, form="spirv"))


@scenario
def too_few_arguments() -> Any:
    module()["tile"](array())


@scenario
def memory_of_the_host_for_a_kernel() -> Any:
    module()["tile"](np.zeros(4, "float32"), 1, 64)


@scenario
def arrays_on_two_devices() -> Any:
    module()["copy"](array(0), array(1), 1, 1, 1)


@scenario
def a_float_for_an_integer() -> Any:
    module()["every_type"](0.5, None, 0, 3, 0, False, 4, 0, 0, 1, 1, 0)


@scenario
def a_text_for_a_float() -> Any:
    module()["every_type"](0, None, 0, "3", 0, False, 4, 0, 0, 1, 1, 0)


@scenario
def a_number_with_more_bits_than_its_argument() -> Any:
    for wide, narrow in ((127, 65535), (255, -32768)):
        module()["every_type"](wide, None, narrow, 3, 0, False, 4, 0, 0, 1, 1, 0)
    module()["every_type"](256, None, 0, 3, 0, False, 4, 0, 0, 1, 1, 0)


@scenario
def columns_of_an_array() -> Any:
    rows, columns = strided(array(), (2, 2), (2, 1)), strided(array(), (2, 2), (1, 2))
    module()["tile"](rows, 1, 64)
    module()["tile"](columns, 1, 64)


@scenario
def a_negative_grid() -> Any:
    module()["tile"](array(), -1, 64)


@scenario
def a_type_that_is_not_passed() -> Any:
    module()["half"](1.0, 1, 64)


@scenario
def a_launch_of_another_kind() -> Any:
    module()["together"](1, 1)


@scenario
def a_kernel_that_the_code_object_lacks() -> Any:
    module()["missing"](1, 64)


@scenario
def a_code_object_that_is_none() -> Any:
    module(b"nothing")["tile"](array(), 1, 64)


@scenario
def a_code_object_for_another_chip() -> Any:
    stand_in().stand_in_fail(b"hipModuleLoadData", 209)
    module(b"\x7fELF amdgcn-amd-amdhsa--gfx950 and so on")["tile"](array(), 1, 64)


@scenario
def no_memory_left() -> Any:
    stand_in().stand_in_fail(b"hipMalloc", 2)
    tvm.runtime.empty((1024,), "float32", tvm.rocm(1))


@scenario
def memory_that_is_not_freed() -> Any:
    here, there = array(0), array(1)
    stand_in().stand_in_fail(b"hipFree", 719)
    del here
    stand_in().stand_in_fail(b"hipSetDevice", 719)
    del there


@scenario
def a_launch_that_fails() -> Any:
    data, kernels = array(), module()
    stand_in().stand_in_fail(b"hipModuleLaunchKernel", 719)
    kernels["tile"](data, 3, 64)


@scenario
def use_of_a_device_that_is_not_there() -> Any:
    array(7)


@scenario
def no_gpu_at_all() -> Any:
    stand_in().stand_in_devices(0)
    return tvm.rocm(0).exist
