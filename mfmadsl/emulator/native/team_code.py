"""The native loops of threads that execute steps together.

One of them leads: it goes from phase to phase, as the driver does from step to step. A phase is
some steps on registers, and behind them maybe one that reaches memory, if waves of one workgroup
cannot meet those of another there. In a phase each thread takes a block of waves, then the next,
until none is left. The leader waits for the blocks that others have taken. So all waves are at one
place before the next phase, and a step that is refused for some is refused for all. What is in no
phase the leader executes alone, and all blocks where nobody helps.

Who takes a block of a phase changes one word, which has the number of the phase: nobody can take
one of a phase that is over.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

from llvmlite import ir

from mfmadsl.emulator.native.driver import while_below
from mfmadsl.emulator.native.fields import FIELDS, RUN_WORD, SPLIT_WORD, STEP_WORDS

_VOID, _I32, _I64 = ir.VoidType(), ir.IntType(32), ir.IntType(64)
_POINTER = _I64.as_pointer()
LEAD: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)
"""Takes the addresses of the fields, of the steps, how many these are, the addresses of the bounds
of blocks, how many blocks there are, and the address of what threads share. It gives how many steps
have been executed, like the driver."""
HELP: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""Takes the address of what threads share, and of fields of its own; comes back when there has been
nothing to do for some time."""

_LINE = 8  # words of a line of the processor's cache
_CLAIMS, _DONE, _JOB = 0, _LINE, 2 * _LINE  # places of what threads share
STOP_WORD = 3 * _LINE
"""Not 0: nobody is to help any more."""
SHARED_WORDS = 4 * _LINE
HELPED_WORD = len(FIELDS) + 1
OWN_WORDS = HELPED_WORD + 1
"""Words of a helper: its fields, the number of the job that they are of, and how many blocks it has
executed."""

# Behind the place of the job; a number of blocks of which one has refused comes to `_REFUSED`.
_NUMBER, _FIELDS, _STEPS, _BOUNDS, _BLOCKS, _FROM, _TO, _REFUSED = range(_JOB, _JOB + _LINE)
_BLOCK_BITS = 24
_CLOSED = (1 << _BLOCK_BITS) - 1
_PAUSES, _YIELDS = 64, 500  # about 200 microseconds


class _Code:
    """What both functions are written of."""

    def __init__(self, module: ir.Module, name: str, arguments: int) -> None:
        function = ir.Function(module, ir.FunctionType(_I64, [_I64] * arguments), name)
        self.module, self.function = module, function
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self._within, self.refused = (self.builder.alloca(_I64) for _ in range(2))

    def pointer(self, address: ir.Value, word: int | ir.Value = 0) -> ir.Value:
        """A pointer to a word behind an address."""
        place = _I64(word) if isinstance(word, int) else word
        return self.builder.gep(self.builder.inttoptr(address, _POINTER), [place])

    def load(self, pointer: ir.Value) -> ir.Value:
        """A word that other threads change."""
        return self.builder.load_atomic(pointer, "acquire", 8)

    def store(self, value: ir.Value, pointer: ir.Value) -> None:
        """Change a word that other threads read; they see what came before, too."""
        self.builder.store_atomic(value, pointer, "release", 8)

    def takes(self, shared: ir.Value, blocks: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Take a block: its number, whether one is left, and whether it was taken."""
        builder, claims = self.builder, self.pointer(shared, _CLAIMS)
        found = self.load(claims)
        number = builder.and_(found, _I64(_CLOSED))
        is_left = builder.icmp_unsigned("<", number, blocks)
        with builder.if_else(is_left) as (yes, no):
            with yes:
                more = builder.add(found, _I64(1))
                pair = builder.cmpxchg(claims, found, more, "acq_rel", "monotonic")
                taken, here = builder.extract_value(pair, 1), builder.block
            with no:
                away = builder.block
        result = builder.phi(ir.IntType(1))
        result.add_incoming(taken, here)
        result.add_incoming(ir.Constant(ir.IntType(1), 0), away)
        return number, is_left, result

    def run(
        self, fields: ir.Value, steps: ir.Value, first: ir.Value, last: ir.Value, begin: ir.Value,
        end: ir.Value,
    ) -> None:  # fmt: skip
        """Execute steps on some waves. `refused` says whether the last one has refused that."""
        builder = self.builder
        for name, value in (("first", first), ("last", last)):
            builder.store(value, self.pointer(fields, FIELDS.index(name)))
        builder.store(begin, self._within)
        with while_below(builder, self._within, end) as index:
            step = self.pointer(steps, builder.mul(index, _I64(STEP_WORDS)))
            kind = ir.FunctionType(_I64, [_POINTER, _POINTER]).as_pointer()
            code = builder.inttoptr(builder.load(step), kind)
            refused = builder.call(code, [builder.inttoptr(fields, _POINTER), step])
            builder.store(refused, self.refused)
            builder.store(builder.add(index, _I64(1)), self._within)

    def run_block(
        self, fields: ir.Value, steps: ir.Value, bounds: ir.Value, number: ir.Value,
        begin: ir.Value, end: ir.Value,
    ) -> ir.Value:  # fmt: skip
        """Execute steps on a block of waves; gives whether one has refused that."""
        builder = self.builder
        first = builder.load(self.pointer(bounds, number))
        last = builder.load(self.pointer(bounds, builder.add(number, _I64(1))))
        self.run(fields, steps, first, last, begin, end)
        return builder.icmp_unsigned("!=", builder.load(self.refused), _I64(0))

    def rest(self, rounds: ir.Value) -> None:
        """Wait a moment: longer after so many rounds, when others may use the processor."""
        builder = self.builder
        with builder.if_else(builder.icmp_unsigned("<", rounds, _I64(_PAUSES))) as (short, long):
            with short:
                if platform.machine() in ("x86_64", "AMD64"):
                    builder.call(self._function("llvm.x86.sse2.pause", _VOID), [])
            with long:
                builder.call(self._function("sched_yield", _I32), [])

    def _function(self, name: str, result: ir.Type) -> ir.Value:
        found = self.module.globals.get(name)
        return found or ir.Function(self.module, ir.FunctionType(result, []), name)


def write_lead(module: ir.Module, name: str) -> None:
    """The code of the thread that leads."""
    code = _Code(module, name, 6)
    builder = code.builder
    fields, steps, count, bounds, blocks, shared = code.function.args
    at, mine, rounds, phase = (builder.alloca(_I64) for _ in range(4))
    waves = builder.load(code.pointer(fields, FIELDS.index("count")))
    claims = code.pointer(shared, _CLAIMS)
    closed = builder.or_(code.load(claims), _I64(_CLOSED))
    code.store(closed, claims)  # before anything of the job changes
    builder.store(builder.add(closed, _I64(1)), phase)
    number = code.pointer(shared, _NUMBER)
    builder.store(builder.add(builder.load(number), _I64(1)), number)
    for word, value in ((_FIELDS, fields), (_STEPS, steps), (_BOUNDS, bounds)):
        builder.store(value, code.pointer(shared, word))
    code.store(blocks, code.pointer(shared, _BLOCKS))
    builder.store(_I64(0), at)
    with while_below(builder, at, count) as index:
        run = builder.load(code.pointer(steps, _word(builder, index, RUN_WORD)))
        behind = builder.add(index, run)
        is_inside = builder.icmp_unsigned("<", behind, count)
        behind = builder.select(is_inside, behind, count)
        there = builder.select(is_inside, behind, index)
        splits = builder.load(code.pointer(steps, _word(builder, there, SPLIT_WORD)))
        end = builder.add(behind, builder.select(is_inside, splits, _I64(0)))
        with builder.if_else(builder.icmp_unsigned("==", end, index)) as (alone, together):
            with alone:
                behind = builder.add(index, _I64(1))
                code.run(fields, steps, _I64(0), waves, index, behind)
                is_refused = builder.icmp_unsigned("!=", builder.load(code.refused), _I64(0))
                with builder.if_then(is_refused, likely=False):
                    builder.ret(index)
                builder.store(behind, at)
            with together:
                for word, value in ((_FROM, index), (_TO, end), (_REFUSED, _I64(0))):
                    builder.store(value, code.pointer(shared, word))
                code.store(_I64(0), code.pointer(shared, _DONE))
                number = builder.load(phase)
                builder.store(builder.add(number, _I64(1 << _BLOCK_BITS)), phase)
                code.store(number, claims)
                _take_all(code, (fields, steps, bounds), blocks, index, end, mine, rounds, shared)
                refused = code.load(code.pointer(shared, _REFUSED))
                with builder.if_then(builder.icmp_unsigned("!=", refused, _I64(0)), likely=False):
                    builder.ret(builder.sub(end, _I64(1)))
                builder.store(end, at)
    builder.ret(count)


def _word(builder: ir.IRBuilder, step: ir.Value, word: int) -> ir.Value:
    return builder.add(builder.mul(step, _I64(STEP_WORDS)), _I64(word))


def _take_all(
    code: _Code, job: tuple[ir.Value, ir.Value, ir.Value], blocks: ir.Value, begin: ir.Value,
    end: ir.Value, mine: ir.Value, rounds: ir.Value, shared: ir.Value,
) -> None:  # fmt: skip
    """Take blocks until none is left, and wait for those that others have taken."""
    builder = code.builder
    builder.store(_I64(0), mine)
    head, behind = (builder.append_basic_block(name) for name in ("take", "wait"))
    builder.branch(head)
    builder.position_at_end(head)
    number, is_left, taken = code.takes(shared, blocks)
    with builder.if_then(taken):
        refused = code.run_block(*job, number, begin, end)
        with builder.if_then(refused, likely=False):
            code.store(_I64(1), code.pointer(shared, _REFUSED))
        builder.store(builder.add(builder.load(mine), _I64(1)), mine)
    builder.cbranch(is_left, head, behind)
    builder.position_at_end(behind)
    others = builder.sub(blocks, builder.load(mine))
    builder.store(_I64(0), rounds)
    look, rest, over = (builder.append_basic_block(name) for name in ("look", "rest", "over"))
    builder.branch(look)
    builder.position_at_end(look)
    done = code.load(code.pointer(shared, _DONE))
    builder.cbranch(builder.icmp_unsigned("==", done, others), over, rest)
    builder.position_at_end(rest)
    code.rest(builder.load(rounds))
    builder.store(builder.add(builder.load(rounds), _I64(1)), rounds)
    builder.branch(look)
    builder.position_at_end(over)


def write_help(module: ir.Module, name: str) -> None:
    """The code of a thread that helps."""
    code = _Code(module, name, 2)
    builder = code.builder
    shared, own = code.function.args
    rounds, place = (builder.alloca(_I64) for _ in range(2))
    builder.store(_I64(0), rounds)
    with while_below(builder, rounds, _I64(_PAUSES + _YIELDS)):
        blocks = code.load(code.pointer(shared, _BLOCKS))
        number, is_left, taken = code.takes(shared, blocks)
        with builder.if_then(taken):
            _follow_job(code, shared, own, place)
            steps, bounds, begin, end = (
                builder.load(code.pointer(shared, word)) for word in (_STEPS, _BOUNDS, _FROM, _TO)
            )
            refused = code.run_block(own, steps, bounds, number, begin, end)
            with builder.if_then(refused, likely=False):
                code.store(_I64(1), code.pointer(shared, _REFUSED))
            helped = code.pointer(own, HELPED_WORD)
            builder.store(builder.add(builder.load(helped), _I64(1)), helped)
            builder.atomic_rmw("add", code.pointer(shared, _DONE), _I64(1), "acq_rel")
        with builder.if_else(is_left) as (yes, no):
            with yes:
                builder.store(_I64(0), rounds)
            with no:
                code.rest(builder.load(rounds))
                stop = code.load(code.pointer(shared, STOP_WORD))
                more = builder.select(
                    builder.icmp_unsigned("==", stop, _I64(0)), _I64(1), _I64(_PAUSES + _YIELDS)
                )
                builder.store(builder.add(builder.load(rounds), more), rounds)
    builder.ret(_I64(0))


def _follow_job(code: _Code, shared: ir.Value, own: ir.Value, place: ir.Value) -> None:
    """Have fields of one's own that are those of the job, where one's waves stand."""
    builder = code.builder
    known = code.pointer(own, len(FIELDS))
    job = builder.load(code.pointer(shared, _NUMBER))
    with builder.if_then(builder.icmp_unsigned("!=", job, builder.load(known))):
        builder.store(job, known)
        fields = builder.load(code.pointer(shared, _FIELDS))
        builder.store(_I64(0), place)
        with while_below(builder, place, _I64(len(FIELDS))) as index:
            builder.store(builder.load(code.pointer(fields, index)), code.pointer(own, index))
            builder.store(builder.add(index, _I64(1)), place)
