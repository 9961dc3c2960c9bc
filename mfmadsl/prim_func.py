"""Which function of a TVM module is meant."""

from __future__ import annotations

import tvm
from tvm.tirx import PrimFunc

from mfmadsl.argument import described
from mfmadsl.error import ArgumentTypeError, MfmadslError


def prim_func(
    argument: str, module: PrimFunc | tvm.IRModule, refusal: type[MfmadslError]
) -> PrimFunc:
    """The PrimFunc itself, or of a module `main` or its only function, with the name that it has
    there unless it has one of its own.

    Raises ArgumentTypeError for something else, and `refusal`, naming the functions that there
    are, if none of them can be meant. `argument` is what the caller calls the module.
    """
    if isinstance(module, PrimFunc):
        return module
    if not isinstance(module, tvm.IRModule):
        raise ArgumentTypeError(
            f"{argument}: is a PrimFunc or an IRModule of PrimFuncs, not {described(module)}"
        )
    functions = {name.name_hint: function for name, function in module.functions.items()}
    found = {name: f for name, f in functions.items() if isinstance(f, PrimFunc)}
    others = [name for name in functions if name not in found]
    if others:
        theirs = f"of its PrimFuncs, give one: {', '.join(found)}" if found else (
            "it has no PrimFunc yet: relax.transform.LegalizeOps makes them"
        )  # fmt: skip
        raise refusal(
            f"{argument}: is a module of Relax, a program and not one kernel (`{others[0]}`); "
            f"{theirs}"
        )
    name = "main" if "main" in found else next(iter(found), "")
    if name == "main" or len(found) == 1:
        function = found[name]
        named = "global_symbol" in (function.attrs or {})
        return function if named else function.with_attr("global_symbol", name)
    raise refusal(f"{argument}: no function `main`, but {', '.join(found) or 'none'}")
