"""The types that `typings` gives TVM are of names, and of parameters, that TVM has."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tvm

TYPINGS = Path(__file__).parent.parent / "typings"
STUBS = sorted(TYPINGS.rglob("*.pyi"))
ONLY_A_TYPE = {"Buffer"}  # `tirx.decl_buffer` makes one: a variable of TVM's


def module_of(stub: Path) -> Any:
    parts = stub.relative_to(TYPINGS).with_suffix("").parts
    return import_module(".".join(part for part in parts if part != "__init__"))


def test_there_are_some() -> None:
    assert len(STUBS) >= 8


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: str(path.relative_to(TYPINGS)))
def test_names_and_parameters_are_those_of_tvm(stub: Path) -> None:
    module = module_of(stub)
    for node in ast.parse(stub.read_text()).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        if node.name.startswith("_") or node.name in ONLY_A_TYPE:
            continue
        there = getattr(module, node.name, None)
        assert there is not None, node.name
        if isinstance(node, ast.FunctionDef):
            check_parameters(node, there)
            continue
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__getattr__":
                check_parameters(method, method_of(there, method.name))


def method_of(owner: Any, name: str) -> Any:
    """A method; those that only some expressions have are there in a variable or a constant."""
    of_some = (owner, tvm.ir.Var, tvm.tirx.IntImm, tvm.te.Tensor)
    found = [getattr(each, name) for each in of_some if hasattr(each, name)]
    assert found, f"{owner} has no {name}"
    return found[0]


def check_parameters(stated: ast.FunctionDef, there: Any) -> None:
    try:
        parameters = inspect.signature(there).parameters
    except ValueError:
        return  # of a function that is not Python's nobody can tell
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        return
    names = [argument.arg for argument in stated.args.args if argument.arg != "self"]
    operator = stated.name.startswith("__") and stated.name != "__init__"
    assert operator or set(names) <= set(parameters), (stated.name, names, list(parameters))
