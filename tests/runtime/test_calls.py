"""What `tvm.rocm` asks of HIP, call by call, and what it says when HIP refuses."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime.conftest import Run

pytestmark = pytest.mark.xdist_group("runtime")

Told = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module", params=["the compiler on PATH", "ziglang"])
def told(run: Run, request: pytest.FixtureRequest, tmp_path_factory: Any) -> Told:
    """What a scenario did; all of them run in one process, in their order."""
    own = {}
    if request.param == "ziglang":  # which is taken where there is no other
        own = {"PATH": "/nowhere", "MFMADSL_CACHE": str(tmp_path_factory.mktemp("ziglang"))}
    done = run("-W", "error::UserWarning", "-m", "tests.runtime.told", **own)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert len(found) > 40
    return found.__getitem__


def test_the_device_tells_what_hip_tells(told: Told) -> None:
    assert told("attributes")["value"] == {
        "exist": True,
        "max_threads_per_block": 2056,
        "warp_size": 2087,
        "max_shared_memory_per_block": 2074,
        "compute_version": "gfx90a",
        "device_name": "Stand-in 1",
        "max_clock_rate": 2005,
        "multi_processor_count": 2063,
        "max_thread_dimensions": [2026, 2027, 2028],
        "api_version": 60443483,
        "driver_version": "60443484",
        "l2_cache_size_bytes": 2019,
        "total_global_memory": 2 << 37,
        "available_global_memory": 2 << 36,
    }
    assert told("attributes")["calls"] == ["hipSetDevice 1", "hipSetDevice 0"]  # free memory
    assert told("a_device_that_is_not_there")["value"] == [False, False]
    assert told("devices_that_are_hidden")["value"] == [False, True, True]  # from one thread


def test_a_target_is_for_the_chip_that_is_there(told: Told) -> None:
    assert told("targets")["value"] == ["gfx942", "gfx942"]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("copies_to_and_from_the_host",
         ["hipMalloc 16", "hipMemcpy 16 kind 1", "hipDeviceSynchronize", "hipMemcpy 16 kind 2",
          "hipDeviceSynchronize", "hipFree"]),
        ("memory_of_another_device",
         ["hipSetDevice 1", "hipMalloc 16", "hipSetDevice 0",
          "hipSetDevice 1", "hipMemcpy 16 kind 1", "hipSetDevice 0",
          "hipSetDevice 1", "hipDeviceSynchronize", "hipSetDevice 0",
          "hipSetDevice 1", "hipMemcpy 16 kind 2", "hipSetDevice 0",
          "hipSetDevice 1", "hipDeviceSynchronize", "hipSetDevice 0",
          "hipSetDevice 1", "hipFree", "hipSetDevice 0"]),
        ("nothing_to_allocate", ["hipDeviceSynchronize"]),
        ("copies_follow_the_current_stream",
         ["hipMalloc 16", "hipMemcpy 16 kind 1", "hipDeviceSynchronize", "hipStreamCreate 1",
          "hipMemcpyAsync 16 kind 2 stream 1", "hipStreamSynchronize 1", "hipDeviceSynchronize",
          "hipStreamDestroy 1", "hipFree"]),
        ("waits_for_a_stream_or_for_all",
         ["hipStreamCreate 1", "hipStreamSynchronize 1", "hipDeviceSynchronize",
          "hipStreamDestroy 1"]),
        ("one_stream_waits_for_another",
         ["hipSetDevice 1", "hipStreamCreate 1", "hipSetDevice 0",
          "hipSetDevice 1", "hipStreamCreate 2", "hipSetDevice 0",
          "hipSetDevice 1", "hipEventCreateWithFlags 3 flags 2", "hipEventRecord 3 stream 1",
          "hipStreamWaitEvent 2 event 3 flags 0", "hipEventDestroy 3", "hipSetDevice 0"]),
    ],
)  # fmt: skip
def test_memory_and_streams(told: Told, name: str, calls: list[str]) -> None:
    assert told(name)["calls"] == calls
    assert told(name)["error"] is None
    if "copies" in name or "memory" in name:
        assert told(name)["value"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("copies_within_a_device", "hipMemcpy 16 kind 3"),
        ("copies_between_devices", "hipMemcpyPeerAsync 16 0 -> 1 stream 0"),
        ("memory_of_the_host_that_the_gpu_reads", "hipHostMalloc 16 0"),
    ],
)
def test_other_copies(told: Told, name: str, copy: str) -> None:
    assert copy in told(name)["calls"]
    assert told(name)["value"] == [0, 1, 2, 3]


def launches(did: dict[str, Any]) -> list[str]:
    name = "hipModuleLaunchKernel "
    return [call.removeprefix(name) for call in did["calls"] if call.startswith(name)]


def test_arguments_lie_as_in_a_struct_of_c(told: Told) -> None:
    values = (-2, 0x1122334455667788, 65535, 1.5, -(2**40), True, 2.25, -3, 2**32 - 1)
    block = struct.pack("@bPHfq?diI", *values).hex()
    assert launches(told("every_type_of_argument")) == [
        f"every_type grid 7 1 1 block 256 1 1 lds 4096 stream 0 on 0: {block}"
    ]
    block = struct.pack("@bPHfq?diI", 0, 0, 0, 3.0, 0, False, 4.0, 0, 0).hex()
    assert launches(told("a_null_pointer_and_a_whole_number_as_a_float")) == [
        f"every_type grid 1 1 1 block 1 1 1 lds 0 stream 0 on 0: {block}"
    ]


def test_a_kernel_runs_where_its_arrays_lie(told: Told) -> None:
    did = told("an_array_is_the_address_of_its_elements")
    block = struct.pack("P", did["value"]).hex()
    assert launches(did) == [f"tile grid 1 1 1 block 64 1 1 lds 0 stream 0 on 1: {block}"]
    at = did["calls"].index(next(c for c in did["calls"] if c.startswith("hipModuleLaunch")))
    assert did["calls"][at + 1] == "hipSetDevice 0"


def test_a_launch_follows_its_tags(told: Told) -> None:
    (launch,) = launches(told("axes_in_any_order"))
    assert launch.startswith("copy grid 1 3 5 block 1 64 1 lds 0 ")
    (launch,) = launches(told("launches_on_the_current_stream"))
    assert " stream 1 " in launch
    assert told("an_empty_grid")["error"] is None
    assert launches(told("an_empty_grid")) == []


def test_a_module_is_loaded_when_it_is_used_and_unloaded_at_its_end(told: Told) -> None:
    did = told("a_module_is_loaded_once_for_each_device")
    calls = [c for c in did["calls"] if c.startswith(("hipModule", "hipDeviceSynchronize"))]
    of_modules = [c for c in calls if not c.startswith("hipModuleLaunch") and "Sync" not in c]
    assert of_modules == [
        "hipModuleLoadData 1", "hipModuleGetFunction 1 tile",
        "hipModuleLoadData 2", "hipModuleGetFunction 2 tile",
        "hipModuleUnload 1", "hipModuleUnload 2",
    ]  # fmt: skip
    assert len(launches(did)) == 6
    assert calls[calls.index("hipModuleUnload 1") - 1] == "hipDeviceSynchronize"


def test_time_is_that_between_two_events(told: Told) -> None:
    did = told("times_by_events")
    assert did["value"] == pytest.approx(0.25e-3 / 2)  # two launches
    assert [c for c in did["calls"] if "Event" in c][-4:] == [
        "hipEventSynchronize 3", "hipEventElapsedTime 2 to 3", "hipEventDestroy 2",
        "hipEventDestroy 3",
    ]  # fmt: skip


def test_a_module_is_what_it_was_loaded_from(told: Told) -> None:
    assert told("a_module_is_saved_as_it_was")["value"] is True
    kind, runnable, code = told("a_module_tells_what_it_holds")["value"]
    assert (kind, runnable, code) == ("hip", True, "\x7fELF, but no more")
    assert told("which_functions_there_are")["value"] == [True, True, False]
    assert told("bytes_that_are_no_module")["value"] == []


def test_two_threads_do_not_disturb_each_other(told: Told) -> None:
    did = told("two_threads")
    assert did["value"] == []
    for launch in launches(did):
        assert launch.startswith("tile grid ")
    assert sum(" on 0: " in launch for launch in launches(did)) == 20
    assert sum(" on 1: " in launch for launch in launches(did)) == 20


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("code_of_another_kind",
         "ArgumentError: a module for GPUs of AMD holds a code object (hsaco), not spirv"),
        ("too_few_arguments",
         "ArgumentError: tile takes 3 arguments (1 of its own, then grid and block), not 1"),
        ("memory_of_the_host_for_a_kernel",
         "ArgumentError: argument 1 of tile is an array on a GPU of AMD, such as one of "
         "tvm.rocm(0)"),
        ("arrays_on_two_devices",
         "ArgumentError: argument 2 of copy lies on another GPU than those before it"),
        ("a_float_for_an_integer", "ArgumentError: argument 1 of every_type is an integer"),
        ("a_number_with_more_bits_than_its_argument",
         "ArgumentError: argument 1 of every_type has 8 bits, too few for 256"),
        ("columns_of_an_array",
         "ArgumentError: argument 1 of tile is strided: a kernel takes elements that lie row by "
         "row"),
        ("a_text_for_a_float", "ArgumentError: argument 4 of every_type is a number"),
        ("a_negative_grid",
         "ArgumentError: argument 2 of tile, of the launch, is a number from 0 to 2^32 - 1"),
        ("a_type_that_is_not_passed",
         "ArgumentError: half: an argument of type float16 cannot be given to a kernel; pass "
         "integers, float32, float64 or arrays"),
        ("a_launch_of_another_kind",
         "ArgumentError: together: a launch with tirx.use_cooperative_launch is not known on GPUs "
         "of AMD"),
        ("a_kernel_that_the_code_object_lacks",
         "HipError: hipModuleGetFunction of missing: hipErrorNotFound (what it means)"),
        ("a_code_object_that_is_none",
         "HipError: hipModuleLoadData: hipErrorOther (what it means)"),
        ("a_code_object_for_another_chip",
         "HipError: hipModuleLoadData: hipErrorNoBinaryForGpu (what it means): the code object is "
         "made for gfx950, and rocm:0 is a gfx942; build it for that"),
        ("no_memory_left",
         "HipError: hipMalloc of 4096 bytes on rocm:1: hipErrorOutOfMemory (out of memory)"),
        ("a_launch_that_fails",
         "HipError: hipModuleLaunchKernel of tile (grid 3 x 1 x 1, block 64 x 1 x 1, 0 bytes of "
         "LDS besides): hipErrorLaunchFailure (what it means)"),
        ("use_of_a_device_that_is_not_there",
         "HipError: hipSetDevice of rocm:7: hipErrorInvalidDevice (what it means)"),
    ],
)  # fmt: skip
def test_what_is_refused_says_what_and_why(told: Told, name: str, error: str) -> None:
    did = told(name)
    assert did["error"] == error
    assert error.startswith("Arg") or "hipGetLastError" in did["calls"]  # none is left behind


def test_a_broken_device_does_not_end_the_process(told: Told) -> None:
    did = told("memory_that_is_not_freed")
    assert did["error"] is None
    assert did["calls"][-3:] == ["hipFree", "hipSetDevice 1", "hipGetLastError"]


def test_without_a_gpu_there_is_no_device(told: Told) -> None:
    assert told("no_gpu_at_all")["value"] is False
