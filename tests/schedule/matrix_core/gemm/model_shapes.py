"""The products of real language models: (N, K) of their projections, and an M of each."""

from __future__ import annotations

PROJECTIONS: dict[str, tuple[tuple[int, int], ...]] = {
    # query, key and value together; output; gate and up together; down; what else there is
    "Llama 2 7B": ((12288, 4096), (4096, 4096), (22016, 4096), (4096, 11008), (32000, 4096)),
    "Llama 2 13B": ((15360, 5120), (5120, 5120), (27648, 5120), (5120, 13824)),
    "Llama 3 8B": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096)),
    "Llama 3 70B": ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)),
    "Llama 3 70B, an eighth": ((1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584)),
    "Llama 3 405B": ((18432, 16384), (16384, 16384), (106496, 16384), (16384, 53248)),
    "Llama 3 405B, an eighth": ((2304, 16384), (16384, 2048), (13312, 16384), (16384, 6656)),
    "Qwen 2.5 7B": ((4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944)),
    "Qwen 2.5 32B": ((7168, 5120), (5120, 5120), (55296, 5120), (5120, 27648)),
    "Gemma 2 9B": ((8192, 3584), (3584, 4096), (28672, 3584), (3584, 14336)),
    "Phi 3 mini": ((9216, 3072), (3072, 3072), (16384, 3072), (3072, 8192)),
    # the experts' last, and their router
    "Mixtral 8x7B": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (8, 4096)),
    "Mixtral 8x22B": ((8192, 6144), (6144, 6144), (32768, 6144), (6144, 16384), (8, 6144)),
    "Qwen 3 30B-A3B": ((5120, 2048), (2048, 4096), (1536, 2048), (2048, 768), (128, 2048)),
    "Qwen 3 235B-A22B": ((9216, 4096), (4096, 8192), (3072, 4096), (4096, 1536), (128, 4096)),
    "gpt-oss 120B": ((5120, 2880), (2880, 4096), (5760, 2880), (2880, 2880), (128, 2880)),
    "DeepSeek V3": (
        (1536, 7168), (24576, 1536), (576, 7168), (32768, 512), (7168, 16384), (36864, 7168),
        (7168, 18432), (4096, 7168), (7168, 2048), (256, 7168),
    ),
}  # fmt: skip

ROWS = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 1000, 1024, 2048, 4096, 8192)
"""M: the tokens that are computed at once, from decoding alone to a long prompt."""


def model_shapes() -> list[tuple[int, int, int]]:
    """(M, N, K), each projection at two M; all of `ROWS` in turn."""
    projections = dict.fromkeys(shape for model in PROJECTIONS.values() for shape in model)
    return [
        (ROWS[place], n, k)
        for number, (n, k) in enumerate(projections)
        for place in (number % len(ROWS), (7 * number + 5) % len(ROWS))
    ]
