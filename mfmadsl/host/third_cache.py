"""How fast one core reads its third cache, measured once on each machine.

No instruction tells it: of servers whose cores share that cache over a mesh it is a fifth of what
it is of others. The measurement takes under 50 ms; its result is kept in the cache folder.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

from mfmadsl.cache_folder import cache_folder, keep
from mfmadsl.model import Cpu

RATES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""What a measurement is rounded to: its noise shall not decide on a tiling."""

USUAL = 16
"""Where nothing can be measured."""

_KEPT = 8  # of other machines that share the folder
_TRIES, _LONGEST = 8, 0.005  # seconds of each of the two measurements
_TURNS, _SUMS, _STREAMS = 2000, 12, 8
_CPUINFO = Path("/proc/cpuinfo")
_NAMED = ("vendor_id", "cpu family", "model", "model name", "stepping")


def third_rate(cpu: Cpu, sizes: Mapping[int, int]) -> int:
    """Bytes that a core reads of its third cache while it multiplies and adds one vector.

    `sizes` are those of the caches, by level. What was measured before on a CPU of this identity is
    taken from the cache folder, unless it cannot be read.
    """
    identity = _identity(cpu, sizes)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
    path = cache_folder() / f"third-cache-{digest}.json"
    if (kept := _kept(path, identity)) is not None:
        return kept
    measured = _measured(cpu, sizes)
    if measured is None:
        return USUAL
    rate = min(RATES, key=lambda each: max(each / measured, measured / each))
    content = json.dumps({"cpu": identity, "bytes": rate})
    keep(path, content.encode(), "third-cache-*.json", _KEPT)
    return rate


def _identity(cpu: Cpu, sizes: Mapping[int, int]) -> str:
    """What tells machines apart: what CPUID says of the CPU, as far as Linux hands it on."""
    told: dict[str, str] = {}
    try:
        for line in _CPUINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in _NAMED:
                told.setdefault(name.strip(), value.strip())
    except (OSError, UnicodeDecodeError):
        pass
    return json.dumps([cpu.name, sorted(cpu.features), sorted(sizes.items()), sorted(told.items())])


def _kept(path: Path, identity: str) -> int | None:
    """What the file says, if it is one of ours for this CPU."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("cpu") != identity:
        return None
    rate = found.get("bytes")
    return rate if type(rate) is int and rate in RATES else None


def _measured(cpu: Cpu, sizes: Mapping[int, int]) -> float | None:
    """Bytes for each vector; None where this machine's LLVM makes no code."""
    lanes = 16 if "avx512f" in cpu.features else 8 if "avx" in cpu.features else 4
    second = sizes.get(2, 1 << 20)
    count = max(2 * second, min(4 * second, sizes.get(3, 8 * second) // 2))
    try:
        engine = _compiled(_text(lanes, "fma" in cpu.features))
    except (RuntimeError, OSError):
        return None
    read, multiply = map(engine.get_function_address, ("read", "multiply"))
    of_memory = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(read)
    of_sums = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64, ctypes.c_float)(multiply)
    # Written, since pages that never were are all the same one. `read` takes whole iterations.
    memory = np.ones(count + 2 * 64 * _STREAMS, np.uint8)
    start = -(-memory.ctypes.data // 64) * 64
    of_vector = _least(lambda: of_sums(_TURNS, 1e-3)) / (_TURNS * _SUMS)
    of_byte = _least(lambda: of_memory(start, count)) / count
    return of_vector / of_byte


def _least(call: Callable[[], object]) -> float:
    """The seconds of the fastest of some calls: whatever else runs makes one slower."""
    ends, taken = time.perf_counter() + _LONGEST, []
    for _ in range(_TRIES):
        began = time.perf_counter()
        call()
        now = time.perf_counter()
        taken.append(now - began)
        if now > ends and len(taken) > 1:
            break
    return max(min(taken), 1e-9)


def _compiled(text: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine


def _text(lanes: int, fused: bool) -> str:
    """LLVM IR of `read(from, bytes)` and of `multiply(iterations, x)`: streams of loads, and as
    many sums at once as hide what one of them waits."""
    ints, floats = f"<{lanes} x i32>", f"<{lanes} x float>"
    size = 4 * lanes

    def lines(count: int, line: str) -> str:
        return "\n".join(line.replace("#-", str(i - 1)).replace("#", str(i)) for i in range(count))

    def first(count: int, kind: str) -> str:
        return lines(count, f"  %old# = phi {kind} [zeroinitializer, %entry], [%new#, %loop]")

    def folded(count: int, kind: str, operation: str) -> str:
        rest = lines(count, f"  %all# = {operation} {kind} %all#-, %new#").splitlines()[1:]
        return "\n".join([f"  %all0 = {operation} {kind} %new0, zeroinitializer", *rest])

    offsets = "\n".join(f"  %at{i} = add i64 %at, {i * size}" for i in range(_STREAMS))
    sums = (
        f"  %new# = call {floats} @llvm.fma.v{lanes}f32({floats} %old#, {floats} %y, {floats} %y)"
    )
    if not fused:
        sums = f"  %by# = fmul {floats} %old#, %y\n  %new# = fadd {floats} %by#, %y"
    return f"""
define i32 @read(ptr %from, i64 %bytes) {{
entry:
  br label %loop
loop:
  %at = phi i64 [0, %entry], [%next, %loop]
{first(_STREAMS, ints)}
{offsets}
{lines(_STREAMS, "  %p# = getelementptr i8, ptr %from, i64 %at#")}
{lines(_STREAMS, f"  %v# = load {ints}, ptr %p#, align 16")}
{lines(_STREAMS, f"  %new# = or {ints} %old#, %v#")}
  %next = add i64 %at, {_STREAMS * size}
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %loop, label %end
end:
{folded(_STREAMS, ints, "or")}
  %one = extractelement {ints} %all{_STREAMS - 1}, i32 0
  %two = extractelement {ints} %all{_STREAMS - 1}, i32 1
  %both = or i32 %one, %two
  ret i32 %both
}}

define float @multiply(i64 %iterations, float %x) {{
entry:
  %single = insertelement {floats} poison, float %x, i32 0
  %y = shufflevector {floats} %single, {floats} poison, <{lanes} x i32> zeroinitializer
  br label %loop
loop:
  %iteration = phi i64 [0, %entry], [%next, %loop]
{first(_SUMS, floats)}
{lines(_SUMS, sums)}
  %next = add i64 %iteration, 1
  %more = icmp ult i64 %next, %iterations
  br i1 %more, label %loop, label %end
end:
{folded(_SUMS, floats, "fadd")}
  %one = extractelement {floats} %all{_SUMS - 1}, i32 0
  ret float %one
}}

declare {floats} @llvm.fma.v{lanes}f32({floats}, {floats}, {floats})
"""
