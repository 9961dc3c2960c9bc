"""A module whose attentions of TVM's KV cache are ours, each with TVM's own kernel in it."""

from __future__ import annotations

import tvm
from tvm.target import Target
from tvm.tirx import PrimFunc

from mfmadsl.error import MfmadslError
from mfmadsl.relax.kv_cache.kernels import cache_kernels
from mfmadsl.relax.kv_cache.recognise import looks_like_attention, recognised
from mfmadsl.relax.report import Scheduled, ranges, taken

TVM = "TVM"
"""The rule of what TVM's own frontend has scheduled."""


def with_cache_kernels(
    module: tvm.IRModule, target: Target
) -> tuple[tvm.IRModule, tuple[Scheduled, ...]]:
    """The module, with such functions exchanged, and what became of them and of what looks so.

    They take the same parameters, and stay TVM's where they are others than its frontend makes, or
    of types and sizes that no kernel of ours is for.
    """
    changed: tvm.IRModule = module.clone()
    lines = []
    for variable, function in module.functions_items():
        if not isinstance(function, PrimFunc) or not looks_like_attention(function):
            continue
        name = str(variable.name_hint)
        try:
            found = recognised(function, target)
            if found is None:
                reason = "is none of those attentions of TVM's KV cache that become ours"
                lines.append(Scheduled(name, TVM, reason=reason))
                continue
            made = cache_kernels(found, str(target.attrs.get("mcpu", "")))
        except MfmadslError as error:
            lines.append(Scheduled(name, TVM, reason=str(error)))
            continue
        changed.update_func(variable, made.function)
        limits = [*([limit] for limit, _ in made.cases[:-1]), []]
        which = ranges("batches", limits)
        tilings = [tiling for _, tiling in made.cases]
        lines.append(taken(name, list(zip(which, tilings, strict=True))))
    return changed, tuple(lines)
