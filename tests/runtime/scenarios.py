"""Programs that use `tvm.rocm` on the stand-in, each with the calls of HIP that it makes.

python -m tests.runtime.scenarios    # prints {name: {"calls", "error", "value"}} as JSON
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import tvm
import tvm_ffi

from mfmadsl.runtime import without_devices
from tests.runtime.module_bytes import module_bytes
from tests.runtime.scenario import KERNELS, array, module, scenario


@scenario
def attributes() -> Any:
    device = tvm.rocm(1)
    names = (
        "exist", "max_threads_per_block", "warp_size", "max_shared_memory_per_block",
        "compute_version", "device_name", "max_clock_rate", "multi_processor_count",
        "max_thread_dimensions", "api_version", "driver_version", "l2_cache_size_bytes",
        "total_global_memory", "available_global_memory",
    )  # fmt: skip
    return {name: getattr(device, name) for name in names}


@scenario
def targets() -> Any:
    found = tvm.target.Target.from_device(tvm.rocm(0)), tvm.target.Target("rocm")
    return [target.attrs["mcpu"] for target in found]


@scenario
def a_device_that_is_not_there() -> Any:
    return tvm.rocm(2).exist, tvm.rocm(-1).exist


@scenario
def devices_that_are_hidden() -> Any:
    there = []
    with without_devices(), without_devices():
        there.append(tvm.rocm(0).exist)
        other = threading.Thread(target=lambda: there.append(tvm.rocm(0).exist))
        other.start()
        other.join()
    return [*there, tvm.rocm(0).exist]


@scenario
def copies_to_and_from_the_host() -> Any:
    return array().numpy().tolist()


@scenario
def memory_of_another_device() -> Any:
    return array(1).numpy().tolist()


@scenario
def nothing_to_allocate() -> Any:
    return list(tvm.runtime.empty((0, 3), "float32", tvm.rocm(0)).numpy().shape)


@scenario
def copies_within_a_device() -> Any:
    source, target = array(), tvm.runtime.empty((4,), "float32", tvm.rocm(0))
    target.copyfrom(source)
    return target.numpy().tolist()


@scenario
def copies_between_devices() -> Any:
    source, target = array(), tvm.runtime.empty((4,), "float32", tvm.rocm(1))
    source.copyto(target)
    return target.numpy().tolist()


@scenario
def memory_of_the_host_that_the_gpu_reads() -> Any:
    pinned = tvm.runtime.empty((4,), "float32", tvm_ffi.device(11, 0))
    pinned.copyfrom(np.arange(4, dtype="float32"))
    return array().copyto(pinned).numpy().tolist()


@scenario
def copies_follow_the_current_stream() -> Any:
    device = tvm.rocm(0)
    data = array()
    stream = device.create_raw_stream()
    device.set_raw_stream(stream)
    try:
        return data.numpy().tolist()
    finally:
        device.set_raw_stream(0)
        device.free_raw_stream(stream)


@scenario
def waits_for_a_stream_or_for_all() -> Any:
    device = tvm.rocm(0)
    stream = device.create_raw_stream()
    device.sync(stream)
    device.sync()
    device.free_raw_stream(stream)


@scenario
def one_stream_waits_for_another() -> Any:
    device = tvm.rocm(1)
    first, second = device.create_raw_stream(), device.create_raw_stream()
    tvm_ffi.get_global_func("runtime.Device_StreamSyncFromTo")(device, first, second)


@scenario
def every_type_of_argument() -> Any:
    pointer = ctypes.c_void_p(0x1122334455667788)
    module()["every_type"](
        -2, pointer, 65535, 1.5, -(2**40), True, 2.25, -3, 2**32 - 1, 7, 256, 4096
    )


@scenario
def an_array_is_the_address_of_its_elements() -> Any:
    data = array(1)
    module()["tile"](data, 1, 64)
    return data.data_ptr()


@scenario
def axes_in_any_order() -> Any:
    module()["copy"](array(), array(), 5, 64, 3)


@scenario
def a_null_pointer_and_a_whole_number_as_a_float() -> Any:
    module()["every_type"](0, None, 0, 3, 0, False, 4, 0, 0, 1, 1, 0)


@scenario
def an_empty_grid() -> Any:
    module()["tile"](array(), 0, 64)


@scenario
def launches_on_the_current_stream() -> Any:
    device, data, kernels = tvm.rocm(0), array(), module()
    stream = device.create_raw_stream()
    device.set_raw_stream(stream)
    try:
        kernels["tile"](data, 1, 64)
    finally:
        device.set_raw_stream(0)
        device.free_raw_stream(stream)


@scenario
def a_module_is_loaded_once_for_each_device() -> Any:
    kernels = module()
    for device in (0, 1, 0):
        kernels["tile"](array(device), 1, 64)
        kernels["tile"](array(device), 2, 64)


@scenario
def times_by_events() -> Any:
    kernels = module()
    timed = kernels.time_evaluator("tile", tvm.rocm(0), number=2, repeat=1)
    return timed(array(), 1, 64).mean


@scenario
def a_module_tells_what_it_holds() -> Any:
    kernels = module()
    return kernels.kind, kernels.is_runnable(), kernels.inspect_source("hsaco")


@scenario
def a_module_is_saved_as_it_was() -> Any:
    pack = tvm_ffi.get_global_func("runtime.ModulePackImportsToTensor")
    return module_bytes(KERNELS) in pack(module()).numpy().tobytes()


@scenario
def which_functions_there_are() -> Any:
    kernels = module()
    return [kernels.implements_function(name) for name in ("tile", "copy", "nothing")]


@scenario
def two_threads() -> Any:
    kernels = module()
    failures: list[tuple[int, int | str]] = []

    def work(device: int) -> None:
        try:
            for n in range(1, 21):
                data = array(device, n)
                kernels["tile"](data, n, 64)
                if data.numpy().tolist() != list(range(n)):
                    failures.append((device, n))
        except Exception as error:
            failures.append((device, str(error)))

    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures
