"""The ten steps in their order: what is new in each, and by whom its time is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tvm.tirx import PrimFunc

from examples.blackwell_gemm.kernels.problem import SMS
from examples.blackwell_gemm.kernels.v01_one_tile import hgemm_v1
from examples.blackwell_gemm.kernels.v02_k_loop import hgemm_v2
from examples.blackwell_gemm.kernels.v03_grid import hgemm_v3
from examples.blackwell_gemm.kernels.v04_tma import hgemm_v4
from examples.blackwell_gemm.kernels.v05_two_stages import hgemm_v5
from examples.blackwell_gemm.kernels.v06_persistent import hgemm_v6
from examples.blackwell_gemm.kernels.v07_warp_roles import hgemm_v7
from examples.blackwell_gemm.kernels.v08_four_stages import hgemm_v8
from examples.blackwell_gemm.kernels.v09_clusters import hgemm_v9
from examples.blackwell_gemm.kernels.v10_two_consumers import hgemm_v10

Size = tuple[int, int, int]
"""M, N, K."""


@dataclass(frozen=True)
class Step:
    """A kernel and the sizes at which it is shown.

    `check` is the size at which its numbers are checked: all that is special in it happens there
    (stages wrap around, a CTA takes more than one tile). `compile` is the one that is compiled.
    `cluster` CTAs make a product of `tile` = M, N, K elements in each step along K, for which there
    is room `stages` times; with `roles`, warps of their own load, multiply and write back.
    """

    name: str
    build: Callable[..., PrimFunc]
    new: str
    check: Size
    compile: Size
    tile: Size = (128, 128, 64)
    cluster: int = 1
    stages: int = 1
    roles: bool = False
    persistent: bool = False

    @property
    def steps(self) -> int:
        """Along K, at the size that is compiled."""
        return self.compile[2] // self.tile[2]

    def kernel(self, size: Size, sms: int = SMS) -> PrimFunc:
        """The kernel for a size; `sms` counts where it is persistent.

        Raises:
            ValueError: a size, or a number of SMs, that it does not handle.
        """
        build = partial(self.build, sms=sms) if self.persistent else self.build
        return build(*size)


LARGE = (4096, 4096, 4096)

STEPS = (
    Step("v1", hgemm_v1, "one tile, one MMA", (128, 128, 64), (128, 128, 64)),
    Step("v2", hgemm_v2, "the loop over K", (128, 128, 320), (128, 128, 4096)),
    Step("v3", hgemm_v3, "a grid of tiles", (256, 384, 128), LARGE),
    Step("v4", hgemm_v4, "TMA loads and stores", (256, 384, 192), LARGE),
    Step("v5", hgemm_v5, "two stages", (256, 256, 320), LARGE, stages=2),
    Step(
        "v6", hgemm_v6, "persistent CTAs", (384, 384, 192), LARGE,
        stages=2, persistent=True,
    ),
    Step(
        "v7", hgemm_v7, "warps with roles", (384, 384, 192), LARGE,
        stages=2, roles=True, persistent=True,
    ),
    Step(
        "v8", hgemm_v8, "four stages", (384, 256, 448), LARGE,
        stages=4, roles=True, persistent=True,
    ),
    Step(
        "v9", hgemm_v9, "clusters of two CTAs", (512, 512, 320), LARGE,
        tile=(256, 256, 64), cluster=2, stages=4, roles=True, persistent=True,
    ),
    Step(
        "v10", hgemm_v10, "two consumers", (1024, 512, 320), LARGE,
        tile=(512, 256, 64), cluster=2, stages=4, roles=True, persistent=True,
    ),
)  # fmt: skip
