"""What the modules beside this file share: pairs of any layout, and how they are registered.

Written by `mfmadsl compile` beside the modules that it generates, which import it.
A pair is the description of a tile's work and its implementation by one wave: a TensorIntrin's.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return"
# ruff: noqa: N806, N812 (buffers are called like matrices, and TVMScript `T`)

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tvm import te, tirx
from tvm.s_tir import TensorIntrin
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.tirx import PrimFunc

Index = Any  # an integer, or one of TVM's expressions
Slot = tuple[Index, Index]  # the lane and the element of its registers
Place = tuple[Index, ...]  # tiles, and the slot in one
Pair = tuple[PrimFunc, PrimFunc]
Format = tuple[int, int, int]  # bits of exponent and of mantissa, and the exponent's bias
Named = tuple[str, Callable[[], Pair]]


class Operand(NamedTuple):
    """A tile of a matrix in memory, and the registers of a wave that hold it."""

    dtype: str
    shape: tuple[int, ...]
    """Blocks, if there are several; rows and columns."""
    registers: tuple[int, int]
    """Lanes, and elements of each."""
    slot: Callable[..., Slot]
    """Where a wave holds the element of a block, a row and a column."""

    def of_shared_blocks(self, cbsz: int, abid: int) -> "Operand":
        """A, of which each group of 2**cbsz blocks uses the block `abid`."""

        def slot(block: Index, i: Index, k: Index) -> Slot:
            return self.slot(block // 2**cbsz * 2**cbsz + abid, i, k)

        return self._replace(slot=slot)

    def of_lanes(self, source: Callable[[Index], Index]) -> "Operand":
        """The operand with what lane `source(lane)` holds in place of what `lane` does."""

        def slot(*place: Index) -> Slot:
            lane, register = self.slot(*place)
            return source(lane), register

        return self._replace(slot=slot)


def named(name: str, make: Callable[..., Pair], *arguments: str) -> Named:
    """The TensorIntrin of this name, whose pair is made when it is first taken."""
    return name, partial(make, *arguments)


def tensor_intrins(
    module: str, named: Mapping[str, Named]
) -> tuple[dict[str, str], Callable[[], list[str]], Callable[[str], str]]:
    """Of the TensorIntrins of a module by constant: their names, `register`, and `__getattr__`."""
    taken: set[str] = set()

    def take(constant: str) -> str:
        """Register the TensorIntrin of a constant when it is first taken; its name."""
        if constant not in named:
            raise AttributeError(f"module {module!r} has no attribute {constant!r}")
        name, make = named[constant]
        if constant not in taken:
            register(name, make())
            taken.add(constant)
        return name

    def take_all() -> list[str]:
        """Register all TensorIntrins of the module; their names."""
        return [take(constant) for constant in named]

    return {constant: name for constant, (name, _) in named.items()}, take_all, take


def register(name: str, pair: Pair) -> str:
    """Register a pair as the TensorIntrin of this name; the name."""
    TensorIntrin.register(name, *pair, override=True)
    return name


def fill(operand: Operand) -> Callable[[], Pair]:
    """What makes the pair that zeroes the accumulator."""

    def make() -> Pair:
        dtype, shape, registers, slot = operand

        @T.prim_func(s_tir=True)
        def desc(c: T.handle) -> None:
            C = T.match_buffer(c, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads()
                T.writes(_whole(C))
                for loops in T.grid(*shape):
                    with T.sblock("fill"):
                        at = T.meta_var(_axes(shape, loops, "vblock", "vi", "vj"))
                        lane, register = T.meta_var(slot(*at))
                        T.reads()
                        T.writes(C[lane, register])
                        C[lane, register] = tirx.const(0, dtype)

        @T.prim_func(s_tir=True)
        def impl(c: T.handle) -> None:
            C = T.match_buffer(c, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads()
                T.writes(_whole(C))
                lane = T.env_thread("threadIdx.x")
                T.launch_thread(lane, registers[0])
                for register in T.serial(0, registers[1]):
                    C[lane, register] = tirx.const(0, dtype)

        return desc, impl

    return make


def load(
    operand: Operand, element: Callable[..., Any], transposed: bool = False
) -> Callable[[str], Pair]:
    """What makes the pair that loads a tile from memory of a scope into registers.

    `element` is what of memory a lane takes for an element of its registers; transposed, memory
    holds columns of rows.
    """

    def make(scope: str) -> Pair:
        dtype, shape, registers, slot = operand
        if transposed:
            shape, slot = _turned(shape), lambda *at: operand.slot(*_turned(at))

        @T.prim_func(s_tir=True)
        def desc(held: T.handle, memory: T.handle) -> None:
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope)
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads(_whole(M))
                T.writes(_whole(R))
                for loops in T.grid(*shape):
                    with T.sblock("load"):
                        at = T.meta_var(_axes(shape, loops, "vblock", "vrow", "vcolumn"))
                        lane, register = T.meta_var(slot(*at))
                        T.reads(M[at])
                        T.writes(R[lane, register])
                        R[lane, register] = M[at]

        @T.prim_func(s_tir=True)
        def impl(held: T.handle, memory: T.handle) -> None:
            strides = T.meta_var(_strides(shape))
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope, strides=strides)
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads(_whole(M))
                T.writes(_whole(R))
                lane = T.env_thread("threadIdx.x")
                T.launch_thread(lane, registers[0])
                for register in T.serial(0, registers[1]):
                    R[lane, register] = element(M, lane, register)

        return desc, impl

    return make


def store(operand: Operand, element: Callable[..., Any]) -> Callable[[str], Pair]:
    """What makes the pair that stores the accumulator in memory of a scope.

    `element` is what of memory a lane writes from an element of its registers.
    """

    def make(scope: str) -> Pair:
        dtype, shape, registers, slot = operand

        @T.prim_func(s_tir=True)
        def desc(held: T.handle, memory: T.handle) -> None:
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope)
            with T.sblock("root"):
                T.reads(_whole(R))
                T.writes(_whole(M))
                for loops in T.grid(*shape):
                    with T.sblock("store"):
                        at = T.meta_var(_axes(shape, loops, "vblock", "vi", "vj"))
                        lane, register = T.meta_var(slot(*at))
                        T.reads(R[lane, register])
                        T.writes(M[at])
                        M[at] = R[lane, register]

        @T.prim_func(s_tir=True)
        def impl(held: T.handle, memory: T.handle) -> None:
            strides = T.meta_var(_strides(shape))
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope, strides=strides)
            with T.sblock("root"):
                T.reads(_whole(R))
                T.writes(_whole(M))
                lane = T.env_thread("threadIdx.x")
                T.launch_thread(lane, registers[0])
                for register in T.serial(0, registers[1]):
                    T.buffer_store(M, R[lane, register], element(M, lane, register).indices)

        return desc, impl

    return make


def dense(a: Operand, b: Operand, c: Operand, neg: int = 0) -> PrimFunc:
    """The description of C += A x B in registers; neg negates A (1), B (2) and C (4)."""
    *blocks, m, k = a.shape
    shape = (*blocks, m, b.shape[-1], k)

    @T.prim_func(s_tir=True)
    def desc(a_held: T.handle, b_held: T.handle, c_held: T.handle) -> None:
        A = T.match_buffer(a_held, a.registers, a.dtype, offset_factor=1, scope="warp")
        B = T.match_buffer(b_held, b.registers, b.dtype, offset_factor=1, scope="warp")
        C = T.match_buffer(c_held, c.registers, c.dtype, offset_factor=1, scope="warp")
        with T.sblock("root"):
            T.reads(_whole(C), _whole(A), _whole(B))
            T.writes(_whole(C))
            for loops in T.grid(*shape):
                with T.sblock("C"):
                    at = T.meta_var(_axes(shape, loops, "vblock", "vi", "vj", "vk"))
                    a_at = T.meta_var(a.slot(*at[:-2], at[-1]))
                    b_at = T.meta_var(b.slot(*at[:-3], at[-1], at[-2]))
                    c_at = T.meta_var(c.slot(*at[:-1]))
                    T.reads(C[c_at], A[a_at], B[b_at])
                    T.writes(C[c_at])
                    left = T.meta_var(_signed(_cast(A[a_at], a.dtype, c.dtype), neg & 1))
                    right = T.meta_var(_signed(_cast(B[b_at], b.dtype, c.dtype), neg & 2))
                    C[c_at] = _signed(C[c_at], neg & 4) + left * right

    return desc


def sparse(a: Operand, index: Operand, b: Operand, c: Operand) -> PrimFunc:
    """The description of C += A x B in registers; the bytes of the index tell where A's lie."""

    @T.prim_func(s_tir=True)
    def desc(a_held: T.handle, places: T.handle, b_held: T.handle, c_held: T.handle) -> None:
        A = T.match_buffer(a_held, a.registers, a.dtype, offset_factor=1, scope="warp")
        INDEX = T.match_buffer(places, index.registers, "uint8", offset_factor=1, scope="warp")
        B = T.match_buffer(b_held, b.registers, b.dtype, offset_factor=1, scope="warp")
        C = T.match_buffer(c_held, c.registers, c.dtype, offset_factor=1, scope="warp")
        with T.sblock("root"):
            T.reads(_whole(C), _whole(INDEX), _whole(A), _whole(B))
            T.writes(_whole(C))
            for i, j, k in T.grid(*c.shape, b.shape[0]):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    at = T.meta_var(c.slot(vi, vj))
                    stored = T.meta_var(partial(_of_row, A, a.slot, vi))
                    octet = T.meta_var(partial(_of_row, INDEX, index.slot, vi))
                    right = T.meta_var(B[b.slot(vk, vj)])
                    C[at] = C[at] + _sparse_product(c.dtype, stored, octet, right, vk)

    return desc


def sparse_matmul(
    shape: tuple[int, int, int], dtypes: tuple[str, str, str], b_transposed: bool
) -> PrimFunc:
    """The workload of a sparse A: what is stored of it, the index's bytes, B, and C."""
    m, n, k = shape
    a = te.placeholder((m, k // 2), dtypes[0], name="A")
    index = te.placeholder((m, k // 8), "uint8", name="INDEX")
    b = te.placeholder((n, k) if b_transposed else (k, n), dtypes[1], name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Index, j: Index) -> Any:
        right = b[j, r] if b_transposed else b[r, j]
        term = _sparse_product(dtypes[2], lambda x: a[i, x], lambda x: index[i, x], right, r)
        return te.sum(term, axis=[r])

    return te.create_prim_func([a, index, b, te.compute((m, n), element, name="C")])


def _sparse_product(
    dtype: str,
    stored: Callable[[Index], Any],
    octet: Callable[[Index], Any],
    right: Any,
    k: Index,
) -> Any:
    """A[i, k] * B[k, j], where A[i, k] is 0 if it is not one of the two of four that are stored."""
    places = tirx.Cast("int32", octet(k // 8)) >> k // 4 % 2 * 4
    first, second = (tirx.Cast(dtype, stored(k // 4 * 2 + x)) for x in range(2))
    other = tirx.Select(places >> 2 & 3 == k % 4, second, tirx.const(0, dtype))
    return tirx.Select(places & 3 == k % 4, first, other) * tirx.Cast(dtype, right)


def _code(octet: Callable[[Index], Any], k: Index, bits: int) -> Any:
    """The bits of element k; `octet` gives the byte with that number."""
    if bits == 8:
        return tirx.Cast("int32", octet(k))
    if bits == 4:
        return tirx.Cast("int32", octet(k // 2)) >> k % 2 * 4 & 15
    first, second, third = (tirx.Cast("int32", octet(k // 4 * 3 + x)) for x in range(3))
    return (third << 16 | second << 8 | first) >> k % 4 * 6 & 63


def _number(octet: Callable[[Index], Any], k: Index, form: Format) -> Any:
    """The finite float32 that element k is; `octet` gives the byte with that number."""
    wide, narrow, bias = form
    code = _code(octet, k, 1 + wide + narrow)
    exponent = code >> narrow & (1 << wide) - 1
    mantissa = code & (1 << narrow) - 1
    least = tirx.FloatImm("float32", 2.0 ** (1 - bias - narrow))
    bits = exponent + (127 - bias) << 23 | mantissa << 23 - narrow
    small, large = tirx.Cast("float32", mantissa) * least, tirx.reinterpret("float32", bits)
    magnitude = tirx.Select(exponent == 0, small, large)
    return tirx.Select(code >> wide + narrow == 0, magnitude, -magnitude)


def scaled(
    operands: Sequence[Operand], c: Operand, formats: tuple[Format, Format], k: int
) -> PrimFunc:
    """The description of C += A x B in registers, of bytes and scales: A, B and the scales of both.

    `k` is the tile's depth.
    """
    a, b, of_a, of_b = operands
    group = k // of_a.shape[1]

    @T.prim_func(s_tir=True)
    def desc(
        a_held: T.handle, b_held: T.handle, a_scales: T.handle, b_scales: T.handle, c_held: T.handle
    ) -> None:
        A = T.match_buffer(a_held, a.registers, "uint8", offset_factor=1, scope="warp")
        B = T.match_buffer(b_held, b.registers, "uint8", offset_factor=1, scope="warp")
        SCALE_A = T.match_buffer(a_scales, of_a.registers, "uint8", offset_factor=1, scope="warp")
        SCALE_B = T.match_buffer(b_scales, of_b.registers, "uint8", offset_factor=1, scope="warp")
        C = T.match_buffer(c_held, c.registers, c.dtype, offset_factor=1, scope="warp")
        with T.sblock("root"):
            T.reads(_whole(C), _whole(A), _whole(SCALE_A), _whole(B), _whole(SCALE_B))
            T.writes(_whole(C))
            for i, j, r in T.grid(*c.shape, k):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, r])
                    at = T.meta_var(c.slot(vi, vj))
                    left = T.meta_var(_number(partial(_of_row, A, a.slot, vi), vk, formats[0]))
                    right = T.meta_var(_number(partial(_of_column, B, b.slot, vj), vk, formats[1]))
                    scale_a = T.meta_var(_power(SCALE_A[of_a.slot(vi, vk // group)]))
                    scale_b = T.meta_var(_power(SCALE_B[of_b.slot(vk // group, vj)]))
                    C[at] = C[at] + left * scale_a * (right * scale_b)

    return desc


def scaled_matmul(
    shape: tuple[int, int, int], formats: tuple[Format, Format], group: int, b_transposed: bool
) -> PrimFunc:
    """The workload of bytes A and B, of their scales, of which each is for `group` of k, and C."""
    m, n, k = shape
    octets = [k * (1 + wide + narrow) // 8 for wide, narrow, _ in formats]

    def of_b(count: int, name: str) -> Any:
        return te.placeholder((n, count) if b_transposed else (count, n), "uint8", name=name)

    a, b = te.placeholder((m, octets[0]), "uint8", name="A"), of_b(octets[1], "B")
    scale_a = te.placeholder((m, k // group), "uint8", name="SCALE_A")
    scale_b = of_b(k // group, "SCALE_B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Index, j: Index) -> Any:
        def of_column(buffer: Any, x: Index) -> Any:
            return buffer[j, x] if b_transposed else buffer[x, j]

        left = _number(lambda x: a[i, x], r, formats[0]) * _power(scale_a[i, r // group])
        right = _number(lambda x: of_column(b, x), r, formats[1])
        return te.sum(left * (right * _power(of_column(scale_b, r // group))), axis=[r])

    c = te.compute((m, n), element, name="C")
    return te.create_prim_func([a, b, scale_a, scale_b, c])


def _of_row(buffer: Any, slot: Callable[..., Slot], i: Index, k: Index) -> Any:
    return buffer[slot(i, k)]


def _of_column(buffer: Any, slot: Callable[..., Slot], j: Index, k: Index) -> Any:
    return buffer[slot(k, j)]


def _power(exponent: Any) -> Any:
    """2 ** (exponent - 127)."""
    return tirx.reinterpret("float32", tirx.Cast("int32", exponent) << 23)


def _cast(value: Any, source: str, target: str) -> Any:
    return value if source == target else tirx.Cast(target, value)


def _signed(value: Any, negative: int) -> Any:
    return -value if negative else value


def _turned(shape: Sequence[Any]) -> tuple[Any, ...]:
    *blocks, rows, columns = shape
    return *blocks, columns, rows


def _whole(buffer: Any) -> Any:
    """The region of all of a buffer."""
    return buffer[tuple(slice(0, extent) for extent in buffer.shape)]


def _strides(shape: Sequence[int]) -> list[Any]:
    """Strides that are known where the TensorIntrin is used."""
    return [tirx.Var(f"s{x}", "int32") for x in range(len(shape))]


def _axes(shape: Sequence[int], loops: Sequence[Any], *names: str) -> tuple[Index, ...]:
    """The axes of a block over all loops, called like the last of `names`; vk is summed over.

    It is 0 for a loop of one turn: TVM drops those from a block, but not their loops, before it
    compares with a description.
    """
    named = zip(names[-len(shape) :], loops, shape, strict=True)
    kept = [(name, loop) for name, loop, extent in named if extent > 1]
    kinds = "".join("R" if name == "vk" else "S" for name, _ in kept)
    bound = T.axis.remap(kinds, [loop for _, loop in kept])
    axes = [bound] if len(kept) == 1 else list(bound)
    for (name, _), axis in zip(kept, axes, strict=True):
        IRBuilder.name(name, axis)
    return tuple(axes.pop(0) if extent > 1 else 0 for extent in shape)
