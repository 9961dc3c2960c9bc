"""`mfmadsl.triton.use`: programs that call Triton's kernels run on an emulated chip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton

import mfmadsl
from mfmadsl.emulator import EmulationError
from mfmadsl.triton import TritonSession, tensor, use
from mfmadsl.triton.tensor import HostMemory, memory_of, without_overlaps
from tests.triton.programs import accumulated, many, product, scaled, told, tuned


@pytest.fixture
def session() -> Iterator[TritonSession]:
    before = triton.runtime.driver._active
    try:
        yield use("gfx942", sanitize=True)
    finally:
        triton.runtime.driver._active = before


def test_a_kernel_writes_into_the_arrays(session: TritonSession) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    scaled[(4,)](tensor(x), tensor(y), 3.5, 1000, block=256)
    assert (y == 3.5 * x).all()
    (launched,) = session.launches
    assert (launched.symbol, launched.grid, launched.block) == ("scaled", (4, 1, 1), (256, 1, 1))
    assert launched.instructions > 0
    assert launched.faults == ()


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "MI300X"])
def test_products_on_each_chip(session: TritonSession, arch: str) -> None:
    own = use(arch, sanitize=True)
    random = np.random.default_rng(0)
    a = random.integers(-4, 5, (64, 96)).astype(np.float16)
    b = random.integers(-4, 5, (96, 32)).astype(np.float16)
    c = np.zeros((64, 32), np.float32)
    arrays = [tensor(each) for each in (a, b, c)]
    product[(2, 1)](*arrays, 96, *(s for x in arrays for s in x.stride()), m=32, n=32, k=32)
    assert (c == a.astype(np.float64) @ b).all()
    (launched,) = own.launches
    assert (launched.kernel.program.arch, session.launches) == (own.chip.name, [])


def test_views_share_their_memory(session: TritonSession) -> None:
    """Source and target are rows of one array, and the source begins within it."""
    whole = np.arange(40, dtype=np.float32).reshape(4, 10)
    before = whole.copy()
    scaled[(1,)](tensor(whole[1, 2:]), tensor(whole[3]), 2.0, 8, block=16)
    assert (whole[3, :8] == 2 * before[1, 2:]).all()
    assert (whole[:3] == before[:3]).all()


@pytest.mark.parametrize(
    ("kind", "value"),
    [("i8", -3), ("u8", 200), ("i16", -300), ("i32", -70_000), ("i64", 1 << 40), ("u64", 1 << 63),
     ("fp16", 1.5), ("bf16", -2.5), ("fp32", 0.1), ("fp64", 0.1), ("i1", True)],
)  # fmt: skip
def test_numbers_are_packed_as_their_types(kind: str, value: Any) -> None:
    from mfmadsl.triton.arguments import Given, number_bytes

    types = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "fp64": float,
             "i1": bool}  # fmt: skip
    dtype = types.get(kind) or np.dtype(f"{'int' if kind[0] == 'i' else 'uint'}{kind[1:]}")
    packed = number_bytes(Given(kind, "x", value))
    assert packed == np.array(value, dtype).tobytes()


def test_a_number_that_its_type_does_not_hold_is_refused() -> None:
    from mfmadsl.triton.arguments import Given, number_bytes

    with pytest.raises(mfmadsl.ArgumentError, match="argument 2: 300 is not within u8"):
        number_bytes(Given("u8", "argument 2", 300))


def test_many_arguments_in_tuples_and_none(session: TritonSession) -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    many[(1,)]((tensor(x), 5), None, tensor(y), True, block=64)
    assert (y == x + 5 + 1).all()


def test_faults_are_told_with_their_argument(session: TritonSession) -> None:
    x, y = np.arange(100, dtype=np.float32), np.zeros(50, np.float32)
    with pytest.raises(mfmadsl.EmulationError, match="argument 1") as caught:
        scaled[(1,)](tensor(x), tensor(y), 1.0, 100, block=128)
    assert caught.value.fault.kind == "out-of-bounds"
    assert session.launches[-1].faults[0] == caught.value.fault


def test_autotuning_chooses_by_the_model(session: TritonSession) -> None:
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    tuned[lambda meta: (triton.cdiv(4096, meta["block"]),)](tensor(x), tensor(y), 2.0, 4096)
    assert (y == 2 * x).all()
    timed = {x.block[0]: x.profile.on_chip.seconds for x in session.launches if x.profile}
    assert len(timed) == 2
    assert tuned.best_config.num_warps * 64 == min(timed, key=lambda threads: timed[threads])
    assert session.launches[-1].profile is None


@pytest.mark.parametrize("sanitized", [True, False])
def test_printing_and_assertions_of_the_device(
    sanitized: bool, session: TritonSession, capfd: pytest.CaptureFixture[str]
) -> None:
    del session
    use("gfx942", sanitize=sanitized)
    x = np.zeros(128, np.int32)
    told[(2,)](tensor(x), 128, block=64, num_warps=1, debug=True)
    printed = capfd.readouterr()
    lines = sorted(printed.out.splitlines())
    assert lines == sorted(
        f"pid ({group}, 0, 0) idx ({lane:2}) place: {64 * group + lane}"
        for group in (0, 1)
        for lane in range(64)
    )
    assert printed.err == ""
    x[7] = 100
    with pytest.raises(EmulationError, match="trap 2: device assertion failed: 'too large', in "):
        told[(1,)](tensor(x), 64, block=64, num_warps=1, debug=True)
    assert "device assertion failed: 'too large'" in capfd.readouterr().err


def test_do_bench_gives_modelled_times(session: TritonSession) -> None:
    """Of one run, since they have no noise."""
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)

    def launch() -> None:
        scaled[(4,)](tensor(x), tensor(y), 3.5, 1000, block=256)

    (took,) = triton.testing.do_bench(launch, return_mode="all")
    with session.timed() as launches:
        launch()
    (launched,) = launches
    assert launched.profile is not None
    assert took == pytest.approx(launched.profile.on_chip.seconds * 1e3)
    launch()
    assert session.launches[-1].profile is None
    assert len(session.launches) < 15


def test_events_tell_the_time_between_them(session: TritonSession) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    events = triton.runtime.driver.active.get_device_interface()
    first, second, third = (events.Event(enable_timing=True) for _ in range(3))
    first.record()
    scaled[(4,)](tensor(x), tensor(y), 3.5, 1000, block=256)
    second.record()
    scaled[(4,)](tensor(x), tensor(y), 3.5, 1000, block=256)
    third.record()
    assert first.elapsed_time(second) > 0
    assert first.elapsed_time(third) == pytest.approx(2 * first.elapsed_time(second))
    with pytest.raises(mfmadsl.ArgumentError, match="both events must be recorded"):
        first.elapsed_time(events.Event())


def test_what_is_tried_leaves_arrays_as_they_were(session: TritonSession) -> None:
    x, y, total = np.arange(512, dtype=np.int32), np.ones(512, np.int32), np.zeros(1, np.int32)
    accumulated[(2,)](tensor(x), tensor(y), tensor(total), 512)
    assert len(session.launches) > 2
    assert (y == 1 + x).all()
    assert total.tolist() == [x.sum()]


class Far:
    """As a tensor of PyTorch's on a GPU."""

    dtype = triton.language.float32

    def __init__(self, place: str) -> None:
        self.device = type("Place", (), {"type": place})

    def data_ptr(self) -> int:
        return 1 << 20

    def untyped_storage(self) -> Any:
        return type("Storage", (), {"data_ptr": lambda _: 1 << 20, "nbytes": lambda _: 64})()


def test_memory_that_the_emulator_does_not_reach_is_refused(session: TritonSession) -> None:
    y = np.zeros(4, np.float32)
    with pytest.raises(mfmadsl.ArgumentError, match="argument 0: is a tensor on cuda"):
        scaled[(1,)](Far("cuda"), tensor(y), 1.0, 4, block=16)
    assert memory_of("x", Far("cpu")) == HostMemory(1 << 20, 64)
    plain = type("Plain", (), {"dtype": triton.language.float32, "data_ptr": lambda _: 4096})()
    with pytest.raises(mfmadsl.ArgumentError, match="does not tell its memory"):
        scaled[(1,)](plain, tensor(y), 1.0, 4, block=16)
    with pytest.raises(mfmadsl.ArgumentError, match="no type for complex64"):
        tensor(np.zeros(4, np.complex64))
    with pytest.raises(mfmadsl.ArgumentTypeError, match="is a NumPy array"):
        tensor([1.0])  # type: ignore[arg-type]


def test_arrays_that_a_kernel_cannot_take_as_they_are(session: TritonSession) -> None:
    mixed = np.zeros(8, [("name", "u1"), ("value", np.float32)])
    with pytest.raises(mfmadsl.ArgumentError, match="no multiple of their size, 4"):
        tensor(mixed["value"])
    with pytest.raises(mfmadsl.ArgumentError, match="bytes are in the other order"):
        tensor(np.arange(8, dtype=np.dtype(np.float32).newbyteorder()))


def test_arrays_that_are_read_only_are_read_only(session: TritonSession) -> None:
    given = np.frombuffer(bytes(1024), np.float32)
    y = np.ones(256, np.float32)
    scaled[(1,)](tensor(given), tensor(y), 2.0, 256, block=256)
    assert not y.any()
    with pytest.raises(mfmadsl.EmulationError, match=r"writes to argument 1, an array that is r"):
        scaled[(1,)](tensor(y), tensor(given), 2.0, 256, block=256)


def test_memory_that_overlaps_is_one() -> None:
    parts = [
        HostMemory(100, 10),
        HostMemory(40, 20),
        HostMemory(105, 20),
        HostMemory(50, 5),
        HostMemory(200, 0),
    ]
    assert without_overlaps(parts) == [HostMemory(40, 20), HostMemory(100, 25), HostMemory(200, 0)]


def test_chips_that_there_are_not_are_refused() -> None:
    with pytest.raises(mfmadsl.ArgumentError, match="gfx777"):
        use("gfx777")


def test_types_of_arguments_are_those_of_tritons_own_launchers(session: TritonSession) -> None:
    named = triton.runtime.driver.active.map_python_to_cpp_type
    assert [named(each) for each in ("i32", "u8", "fp32")] == ["int32_t", "uint8_t", "double"]
