"""What was measured, as tables for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from examples.gpu_gemm.measure import Measured, OnGpu
from examples.gpu_gemm.tile import Tile
from examples.text_table import aligned
from mfmadsl.model import product_of

_WORDS = ("step",)


def predicted(measured: Sequence[Measured], number: int, arch: str) -> str:
    """The steps at the size of that number: time, rate, and what limits each."""
    product = product_of(arch)
    size = measured[0].sizes[number].prediction.size
    rows = [
        ["step", "us", "MAC/cycle/CU", "speed-up", "limited by", "workgroups", "registers", "LDS"]
    ]
    before = None
    for each in measured:
        found = each.sizes[number].prediction
        rows.append([
            each.step.name, f"{found.microseconds:,.1f}", f"{found.rate:.2f}",
            f"{before / found.microseconds:.2f}" if before else "",
            found.limit + (f" ({found.share:.0%})" if found.share else ""),
            f"{found.workgroups} x {found.threads}",
            f"{found.registers}" + (f", {found.spilled} spilled" if found.spilled else ""),
            f"{found.lds_bytes}",
        ])  # fmt: skip
        before = found.microseconds
    title = (
        f"{size} (M x N x K), in the model of an {product.name} ({arch}, "
        f"{product.compute_units} compute units); `speed-up` is over the step before"
    )
    return f"{title}\n{aligned(rows, _WORDS)}"


def on_cuda(measured: Sequence[Measured], arch: str, gpu: OnGpu | None) -> str:
    """The same schedules for CUDA: what nvcc says of them, and what a GPU took."""
    rows = [["step", "grid", "block", "registers", "spilled", "shared"]]
    rows[0] += ["us", "of cuBLAS"] if gpu else []
    for each in measured:
        if each.source is None:
            continue
        made, cubin = each.source, each.cubin
        row = [each.step.name, _extents(made.grid), _extents(made.block)]
        row += (
            [f"{cubin.registers}", f"{cubin.spill_stores}", f"{cubin.shared}"]
            if cubin
            else ["-"] * 3
        )
        if gpu:
            took = gpu.steps[each.step.name].microseconds
            share = f"{gpu.cublas.microseconds / took:.0%}" if gpu.cublas else "-"
            row += [f"{took:,.1f}", share]
        rows.append(row)
    title = f"the same schedules for CUDA, {arch}"
    if gpu:
        title += f"; times of {gpu.size} on {gpu.name}"
        if gpu.cublas:
            title += f", where cuBLAS takes {gpu.cublas.microseconds:,.1f} us"
    return f"{title}\n{aligned(rows, _WORDS)}"


def tried(measured: Sequence[Measured]) -> str:
    """The tiles of the tuned steps, the fastest first."""
    lines = []
    for each in measured:
        for at in each.sizes:
            if at.trials:
                lines.append(f"tiles that {each.step.name} tried for {at.prediction.size}:")
            for trial in at.trials:
                took = f"{trial.microseconds:.1f} us" if trial.microseconds else "no kernel"
                lines.append(f"    {described(trial.tile):<50}{took:>12}")
    return "\n".join(lines)


def described(tile: Tile) -> str:
    """A tile in words."""
    rows, columns = tile.extents
    threads = "x".join(map(str, tile.threads))
    parts = "x".join(map(str, tile.parts))
    return f"{rows}x{columns}, K {tile.k_step}: {threads} threads, {parts} parts"


def as_json(
    measured: Sequence[Measured], arch: str, cuda_arch: str, gpu: OnGpu | None
) -> dict[str, Any]:
    """All of it, for programs: times in microseconds, rates in multiply-adds a cycle and unit."""
    return {
        "arch": arch,
        "product": product_of(arch).name,
        "cuda_arch": cuda_arch,
        "steps": [_step_json(each) for each in measured],
        "gpu": None if gpu is None else {
            "name": gpu.name, "arch": gpu.arch, "size": asdict(gpu.size),
            "steps": {name: asdict(took) for name, took in gpu.steps.items()},
            "cublas": asdict(gpu.cublas) if gpu.cublas else None,
        },
    }  # fmt: skip


def _step_json(each: Measured) -> dict[str, Any]:
    cubin = each.cubin
    return {
        "name": each.step.name,
        "change": each.step.change,
        "dtype": each.step.dtype,
        "right": each.wrong is None,
        "wrong": each.wrong,
        "sizes": [asdict(at) for at in each.sizes],
        "cuda": None if each.source is None else {
            "grid": each.source.grid, "block": each.source.block, "refused": each.refused,
            "registers": cubin.registers if cubin else None,
            "spilled_bytes": cubin.spill_stores if cubin else None,
            "shared_bytes": cubin.shared if cubin else None,
        },
    }  # fmt: skip


def _extents(extents: tuple[int, int, int]) -> str:
    return "x".join(map(str, extents[:2]))
