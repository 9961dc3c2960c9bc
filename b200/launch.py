"""Runs a launch: starts CTAs on SMs, lets warps take turns, and tells what went wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm.tirx import PrimFunc

from b200.buffers import Buffer
from b200.geometry import Geometry, geometry_of
from b200.lifetime import exit_cta
from b200.machine import (
    LANES,
    Cluster,
    Cta,
    HaltError,
    Machine,
    Pause,
    Run,
    Step,
    Warp,
)
from b200.report import Counts, Kind, NotUnderstood, Report
from b200.statements import Statements


def execute(
    func: PrimFunc,
    arguments: Sequence[NDArray[Any]],
    *,
    sms: int | None = None,
    seed: int = 0,
    late: bool = True,
) -> Report:
    """Execute a kernel as `hgemm_vN` returns it. Results are written to `arguments`.

    Args:
        func: before it is lowered.
        arguments: one array for each parameter, of its shape and type, C-contiguous.
        sms: on which clusters run at a time, one CTA each; none for as many as there are CTAs.
        seed: of the order in which warps take turns, and of the lane that `elect.sync` elects.
        late: whether what is asynchronous ends as late as it may, or at once.

    Returns:
        What was found. After a fault the results mean nothing.

    Raises:
        NotUnderstood: a statement whose meaning the interpreter does not know.
        ValueError: arguments that do not fit, or fewer SMs than a cluster has CTAs.
    """
    statements = Statements()
    parameters = [statements.expressions.declare(param) for param in func.params]
    geometry = geometry_of(func.body)
    step = statements.step(func.body)
    generator = np.random.default_rng(seed)
    leader = int(generator.integers(LANES)) if seed else 0
    machine = Machine(late, leader)
    machine.arguments = flat(parameters, arguments)
    room = geometry.ctas if sms is None else sms
    if room < geometry.cluster:
        raise ValueError(f"{room} SMs have no room for a cluster of {geometry.cluster} CTAs")
    with suppress(HaltError):
        Scheduler(machine, geometry, step, room // geometry.cluster, generator).run()
    return Report(tuple(machine.faults.values()), Counts(**machine.counts))


def flat(
    parameters: list[Buffer], arguments: Sequence[NDArray[Any]]
) -> dict[int, NDArray[np.generic]]:
    """The arguments, element after element, by the buffers that they are.

    Raises:
        ValueError: another number of them, another shape or type, or gaps between elements.
    """
    if len(parameters) != len(arguments):
        raise ValueError(f"{len(parameters)} arguments are needed, not {len(arguments)}")
    for buffer, argument in zip(parameters, arguments, strict=True):
        if buffer.scope != "global":
            raise NotUnderstood(f"the parameter {buffer} in {buffer.scope} memory")
        if (argument.shape, argument.dtype) != (buffer.shape, np.dtype(buffer.dtype)):
            raise ValueError(
                f"{buffer} is {buffer.dtype} of {buffer.shape}, not {argument.dtype} of "
                f"{argument.shape}"
            )
        if not argument.flags.c_contiguous or not argument.flags.writeable:
            raise ValueError(f"{buffer} is to be contiguous and writeable")
    return {
        buffer.key: argument.reshape(-1)
        for buffer, argument in zip(parameters, arguments, strict=True)
    }


class Turn:
    """A warp, where it is, and what it waits for."""

    def __init__(self, warp: Warp, run: Run) -> None:
        self.warp = warp
        self.run = run
        self.pause = Pause()

    def can_go_on(self) -> bool:
        """Whether nothing holds it."""
        return self.pause.ready is None or self.pause.ready()


class Scheduler:
    """Picks warps in an order that the generator decides."""

    def __init__(
        self,
        machine: Machine,
        geometry: Geometry,
        step: Step,
        room: int,
        generator: np.random.Generator,
    ) -> None:
        """`room` is how many clusters run at a time."""
        self.machine = machine
        self.geometry = geometry
        self.step = step
        self.generator = generator
        self.waiting = deque(range(geometry.ctas // geometry.cluster))
        self.turns: list[Turn] = []
        self.running: list[Cluster] = []
        for _ in range(min(room, len(self.waiting))):
            self.start()

    def start(self) -> None:
        """Start the next cluster."""
        cluster = Cluster(self.waiting.popleft())
        for rank in range(self.geometry.cluster):
            number = cluster.number * self.geometry.cluster + rank
            cluster.ctas.append(Cta(self.machine, cluster, number, self.geometry.shared))
        for cta in cluster.ctas:
            cta.warps = [Warp(cta, rank) for rank in range(self.geometry.warps)]
            self.turns += [Turn(warp, self.step(warp)) for warp in cta.warps]
        self.running.append(cluster)

    def run(self) -> None:
        """Go on until all have ended.

        Raises:
            HaltError: a fault after which nothing has a meaning.
        """
        while self.turns:
            ready = [turn for turn in self.turns if turn.can_go_on()]
            if not ready:
                if not self.machine.asynchronous.end_one(lambda n: int(self.generator.integers(n))):
                    raise self.deadlock()
                continue
            turn = ready[int(self.generator.integers(len(ready)))]
            following = next(turn.run, None)
            if following is None:
                self.turns.remove(turn)
                self.end(turn.warp.cta)
            else:
                turn.pause = following

    def deadlock(self) -> HaltError:
        """Enter who waits for what."""
        for turn in self.turns:
            place = turn.pause.place or str(turn.warp)
            self.machine.fault(Kind.DEADLOCK, turn.pause.what(), place)
        return HaltError()

    def end(self, cta: Cta) -> None:
        """A warp has ended; with the last one its CTA, with that perhaps its cluster."""
        if any(turn.warp.cta is cta for turn in self.turns):
            return
        exit_cta(cta)
        if all(other.exited for other in cta.cluster.ctas):
            self.running.remove(cta.cluster)
            if self.waiting:
                self.start()
