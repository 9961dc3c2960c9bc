"""`build`: true launch facts, kernels that a real chip runs right, errors instead of aborts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import te
from tvm.s_tir import Schedule
from tvm.script import tirx as T  # noqa: N812
from tvm.tirx import PrimFunc, Var

import mfmadsl
from mfmadsl.backend import CodegenError, Kernel, LoweringError, build
from mfmadsl.emulator.text.registers import Registers
from mfmadsl.language import find
from mfmadsl.schedule import load_intrinsic, matmul
from tests.schedule.simple import simple_schedule

HALF = find("mfma_f32_16x16x16_f16")
NEWER = ["gfx90a", "gfx942", "gfx950"]


def half_schedule(waves: int, shape: tuple[int, int, int] = (256, 256, 64)) -> Schedule:
    """A GEMM of blocks of some waves along M."""
    tile = load_intrinsic(HALF)
    workload = matmul(*shape, "float16", "float32")
    return simple_schedule(workload, tile, [None, 1, waves, 1, 1], [None, 1, 1, 2, 1], [None, 2, 1])


def instructions(kernel: Kernel) -> Iterator[str]:
    """The code of a kernel, without labels, directives and comments."""
    for line in kernel.assembly.splitlines():
        code = line.split(";")[0].strip()
        if code and not code.startswith((".", "s_endpgm")) and not code.endswith(":"):
            yield code


def unordered_barriers(kernel: Kernel) -> int:
    """Barriers that are passed while an LDS access of the wave may still be in flight."""
    in_flight, count = False, 0
    for code in instructions(kernel):
        if code.startswith("ds_"):
            in_flight = True
        elif code.startswith("s_waitcnt") and "lgkmcnt(0)" in code:
            in_flight = False
        elif code == "s_barrier":
            count += in_flight
    return count


@pytest.mark.parametrize("waves", [1, 8, 16])
def test_a_block_gets_its_true_size(waves: int) -> None:
    kernel = build(half_schedule(waves), "gfx942")
    threads = 64 * waves
    assert kernel.block == (64, waves, 1)
    assert f'"amdgpu-flat-work-group-size"="{threads},{threads}"' in kernel.llvm_ir
    assert f".max_flat_workgroup_size: {threads}\n" in kernel.assembly
    gemm = mfmadsl.Gemm(HALF, "gfx942", 256, 256, 64, shared_scope="shared")
    assert gemm.check(kernel).agrees


def test_only_where_a_pass_places_tiles_llvm_may_join_accesses_of_the_lds() -> None:
    told = '"target-features"="-unaligned-access-mode"'
    assert told in build(lds_kernel(64)).llvm_ir
    placed = build(half_schedule(4))
    assert not placed.remarks
    assert told not in placed.llvm_ir


@pytest.mark.parametrize("arch", NEWER)
def test_no_lds_access_is_in_flight_when_a_barrier_is_passed(arch: str) -> None:
    kernel = build(half_schedule(4), arch)
    assert sum(code == "s_barrier" for code in instructions(kernel)) >= 2
    assert unordered_barriers(kernel) == 0


@pytest.mark.parametrize("arch", NEWER)
def test_and_without_the_fences_one_would_be(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mfmadsl.backend.gpu.build"], "fence_barriers", lambda ir: ir)
    assert unordered_barriers(build(half_schedule(4), arch)) > 0


def test_a_barrier_does_not_wait_for_global_loads() -> None:
    fenced = re.findall(r"s_waitcnt ([^\n]*)\n\ts_barrier", build(half_schedule(4)).assembly)
    assert fenced
    assert not any("vmcnt" in wait for wait in fenced)


def test_the_launch_and_the_arguments_are_described() -> None:
    kernel = build(half_schedule(4), "gfx90a")
    assert kernel.grid == (32, 1, 1)
    assert kernel.lds_bytes == (64 + 32) * 32 * 2
    assert [(a.name, a.dtype, a.shape) for a in kernel.arguments] == [
        ("A", "float16", (256, 64)),
        ("B", "float16", (64, 256)),
        ("C", "float32", (256, 256)),
    ]
    assert kernel.registers.vector > 16
    assert kernel.registers.spilled == kernel.registers.scratch_bytes == 0
    assert f"{kernel.symbol}:" in kernel.assembly
    assert f"@{kernel.symbol}(" in kernel.llvm_ir


def test_the_code_object_is_an_elf_for_the_gpu() -> None:
    code = build(half_schedule(1), "gfx942").code_object
    assert code is not None
    assert code[:4] == b"\x7fELF"
    assert code[18] == 224  # EM_AMDGPU


def test_arguments_keep_their_order_whatever_their_names() -> None:
    z, a = (te.placeholder((64,), name=name, dtype="float32") for name in "za")
    m = te.compute((64,), lambda i: z[i] - a[i], name="m")
    sch = Schedule(te.create_prim_func([z, m, a]))
    sch.bind(sch.get_loops(sch.get_sblock("m"))[0], "threadIdx.x")
    kernel = build(sch, "gfx90a")
    assert [argument.name for argument in kernel.arguments] == ["z", "m", "a"]
    left, right = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    result = np.zeros(64, np.float32)
    mfmadsl.emulate(kernel, [left, result, right])
    assert (result == left - right).all()


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        ("x x c n m", "x x_1 c n m"),
        ("x x x x x", "x x_1 x_2 x_3 x_4"),
        ("x x x_1 n m", "x x_2 x_1 n m"),
        ("x y m n m", "x y m n m_1"),
        ("x y c m m", "x y c m m_1"),
        ("x y c x x_1", "x y c x_2 x_1"),
        ("x y c x_ptr y_ptr", "x y c x_ptr y_ptr"),
        ("x_ptr x c n m", "x_ptr x c n m"),
    ],
)
def test_what_has_one_name_is_told_apart(names: str, apart: str) -> None:
    a_name, b_name, c_name, n_name, m_name = names.split()
    n = te.var(n_name)
    a, b = (te.placeholder((n, 64), name=name, dtype="float32") for name in (a_name, b_name))
    m = te.compute((n, 64), lambda i, j: a[i, j] * 2, name=m_name)
    c = te.compute((n, 64), lambda i, j: m[i, j] - b[i, j], name=c_name)
    sch = Schedule(te.create_prim_func([a, b, c]))
    for block in sch.get_child_blocks(sch.get_sblock("root")):
        row, column = sch.get_loops(block)
        sch.bind(row, "blockIdx.x")
        sch.bind(column, "threadIdx.x")
    kernel = build(sch)
    (workspace,) = kernel.workspaces
    (symbol,) = kernel.symbols
    found = [*(argument.name for argument in kernel.arguments), symbol.name, workspace.name]
    assert found == apart.split()
    left = np.arange(5 * 64, dtype=np.float32).reshape(5, 64)
    right, result = np.ones((5, 64), np.float32), np.zeros((5, 64), np.float32)
    mfmadsl.sanitize(kernel, [left, right, result])
    np.testing.assert_array_equal(result, left * 2 - right)


def test_a_product_of_arguments_of_one_name() -> None:
    a = te.placeholder((32, 48), name="x", dtype="float16")
    b = te.placeholder((64, 48), name="x", dtype="float16")
    k = te.reduce_axis((0, 48), name="k")
    c = te.compute(
        (32, 64),
        lambda i, j: te.sum(a[i, k].astype("float32") * b[j, k].astype("float32"), axis=[k]),
        name="x",
    )
    kernel = build(mfmadsl.gemm_schedule(te.create_prim_func([a, b, c])))
    assert [argument.name for argument in kernel.arguments] == ["x", "x_1", "x_2"]
    generator = np.random.default_rng(0)
    left, right = (generator.integers(-3, 4, (n, 48)).astype(np.float16) for n in (32, 64))
    result = np.zeros((32, 64), np.float32)
    mfmadsl.sanitize(kernel, [left, right, result])
    np.testing.assert_array_equal(result, left.astype(np.float32) @ right.T.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("bfloat16", "gfx90a"), ("float8_e4m3fnuz", "gfx942"), ("float8_e4m3fn", "gfx950"),
        ("float8_e4m3fn", "gfx942"), ("float8_e5m2", "gfx942"), ("float8_e4m3fnuz", "gfx950"),
        ("float8_e5m2fnuz", "gfx908"), ("float8_e4m3fn", "gfx90a"),
    ],
)  # fmt: skip
def test_narrow_floats_can_be_added_without_matrix_cores(name: str, arch: str) -> None:
    a, b = (te.placeholder((256,), name=letter, dtype=name) for letter in "ab")
    c = te.compute((256,), lambda i: a[i] + b[i], name="c")
    sch = Schedule(te.create_prim_func([a, b, c]))
    block, thread = sch.split(sch.get_loops(sch.get_sblock("c"))[0], [4, 64])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    dtype = np.dtype(getattr(ml_dtypes, name))
    left = np.linspace(-4, 4, 256).astype(dtype)
    right, result = np.linspace(1, 2, 256).astype(dtype), np.zeros(256, dtype)
    mfmadsl.emulate(build(sch, arch), [left, right, result])
    expected = (left.astype(np.float32) + right.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


def test_an_instruction_that_the_chip_lacks_is_an_exception_and_the_process_lives() -> None:
    byte = find("mfma_i32_16x16x16_i8")
    schedule = mfmadsl.Gemm(byte, "gfx90a", 64, 64, 64, shared_scope="shared").schedule()
    process = os.getpid()
    with pytest.raises(
        CodegenError, match=r"gfx942: the chip has no `llvm\.amdgcn\.mfma\.i32\.16x16x16i8`"
    ):
        build(schedule, "gfx942")
    assert os.getpid() == process
    assert build(schedule, "gfx90a").registers.vector


def test_too_many_threads_are_refused_before_llvm_sees_them() -> None:
    with pytest.raises(LoweringError, match=r"2048 threads exceeds the 1024 of gfx942"):
        build(threads_kernel(2048), "gfx942")


@pytest.mark.parametrize(("arch", "most"), [("gfx942", 64 * 1024), ("gfx950", 160 * 1024)])
def test_a_workgroup_may_take_all_of_the_lds(arch: str, most: int) -> None:
    assert build(lds_kernel(most // 4), arch).lds_bytes == most
    more = most + 4
    with pytest.raises(LoweringError, match=f"{more} bytes of LDS, more than the {most} of {arch}"):
        build(lds_kernel(more // 4), arch)


def lds_kernel(words: int) -> PrimFunc:
    """A wave that takes so many words of LDS."""

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def turned(first: T.handle, second: T.handle) -> None:
        a = T.match_buffer(first, (64,), "float32")
        b = T.match_buffer(second, (64,), "float32")
        lane = T.launch_thread("threadIdx.x", 64)
        held = T.alloc_buffer((words,), "float32", scope="shared")
        held[lane] = a[lane]
        held[words - 1 - lane] = a[lane]
        b[lane] = held[63 - lane] + held[words - 64 + lane]

    function: PrimFunc = turned
    return function


@pytest.mark.parametrize(("scratch", "kept"), [(0, 3), (16, 1)])
def test_only_what_is_spilled_to_memory_makes_a_kernel_lean(
    scratch: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scalar registers that go to lanes of others cost little."""
    found = iter(Registers(32, 0, 100, spilled, scratch) for spilled in (3, 2, 1))
    module = sys.modules[build.__module__]
    monkeypatch.setattr(module, "used_registers", lambda *_: next(found))
    function = matmul(64, 256, 2048, "float16", "float32", b_transposed=True)
    assert build(mfmadsl.gemm_schedule(function), "gfx942").registers.spilled == kept


def threads_kernel(threads: int) -> PrimFunc:
    a = te.placeholder((threads,), name="a", dtype="float32")
    sch = Schedule(te.create_prim_func([a, te.compute((threads,), lambda i: a[i] + 1, name="b")]))
    sch.bind(sch.get_loops(sch.get_sblock("b"))[0], "threadIdx.x")
    return sch.mod["main"]


def test_a_module_that_is_no_kernel() -> None:
    with pytest.raises(LoweringError, match=r"is computed in no kernel: bind the loops"):
        build(matmul(16, 16, 16, "float16", "float32"))


def test_an_unknown_chip() -> None:
    with pytest.raises(ValueError, match="'gfx1100' is an RDNA chip"):
        build(half_schedule(1), "gfx1100")


def increments(extent: object) -> PrimFunc:
    a = te.placeholder((extent,), name="a", dtype="float32")
    sch = Schedule(te.create_prim_func([a, te.compute(a.shape, lambda i: a[i] + 1, name="b")]))
    block, thread = sch.split(sch.get_loops(sch.get_sblock("b"))[0], [None, 64])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    return sch.mod["main"]


@pytest.mark.parametrize("n", [1, 64, 1000])
def test_a_shape_that_is_known_at_the_launch(n: int) -> None:
    kernel = build(increments(te.var("n")), "gfx942")
    assert [str(extent) for extent in kernel.extents] == ["(n + 63) // 64", "1", "1"]
    a, b = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    mfmadsl.emulate(kernel, [a, b])
    np.testing.assert_array_equal(b, a + 1)
    with pytest.raises(ValueError, match="grid of `main_kernel` depends on n"):
        _ = kernel.grid
    with pytest.raises(ValueError, match=r"n is \d+ in a, and 7 in b; the arguments are \(a, b"):
        mfmadsl.emulate(kernel, [a, np.zeros(7, np.float32)])


def test_a_view_of_shared_memory_is_refused_since_tvm_would_miscompile_it() -> None:
    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def view(first: T.handle, second: T.handle) -> None:
        a = T.match_buffer(first, (64,), "float32")
        b = T.match_buffer(second, (64,), "float32")
        lane = T.launch_thread("threadIdx.x", 64)
        whole = T.alloc_buffer((64,), "float32", scope="shared")
        part = T.decl_buffer((64,), "float32", data=whole.data, scope="shared")
        part[lane] = a[63 - lane]
        b[lane] = part[lane]

    with pytest.raises(LoweringError, match="give each its own allocation"):
        build(view)


@pytest.mark.parametrize(
    ("called", "message"),
    [
        ("foo", "the kernel calls `foo`, a function that the GPU does not have"),
        ("llvm.amdgcn.mfma.f32.8x32x16.f16", "LLVM has no intrinsic `llvm.amdgcn.mfma.f32.8x32x16"),
    ],
)
def test_a_call_of_a_function_that_is_nowhere(called: str, message: str) -> None:
    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def calling(a: T.handle) -> None:
        A = T.match_buffer(a, (64,), "float32")  # noqa: N806
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("x"):
                v = T.axis.spatial(64, i)
                A[v] = T.call_pure_extern("float32", called, A[v])

    with pytest.raises(LoweringError, match=message):
        build(calling, "gfx942")


def built_product(rows: int | Var, depth: int | Var) -> Kernel:
    """Of A, rows x depth, and 32 rows of B."""
    shapes = {"A": (rows, depth), "B": (32, depth)}
    a, b = (te.placeholder(shape, name=name, dtype="float16") for name, shape in shapes.items())
    r = te.reduce_axis((0, depth), name="r")
    c = te.compute(
        (rows, 32),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    return build(mfmadsl.gemm_schedule(te.create_prim_func([a, b, c])))


def test_of_no_rows_nothing_is_launched() -> None:
    kernel = built_product(te.var("m"), 64)
    args = [np.zeros(shape, np.float16) for shape in ((0, 64), (32, 64))]
    result = np.zeros((0, 32), np.float32)
    assert kernel.launches([*args, result]) == []
    assert mfmadsl.emulate(kernel, [*args, result]).waves == 0
    assert mfmadsl.sanitize(kernel, [*args, result]).faults == ()
    with pytest.raises(mfmadsl.ArgumentError, match="result has no elements"):
        mfmadsl.profile(kernel, [*args, result])
    with pytest.raises(mfmadsl.ArgumentError, match="m is 0 in A, and 1 in C"):
        kernel.launches([*args, np.zeros((1, 32), np.float32)])


def test_a_sum_of_nothing_is_refused_by_the_name_of_its_extent() -> None:
    kernel = built_product(16, te.var("k"))
    args = [np.zeros((rows, 0), np.float16) for rows in (16, 32)]
    with pytest.raises(mfmadsl.ArgumentError, match="argument A: k is 0, and `main_kernel` is for"):
        kernel.launches([*args, np.zeros((16, 32), np.float32)])


@pytest.mark.parametrize(("rows", "fits"), [((1 << 31) - 1, True), (1 << 31, False)])
def test_a_tile_spans_less_than_offsets_of_31_bits_can_tell(rows: int, fits: bool) -> None:
    kernel = replace(build(threads_kernel(64)), spans=(("a", rows),))
    args = [np.zeros(64, np.float32), np.zeros(64, np.float32)]
    if fits:
        assert len(kernel.launches(args)) == 1
    else:
        with pytest.raises(mfmadsl.ArgumentError, match=f"argument a: a tile spans {rows} bytes"):
            kernel.launches(args)


@pytest.mark.parametrize(
    ("called", "symbol"),
    [("decode", "decode_kernel"), ("fused matmul.1", "fused_matmul_1_kernel"), ("2", "_2_kernel")],
)
def test_a_kernel_is_called_as_its_function_is(called: str, symbol: str) -> None:
    function = increments(64)
    named = build(function.with_attr("global_symbol", called))
    of_module = build(tvm.IRModule({called: function.without_attr("global_symbol")}))
    assert named.symbol == of_module.symbol == symbol
    assert f"\n{symbol}:" in named.assembly


def test_a_function_without_a_symbol_is_built() -> None:
    kernel = build(increments(64).without_attr("global_symbol"))
    assert kernel.symbol == "main_kernel"
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    mfmadsl.emulate(kernel, [a, b])
    np.testing.assert_array_equal(b, a + 1)


def test_arguments_of_one_name_are_told_apart_by_their_places() -> None:
    """As `relax.op.split` makes them: three results, all of them `part`."""
    x = te.placeholder((64, 12), "float32", name="x")

    def part(number: int) -> te.Tensor:
        return te.compute((64, 4), lambda i, j: x[i, 4 * number + j], name="part")

    parts = [part(number) for number in range(3)]
    sch = Schedule(te.create_prim_func([x, *parts]))
    for block in sch.get_child_blocks(sch.get_sblock("root")):
        sch.bind(sch.get_loops(block)[0], "threadIdx.x")
    kernel = build(sch)
    assert [a.name for a in kernel.arguments] == ["x", "part", "part_1", "part_2"]
    given = np.arange(64 * 12, dtype=np.float32).reshape(64, 12)
    results = [np.full((64, 4), 99, np.float32) for _ in parts]
    mfmadsl.emulate(kernel, [given, *results])
    for found, wanted in zip(results, np.split(given, 3, axis=1), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("version", "abi"), [(5, 3), (6, 4)])
def test_the_version_of_the_code_object_is_the_one_that_is_asked_for(
    version: int, abi: int
) -> None:
    """ELFABIVERSION_AMDGPU_HSA_V5 and V6 (LLVM, "User Guide for AMDGPU Backend", ELF Header)."""
    kernel = build(increments(64), code_object_version=version)
    assert kernel.code_object_version == version
    assert kernel.code_object is not None
    assert kernel.code_object[8] == abi
    assert build(increments(64)).code_object_version == 5


@pytest.mark.parametrize("version", [4, 7, True, "5"])
def test_other_versions_are_refused(version: object) -> None:
    with pytest.raises(mfmadsl.ArgumentError, match="code_object_version: "):
        build(increments(64), code_object_version=version)  # type: ignore[arg-type]


def test_the_text_for_llvm_is_the_same_each_time() -> None:
    """TVM names memory by where its buffers are, which is elsewhere for each build."""
    first, second = (build(half_schedule(4)) for _ in range(2))
    assert "tbaa" in first.llvm_ir
    assert '"0x' not in first.llvm_ir
    assert (first.llvm_ir, first.optimized) == (second.llvm_ir, second.optimized)
