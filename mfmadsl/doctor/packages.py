"""The Python packages that the main job needs, and those that extras bring."""

from __future__ import annotations

from collections.abc import Iterator

from mfmadsl.doctor.child import ask
from mfmadsl.doctor.finding import Finding
from mfmadsl.doctor.requirement import PackageRequirement, installed, requirements
from mfmadsl.environment.tvm_versions import TVM_REMEDY, ToolchainError, require_supported_tvm

MODULES = {
    "apache-tvm-ffi": "tvm_ffi",
    "apache-tvm": "tvm",
    "click": "click",
    "jinja2": "jinja2",
    "lark": "lark",
    "lazy-loader": "lazy_loader",
    "llvmlite": "llvmlite.binding",
    "msgpack": "msgpack",
    "ml-dtypes": "ml_dtypes",
    "numpy": "numpy",
    "pyelftools": "elftools.elf.elffile",
    "pyyaml": "yaml",
}
"""A module of each distribution that the main job needs: importing it loads its native code."""

EXTRAS = {
    "linker": "a linker and compilers, where the system has none",
    "tune": "TVM's MetaSchedule and RPC for `mfmadsl tune`",
    "lsp": "the language server of `mfmadsl lsp`",
    "bench": "the peers that benchmarks compare with",
    "ladders": "plots of the examples' ladders",
    "cuda": "NVIDIA's compiler, for the examples' CUDA",
    "docs": "this documentation as a site",
    "test": "the tests",
}
"""What each extra of the package is for."""

_IMPORTS = """
for module in sys.argv[2:]:
    tell(tries=module)
    try:
        __import__(module)
    except BaseException as error:
        tell(module=module, fails=reason(error))
    else:
        tell(module=module, fails="")
"""


def dependencies() -> Iterator[Finding]:
    """One finding for each distribution of `MODULES`."""
    asked = {each.name: each for each in requirements() or () if each.extra is None}
    there = [name for name in MODULES if installed(name) is not None]
    fails = _failures([MODULES[name] for name in there])
    for name, module in MODULES.items():
        found = installed(name)
        requirement = asked.get(name, PackageRequirement(name))
        remedy = f"pip install '{name}{requirement.bounds}'"
        if name.startswith("apache-tvm"):
            remedy = TVM_REMEDY
        if found is None:
            yield Finding(name, "missing", True, "is not installed", remedy)
        elif complaint := requirement.complaint() or _tvm_complaint(name):
            yield Finding(name, "wrong", True, complaint, remedy)
        elif fails[module]:
            found += f", but `import {module}` fails: {fails[module]}"
            yield Finding(name, "wrong", True, found, f"{remedy} --force-reinstall")
        else:
            yield Finding(name, "ok", True, found)


def extras() -> Iterator[Finding]:
    """One finding for each extra: whether all is there that it brings."""
    known = requirements()
    for name, purpose in EXTRAS.items():
        title, remedy = f"extra {name}", f"for {purpose}: pip install 'mfmadsl[{name}]'"
        if known is None:
            yield Finding(title, "missing", False, "unknown: mfmadsl is not installed", remedy)
            continue
        own = _brought(name, known)
        lacking = [each.name for each in own if installed(each.name) is None]
        unfit = [
            f"{each.name}: {complaint}"
            for each in own
            if each.name not in lacking and (complaint := each.complaint())
        ]
        if not own:
            yield Finding(title, "wrong", False, "the installed mfmadsl has no such extra", remedy)
        elif lacking:
            yield Finding(title, "missing", False, f"without {', '.join(lacking)}", remedy)
        elif unfit:
            yield Finding(title, "wrong", False, "; ".join(unfit), remedy)
        else:
            yield Finding(title, "ok", False, f"for {purpose}")


def _brought(extra: str, known: tuple[PackageRequirement, ...]) -> list[PackageRequirement]:
    """What an extra asks for, and the extras of mfmadsl that it names."""
    found: list[PackageRequirement] = []
    for each in known:
        if each.extra == extra and each.name == "mfmadsl":
            found += [r for inner in each.extras for r in _brought(inner, known)]
        elif each.extra == extra:
            found.append(each)
    return found


def _tvm_complaint(name: str) -> str:
    """What makes the pair of TVM and its FFI one that does not work, if it is about this one."""
    try:
        require_supported_tvm()
    except ToolchainError as error:
        message = str(error).removesuffix(f": {TVM_REMEDY}")
        return message if f"{name} " in message else ""
    return ""


def _failures(modules: list[str]) -> dict[str, str]:
    """Why each module cannot be imported, empty if it can. One that ends the process ends only its
    own: the others are tried in another."""
    fails: dict[str, str] = {}
    while left := [module for module in modules if module not in fails]:
        answer = ask(_IMPORTS, left)
        fails |= {each["module"]: each["fails"] for each in answer.told if "module" in each}
        tried = [each["tries"] for each in answer.told if "tries" in each]
        culprit = next((module for module in tried or left if module not in fails), None)
        if culprit is not None:
            fails[culprit] = answer.trouble or "ends the process"
    return fails
