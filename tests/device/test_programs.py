"""Programs of users, with the emulated GPU in the place of a real one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mfmadsl.device import run_program
from mfmadsl.device.library import hip_library
from mfmadsl.model import PRODUCTS
from tests.device.kernels import code_object

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Told:
    """What a program printed as JSON, what the emulated GPU said beside it, and the exit code."""

    printed: dict[str, Any]
    said: str
    code: int

    def __getitem__(self, name: str) -> Any:
        return self.printed[name]


def on_device(*command: object, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """`mfmadsl device OPTIONS -- COMMAND`."""
    line = [sys.executable, "-m", "mfmadsl", "device", *options, "--", *map(str, command)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A folder with each kernel's code object, under its name."""
    for name in ("scaled", "numbered", "followed", "raced", "described", "variables"):
        (tmp_path / name).write_bytes(code_object(name))
    return tmp_path


def accesses(stored: Path, name: str, *how: int, options: tuple[str, ...] = ()) -> Told:
    done = on_device(
        sys.executable, PROGRAMS / "accesses.py", stored / name, name, *how, options=options
    )
    return Told(json.loads(done.stdout), done.stderr, done.returncode)


def test_a_c_program_computes_on_the_device(stored: Path) -> None:
    program = stored / "program"
    folder = hip_library()
    compiler = shutil.which("cc") or shutil.which("gcc")
    command = [compiler] if compiler else [sys.executable, "-m", "ziglang", "cc"]
    subprocess.run(
        [*command, PROGRAMS / "scaled.c", "-o", program, f"-L{folder}", "-lamdhip64"], check=True
    )
    done = on_device(program, stored / "scaled")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "1 device, waves of 64",
        "arguments by pointers: 0 differ",
        "arguments in a buffer: 0 differ",
        "time went on: yes",
    ]


def test_a_program_that_compiles_its_kernels_finds_them() -> None:
    done = on_device(sys.executable, "-m", "tests.device.programs.runtime_compiled")
    assert (done.stdout, done.stderr) == ("all calls are right\n", "")


def test_threads_with_streams_of_their_own_find_their_numbers(stored: Path) -> None:
    done = on_device(sys.executable, PROGRAMS / "threads.py", stored / "scaled")
    assert (done.stdout, done.stderr) == ("[True, True, True, True]\n", "")


def test_every_call_that_fails_tells_its_error(stored: Path) -> None:
    done = on_device(sys.executable, PROGRAMS / "errors.py", stored / "numbered", "numbered")
    assert done.stdout == "every call told its error\n", done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("options", [(), ("--sanitize",)])
def test_no_function_crashes_that_is_given_nothing(options: tuple[str, ...]) -> None:
    done = on_device(sys.executable, PROGRAMS / "nothing.py", options=options)
    assert (done.returncode, done.stdout.split()[1:]) == (0, ["functions", "took", "nothing"])


@pytest.mark.parametrize(
    ("program", "kernels"),
    [("graphs", ["scaled"]), ("memory", ["numbered", "described"]), ("threads", ["scaled"]),
     ("variables", ["variables"])],
)  # fmt: skip
def test_programs_that_are_right_are_not_accused(
    program: str, kernels: list[str], stored: Path
) -> None:
    command = sys.executable, "-m", f"tests.device.programs.{program}"
    done = on_device(*command, *(stored / each for each in kernels), options=("--sanitize",))
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_and_launches_of_all_kinds(stored: Path) -> None:
    objects = (stored / "numbered", stored / "described")
    done = on_device(sys.executable, PROGRAMS / "memory.py", *objects)
    assert (done.returncode, done.stdout) == (0, "all right\n"), done.stderr


def test_a_kernel_follows_pointers_in_memory(stored: Path) -> None:
    done = on_device(sys.executable, PROGRAMS / "followed.py", stored / "followed")
    assert done.stdout == "right\n", done.stderr


def test_tritons_own_launcher_runs_its_kernels() -> None:
    done = on_device(sys.executable, PROGRAMS / "triton_sum.py", options=("--sanitize",))
    assert (done.returncode, done.stdout) == (0, "0 differ\n"), done.stderr


def test_graphs_by_their_nodes_and_by_capture(stored: Path) -> None:
    done = on_device(sys.executable, "-m", "tests.device.programs.graphs", stored / "scaled")
    assert (done.returncode, done.stdout) == (0, "all graphs are right\n"), done.stderr


def test_variables_and_constants_of_a_module(stored: Path) -> None:
    done = on_device(sys.executable, "-m", "tests.device.programs.variables", stored / "variables")
    assert (done.returncode, done.stdout) == (0, "all variables are right\n"), done.stderr


def test_pools_virtual_memory_arrays_and_several_devices(stored: Path) -> None:
    """Its last kernel reaches for memory of a device that it may not reach: exit code 1."""
    command = sys.executable, "-m", "tests.device.programs.resources", stored / "scaled"
    done = on_device(*command, options=("--devices", "2"))
    assert (done.returncode, done.stdout) == (1, "all resources are right\n"), done.stderr


@pytest.fixture(scope="module")
def iree_module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What IREE's compiler makes of a product."""
    made = tmp_path_factory.mktemp("iree") / "product.vmfb"
    source, target = PROGRAMS / "product.mlir", "--iree-rocm-target=gfx942"
    compiler = Path(sys.executable).with_name("iree-compile")
    options = "--iree-hal-target-device=hip", target, "-o", str(made)
    subprocess.run([compiler, *options, source], check=True)
    return made


@pytest.mark.parametrize("streams", ["true", "false"])
def test_irees_own_runtime_runs_a_product(iree_module: Path, streams: str) -> None:
    done = on_device(sys.executable, PROGRAMS / "iree_product.py", iree_module, streams)
    assert (done.returncode, done.stdout) == (0, "0 differ\n"), done.stderr


@pytest.mark.thorough
def test_a_kernel_reaches_what_is_allocated(stored: Path) -> None:
    told = accesses(stored, "numbered", 520, 8)
    assert told["memory"] == [0, 0, *range(128)]
    assert (told["launch"], told["synchronize"]) == ("hipSuccess", "hipSuccess")


@pytest.mark.parametrize(("allocated", "offset"), [(508, 0), (512, 4), (512, -4), (512, 1 << 20)])
def test_what_lies_outside_of_an_allocation_is_out_of_reach(
    stored: Path, allocated: int, offset: int
) -> None:
    told = accesses(stored, "numbered", allocated, offset)
    assert told.code == 1
    assert told["synchronize"] == told["again"] == "hipErrorLaunchFailure"
    assert "numbered: error[out-of-bounds]: line" in told.said
    assert "lane" in told.said
    assert ("in no allocation: is it freed" in told.said) == (offset == 1 << 20)


def test_the_sanitizer_tells_of_a_race_and_the_program_goes_on(stored: Path) -> None:
    plain = accesses(stored, "raced", 512, 0, 512)
    assert (plain.code, plain.said) == (0, "")
    told = accesses(stored, "raced", 512, 0, 512, options=("--sanitize",))
    assert told.code == 1
    assert told["synchronize"] == "hipSuccess"
    assert "raced: error[race]: line" in told.said
    assert told["memory"] == plain["memory"]


@pytest.mark.thorough
def test_the_log_tells_of_launches_and_of_calls_that_fail(stored: Path) -> None:
    told = accesses(stored, "numbered", 512, 0, 1 << 20, options=("--log",))
    assert "1048576 bytes of LDS beside its own 0, of 65536" in told.said
    assert "hipModuleLaunchKernel: hipErrorLaunchOutOfResources" in told.said
    told = accesses(stored, "numbered", 512, 0, options=("--log",))
    assert "numbered: grid 1 x 1 x 1, block 128 x 1 x 1, 0 bytes of LDS" in told.said


@pytest.mark.thorough
def test_with_a_profile_time_is_that_of_the_model(stored: Path, tmp_path: Path) -> None:
    written = tmp_path / "timeline.json"
    told = accesses(stored, "numbered", 512, 0, options=("--profile", str(written)))
    assert told["memory"] == [*range(128)]
    events = json.loads(written.read_text())["traceEvents"]
    launches = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in launches] == ["numbered", "numbered"]
    first, second = launches
    assert first["dur"] > 0.1  # microseconds
    between = PRODUCTS["MI300X"].launch / 1e3
    assert second["ts"] == pytest.approx(first["ts"] + first["dur"] + between)


def test_a_report_has_a_page_for_each_kernel_and_an_index(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages" / "here"
    told = accesses(stored, "raced", 512, 0, 512, options=("--sanitize", "--report", str(folder)))
    assert told.said.splitlines()[-1] == f"wrote {folder / 'index.html'}"
    names = {"001-raced.s", "001-raced.html", "001-raced-faults.html", "faults.sarif", "index.html"}
    assert {path.name for path in folder.iterdir()} == names
    index = (folder / "index.html").read_text()
    assert [name in index for name in sorted(names)] == [True, True, True, False, False]
    (result,) = json.loads((folder / "faults.sarif").read_text())["runs"][0]["results"]
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    text = (folder / "001-raced.s").read_text().splitlines()
    assert text[line - 1].strip().startswith(("ds_read", "ds_write"))
    # A report takes the place of the one before it, and of nothing else.
    accesses(stored, "numbered", 512, 0, options=("--report", str(folder)))
    names = {"001-numbered.s", "001-numbered.html", "faults.sarif", "index.html"}
    assert {path.name for path in folder.iterdir()} == names
    (folder / "mine.txt").write_text("mine")
    done = on_device(sys.executable, "-c", "", options=("--report", str(folder)))
    assert done.returncode == 1
    assert "has `mine.txt`, which is of no report" in done.stderr
    assert {path.name for path in folder.iterdir()} == {*names, "mine.txt"}


@pytest.mark.thorough
def test_a_place_that_cannot_be_written_is_told_before_the_program_runs(tmp_path: Path) -> None:
    ran, place = tmp_path / "ran", tmp_path / "missing" / "timeline.json"
    options = ("--report", str(tmp_path / "pages"), "--profile", str(place))
    done = on_device("touch", ran, options=options)
    assert (done.returncode, ran.exists()) == (1, False)
    assert f"{place}: cannot be written: No such file or directory" in done.stderr
    done = on_device("touch", ran, options=("--profile", str(tmp_path)))
    assert (done.returncode, ran.exists()) == (1, False)


def test_a_random_order_is_a_launches_own(stored: Path) -> None:
    told = accesses(stored, "numbered", 512, 0, options=("--order", "random", "--seed", "3"))
    assert (told.code, told["memory"]) == (0, [*range(128)])
    done = on_device("true", options=("--order", "backwards"))
    assert done.returncode == 2


def test_a_fault_is_told_under_the_profiler_too(stored: Path, tmp_path: Path) -> None:
    options = ("--profile", str(tmp_path / "timeline.json"))
    told = accesses(stored, "numbered", 508, 0, options=options)
    assert told["synchronize"] == "hipErrorLaunchFailure"
    assert "numbered: error[out-of-bounds]: line" in told.said


@pytest.mark.thorough
def test_a_code_object_for_another_chip_is_refused_by_name(stored: Path) -> None:
    (stored / "numbered").write_bytes(code_object("numbered", "gfx90a"))
    told = accesses(stored, "numbered", 512, 0)
    assert told["launch"] == "hipErrorInvalidDeviceFunction"
    assert "a code object is for gfx90a, but the emulated GPU is a gfx942" in told.said
    assert "mfmadsl device --arch gfx90a" in told.said
    told = accesses(stored, "numbered", 512, 0, options=("--arch", "gfx90a"))
    assert told["memory"] == [*range(128)]


def test_without_the_command_there_is_no_device() -> None:
    library = hip_library() / "libamdhip64.so"
    program = f"import ctypes; print(ctypes.CDLL({str(library)!r}).hipInit(0))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"100\n"


@pytest.mark.parametrize(("code", "ends"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)])
def test_the_exit_code_is_the_programs_own(code: str, ends: int) -> None:
    assert run_program(["sh", "-c", code]).exit_code == ends


def test_what_ends_the_command_ends_the_program(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"trap 'touch {mark}; exit 3' TERM; touch {tmp_path / 'ready'}; sleep 60 & wait"
    line = [sys.executable, "-m", "mfmadsl", "device", "--", "sh", "-c", script]
    process = subprocess.Popen(line)
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait(30) == 3
    assert mark.exists()


def test_a_product_says_which_chip_it_has() -> None:
    program = (
        "import ctypes; h = ctypes.CDLL('libamdhip64.so'); n = ctypes.create_string_buffer(64)"
    )
    program += "; h.hipDeviceGetName(n, 64, 0); print(n.value.decode())"
    done = on_device(sys.executable, "-c", program, options=("--product", "mi355x"))
    assert done.stdout == "MI355X (emulated)\n"
    done = on_device("true", options=("--product", "MI355X", "--arch", "gfx942"))
    assert done.returncode == 2
    assert "--product: MI355X has gfx950, and --arch says gfx942" in done.stderr


def test_a_program_that_is_not_there_is_a_wrong_call() -> None:
    done = on_device("no-such-program")
    assert done.returncode == 2
    assert "there is no program `no-such-program` to start" in done.stderr


def test_an_option_that_there_is_not_is_no_program() -> None:
    for given, hint in (("--chip", "the chip is `--arch`"), ("--prduct=x", "mean `--product`?")):
        done = on_device("true", options=(given, "MI355X"))
        assert done.returncode == 2
        assert f"there is no option `{given.partition('=')[0]}`, but: --arch, " in done.stderr
        assert hint in done.stderr
