"""What others measured of kernels that can be compiled here, and where they say so.

A third of the figures, those of which `found` is set, went into the constants of the model; the
others are predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SOURCES = {
    "A": "ROCm/gfx950-gluon-tutorials, kernels/gemm/intra_wave/a16w16, v4_global_prefetch",
    "B": "the same, kernels/gemm/inter_wave/a16w16",
    "C": "the same, kernels/gemm/inter_wave/a8w8",
    "D": "the same, kernels/gemm/gfx942: the kernel that is described",
    "E": "the same, an earlier revision, in which reads of the LDS collide; timed with the launch",
    "F": "HipKittens (arXiv 2511.08083): a kernel of another source, with the same plan",
    "G": "HipKittens: Triton's matmul, of which the setting is not told",
}

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Figure:
    """TFLOP/s of a kernel, by its name in `kernels`, on a product."""

    kernel: str
    product: str
    kind: str
    shape: Shape
    measured: float
    source: str
    found: str = ""


def _of(
    kernel: str, product: str, kind: str, source: str, measured: dict[Shape, float],
    found: str = "", place: int = -1,
) -> Iterator[Figure]:  # fmt: skip
    """Some figures of a kernel, of which that at a `place` gave the constant that is `found`."""
    for number, (shape, tflops) in enumerate(measured.items()):
        constant = found if number == place else ""
        yield Figure(kernel, product, kind, shape, tflops, source, constant)


def _square(*sizes: int) -> list[Shape]:
    return [(size, size, size) for size in sizes]


def _deep(n: int, *depths: int) -> list[Shape]:
    return [(4096, n, depth) for depth in depths]


def _paired(shapes: list[Shape], *measured: float) -> dict[Shape, float]:
    return dict(zip(shapes, measured, strict=True))


_DEPTHS = _deep(4096, 8192, 16384, 32768)
_ODD = _deep(4864, 2112, 4160, 8256, 16448)
_LARGE = _square(4096, 8192)

FIGURES = (
    *_of("one-stage", "MI355X", "f16", "A", _paired(_deep(4096, 8192), 738)),
    *_of("two-stages", "MI355X", "f16", "A", _paired(_deep(4096, 8192), 964), "rise", 0),
    *_of("ping-pong", "MI355X", "f16", "B", _paired(_DEPTHS, 1437, 1485, 1291), "f16", 0),
    *_of("ping-pong", "MI355X", "bf8", "C", _paired(_DEPTHS, 2901, 3076, 3054), "bf8", 1),
    *_of("ping-pong", "MI300X", "f16", "D", _paired(_ODD, 620, 618.5, 598.3, 641.1), "f16", 1),
    *_of("ping-pong", "MI300X", "bf16", "D", _paired(_ODD, 644.4, 658.3, 647.3, 689.9), "bf16", 1),
    *_of("colliding", "MI300X", "f16", "E", _paired(_ODD[:3], 572, 622, 575)),
    *_of("colliding", "MI300X", "f16", "E", _paired(_deep(4096, 8192), 510)),
    *_of("ping-pong", "MI355X", "bf16", "F", _paired(_LARGE, 1413, 1610)),
    *_of("ping-pong", "MI355X", "bf8", "F", _paired(_LARGE, 2749, 3327)),
    *_of("ping-pong", "MI325X", "bf16", "F", _paired(_LARGE, 733, 749)),
    *_of("triton", "MI355X", "bf16", "G", _paired(_LARGE, 994, 1144)),
)
