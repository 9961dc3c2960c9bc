"""Code for the machine that the emulator runs on: LLVM IR of vectors, written like arithmetic."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm  # a dependency for the back end as well: LLVM, from Python
from llvmlite import ir

I32, I64 = ir.IntType(32), ir.IntType(64)
F32, F64 = ir.FloatType(), ir.DoubleType()
TYPES: dict[str, ir.Type] = {"i32": I32, "f32": F32, "f64": F64}
_SUFFIXES = {kind: name for name, kind in TYPES.items()}


class Vector:
    """A vector in the code that is being written; a Python number beside it is one in each lane."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder, self.value = builder, value
        self.count: int = value.type.count
        self.element: ir.Type = value.type.element

    def of(self, value: ir.Value) -> Vector:
        """A vector of the same builder."""
        return Vector(self.builder, value)

    def like(self, other: Vector | float) -> ir.Value:
        """An operand: a vector of this type, or a number in all of its lanes."""
        if isinstance(other, Vector):
            return other.value
        return ir.Constant(self.value.type, [other] * self.count)

    def _binary(self, integer: str, floating: str, other: Vector | float) -> Vector:
        name = integer if isinstance(self.element, ir.IntType) else floating
        return self.of(getattr(self.builder, name)(self.value, self.like(other)))

    def __add__(self, other: Vector | float) -> Vector:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Vector | float) -> Vector:
        return self._binary("sub", "fsub", other)

    def __mul__(self, other: Vector | float) -> Vector:
        return self._binary("mul", "fmul", other)

    def __and__(self, other: Vector | int) -> Vector:
        return self.of(self.builder.and_(self.value, self.like(other)))

    def __or__(self, other: Vector | int) -> Vector:
        return self.of(self.builder.or_(self.value, self.like(other)))

    def __lshift__(self, other: Vector | int) -> Vector:
        return self.of(self.builder.shl(self.value, self.like(other)))

    def __rshift__(self, other: Vector | int) -> Vector:
        """A shift to the right, in which zeros come in from above."""
        return self.of(self.builder.lshr(self.value, self.like(other)))

    def __lt__(self, other: Vector | float) -> Vector:
        return self._compare("<", other)

    def __gt__(self, other: Vector | float) -> Vector:
        return self._compare(">", other)

    def shift_signed(self, count: Vector | int) -> Vector:
        """A shift to the right, in which the sign comes in from above."""
        return self.of(self.builder.ashr(self.value, self.like(count)))

    def __eq__(self, other: Vector | float) -> Vector:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Vector | float) -> Vector:  # type: ignore[override]
        return self._compare("!=", other)

    __hash__ = None  # type: ignore[assignment]

    def _compare(self, relation: str, other: Vector | float) -> Vector:
        """Integers with their signs; of a NaN, only `!=` holds."""
        if isinstance(self.element, ir.IntType):
            return self.of(self.builder.icmp_signed(relation, self.value, self.like(other)))
        compare = self.builder.fcmp_unordered if relation == "!=" else self.builder.fcmp_ordered
        return self.of(compare(relation, self.value, self.like(other)))

    def choose(self, yes: Vector | float, no: Vector | float) -> Vector:
        """`yes` where these conditions hold, else `no`; one of the two is a vector."""
        vector = yes if isinstance(yes, Vector) else no
        assert isinstance(vector, Vector)
        return self.of(self.builder.select(self.value, vector.like(yes), vector.like(no)))

    def if_true(self, number: int) -> Vector:
        """An integer of 32 bits where these conditions hold, else 0."""
        return self.of(self.builder.sext(self.value, ir.VectorType(I32, self.count))) & number

    def maximum(self, other: Vector | float) -> Vector:
        """The larger integer in each lane."""
        other = self.of(self.like(other))
        return (self < other).choose(other, self)

    def minimum(self, other: Vector | float) -> Vector:
        """The smaller integer in each lane."""
        other = self.of(self.like(other))
        return (self < other).choose(self, other)

    def bits(self) -> Vector:
        """The floats' patterns, as integers."""
        return self._bitcast(I64 if self.element == F64 else I32)

    def floats(self) -> Vector:
        """The floats of these patterns."""
        return self._bitcast(F64 if self.element == I64 else F32)

    def _bitcast(self, element: ir.Type) -> Vector:
        return self.of(self.builder.bitcast(self.value, ir.VectorType(element, self.count)))

    def to(self, element: ir.Type) -> Vector:
        """These numbers in another type: floats are truncated to integers, or rounded."""
        if element == self.element:
            return self
        wanted = ir.VectorType(element, self.count)
        if isinstance(self.element, ir.IntType):
            integer = isinstance(element, ir.IntType)
            convert = self.builder.sext if integer else self.builder.sitofp
        elif isinstance(element, ir.IntType):
            convert = self.builder.fptosi
        else:
            convert = self.builder.fpext if element == F64 else self.builder.fptrunc
        return self.of(convert(self.value, wanted))

    def unsigned(self, element: ir.Type) -> Vector:
        """These integers in a wider type, without signs."""
        return self.of(self.builder.zext(self.value, ir.VectorType(element, self.count)))

    def multiply_add(self, other: Vector, addend: Vector) -> Vector:
        """The sum self * other + addend, rounded once."""
        return self.of(self._call("llvm.fma", self.value.type, other, addend))

    def floor(self) -> Vector:
        """The floats rounded down to integers."""
        return self.of(self._call("llvm.floor", self.value.type))

    def largest(self) -> ir.Value:
        """The largest integer of all lanes."""
        return self._call("llvm.vector.reduce.smax", self.element)

    def _call(self, intrinsic: str, result: ir.Type, *others: Vector) -> ir.Value:
        """An intrinsic of LLVM that is overloaded for this type."""
        vector, module = self.value.type, self.builder.module
        name = f"{intrinsic}.v{self.count}{_SUFFIXES[self.element]}"
        function = module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(result, [vector] * (1 + len(others)))
            function = ir.Function(module, kind, name)
        return self.builder.call(function, [self.value, *(other.value for other in others)])


def pointer(builder: ir.IRBuilder, address: ir.Value, element: ir.Type) -> ir.Value:
    """An address, given as an integer, of elements."""
    return builder.inttoptr(address, element.as_pointer())


def load_scalar(builder: ir.IRBuilder, base: ir.Value, index: ir.Value) -> ir.Value:
    """Load one element."""
    return builder.load(builder.gep(base, [index]))


def load_vector(builder: ir.IRBuilder, base: ir.Value, index: ir.Value, count: int) -> Vector:
    """A vector of `count` elements in memory, from `index` on."""
    address = _vector_address(builder, base, index, count)
    return Vector(builder, builder.load(address, align=4))


def store_vector(builder: ir.IRBuilder, value: Vector, base: ir.Value, index: ir.Value) -> None:
    """Store a vector of consecutive elements."""
    address = _vector_address(builder, base, index, value.count)
    builder.store(value.value, address, align=4)


def _vector_address(builder: ir.IRBuilder, base: ir.Value, index: ir.Value, count: int) -> ir.Value:
    vector = ir.VectorType(base.type.pointee, count)
    return builder.bitcast(builder.gep(base, [index]), vector.as_pointer())


def splat(builder: ir.IRBuilder, value: ir.Value, count: int) -> Vector:
    """A vector with one value in every lane."""
    empty = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = builder.insert_element(empty, value, I32(0))
    lanes = ir.Constant(ir.VectorType(I32, count), [0] * count)
    return Vector(builder, builder.shuffle_vector(first, empty, lanes))


@contextmanager
def loop(builder: ir.IRBuilder, stop: ir.Value, step: int = 1) -> Iterator[ir.Value]:
    """A loop of an index from 0 below `stop`, which is at least 1."""
    before = builder.block
    body = builder.append_basic_block("body")
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64)
    index.add_incoming(I64(0), before)
    yield index
    following = builder.add(index, I64(step))
    index.add_incoming(following, builder.block)
    end = builder.append_basic_block("end")
    builder.cbranch(builder.icmp_unsigned("<", following, stop), body, end)
    builder.position_at_end(end)


@cache
def _target_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


_engines: list[llvm.ExecutionEngine] = []  # code lives as long as its engine


def compile_function(module: ir.Module, name: str, arguments: int) -> Callable[..., None]:
    """The function `name` of a module: it takes 64-bit integers and gives nothing.

    Nothing allows LLVM fast mathematics: each operation is rounded as IEEE 754 says.
    """
    machine = _target_machine()
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(parsed, builder)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    _engines.append(engine)
    prototype: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)
    function: Callable[..., None] = prototype(engine.get_function_address(name))
    return function
