"""LLVM IR text to assembly and object file, with what TVM's own emission gets wrong put right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import llvmlite.binding as llvm

from mfmadsl.backend.gpu.assembler import assembled
from mfmadsl.backend.gpu.wait_states import with_wait_states

TRIPLE = "amdgcn-amd-amdhsa"
_GROUP_SIZE = re.compile(r'"amdgpu-flat-work-group-size"="[^"]*"')
_BARRIER = re.compile(r"^( *)(?:tail )?call void @llvm\.amdgcn\.s\.barrier\(\).*$", re.MULTILINE)
_FENCED_BARRIER = (
    r'\1fence syncscope("workgroup") release, !mmra !{tag}'
    "\n"
    r"\1tail call void @llvm.amdgcn.s.barrier()"
    "\n"
    r'\1fence syncscope("workgroup") acquire, !mmra !{tag}'
)
_LDS_AS_GLOBAL = re.compile(r"addrspacecast \(?ptr addrspace\(3\) \S+ to ptr addrspace\(1\)")
_BFLOAT_DECLARATION = re.compile(r"^(declare .*)@bfloat\.([\w.]+)(\(.*)$", re.MULTILINE)
_BFLOAT_CALL = re.compile(
    r"^( *)(%[\w.$-]+) = ((?:tail )?call [^@\n]*)@bfloat\.([\w.]+)\((.*)\)[^()\n]*$", re.MULTILINE
)
_SHORTS = re.compile(r"<(\d+) x i16> (?:\w+ )*?(%[\w.$-]+)")
_LDS_NAME = re.compile(r"@shmem\b")
_SCALED = re.compile(r"call .*@llvm\.amdgcn\.mfma\.scale\.(?!.*(?:, i32 0){4}\))")
"""A scaled matrix instruction; one whose scales are 0 LLVM emits without them."""

_INTO_LDS = re.compile(
    r"^( *(?:tail )?call void @llvm\.amdgcn\.raw\.ptr\.buffer\.load\.lds\(.*\))$", re.MULTILINE
)
_READ_FROM_LDS = r"load [^\n]*ptr addrspace\(3\) |(?:tail )?call [^\n]*@llvm\.amdgcn\.ds\.read\.tr"
_FROM_LDS = re.compile(rf"^( *%[\w.$-]+ = (?:{_READ_FROM_LDS})[^\n]*)$", re.MULTILINE)
_FLAGS = re.compile(r"^!llvm\.module\.flags = !\{(.*)\}$", re.MULTILINE)
_METADATA = re.compile(r"^!(\d+) = ", re.MULTILINE)
_VERSION = re.compile(r'!"amdhsa_code_object_version", i32 (\d+)\}')
_LLVMS_VERSION = 600  # of modules that do not say one
_EARLY = "!mfmadsl.early"
"""Marks a module of which LLVM emits instructions that come too early on some path."""

_NO_INSTRUCTION = "\t;;#ASMSTART\n\t;;#ASMEND\n"
"""What LLVM writes for inline assembly with nothing in it: values that it is to know nothing of."""


_DEVICE_FUNCTIONS = ("device_functions.ll", "math_functions.ll", "narrow_functions.ll")


@cache
def _device_functions() -> tuple[str, ...]:
    return tuple((files("mfmadsl.backend.gpu") / name).read_text() for name in _DEVICE_FUNCTIONS)


class MachineCode(NamedTuple):
    """One module's assembly text, and the LLVM IR, optimized, that it is made of."""

    assembly: str
    optimized: str


def set_group_size(ir: str, threads: int) -> str:
    """Declare the number of threads that a workgroup has.

    Without a device TVM declares 1 to 256, so that larger blocks are undefined, and with one
    1 to 1024, which halves the registers of smaller ones.
    """
    return _GROUP_SIZE.sub(f'"amdgpu-flat-work-group-size"="{threads},{threads}"', ir)


def align_lds(ir: str) -> str:
    """Keep LLVM from accesses of several words of LDS that may not be aligned to their size.

    It joins bytes to them wherever the chip can be set to allow that.
    """
    return _GROUP_SIZE.sub(r'\g<0> "target-features"="-unaligned-access-mode"', ir)


def fence_barriers(ir: str) -> str:
    """Order LDS accesses across each barrier.

    TVM emits a bare `s.barrier`, for which LLVM inserts no wait on gfx90a and newer: an LDS write
    could land after it. The fences are limited to LDS, since waiting for global loads as well
    would undo every prefetch.
    """
    if not _BARRIER.search(ir):
        return ir
    tag = max((int(number) for number in _METADATA.findall(ir)), default=-1) + 1
    ir = _BARRIER.sub(_FENCED_BARRIER.replace("{tag}", str(tag)), ir)
    return f'{ir}\n!{tag} = !{{!"amdgpu-synchronize-as", !"local"}}\n'


def pass_bfloat(ir: str) -> str:
    """Calls of `@bfloat.llvm...` with vectors of 16-bit integers become calls of the intrinsic.

    TIR has no vectors of bfloat, so that generated modules call a function of that name.
    """
    return _BFLOAT_CALL.sub(_with_bitcasts, _BFLOAT_DECLARATION.sub(_with_bfloats, ir))


def _with_bfloats(match: re.Match[str]) -> str:
    name = match[2]
    return f"{match[1]}@{name}{match[3].replace('x i16>', 'x bfloat>')}"


def _with_bitcasts(match: re.Match[str]) -> str:
    indent, target, call, name, arguments = match.groups()
    lines: list[str] = []

    def cast(vector: re.Match[str]) -> str:
        wanted = f"<{vector[1]} x bfloat>"
        value = f"%bfloat.{target[1:]}.{len(lines)}"
        lines.append(f"{indent}{value} = bitcast <{vector[1]} x i16> {vector[2]} to {wanted}")
        return f"{wanted} {value}"

    arguments = _SHORTS.sub(cast, arguments)
    return "\n".join([*lines, f"{indent}{target} = {call}@{name}({arguments})"])


def separate_direct_loads(ir: str) -> str:
    """Tell LLVM that no load from the LDS reads what a load into it is about to write.

    It would wait for all of those before each read otherwise. A kernel that loads into the LDS
    directly waits for itself, where it must. The metadata would not survive inlining: this is for
    the optimized module.
    """
    if not _INTO_LDS.search(ir):
        return ir
    first = max((int(number) for number in _METADATA.findall(ir)), default=-1) + 1
    root, written, read, of_written, of_read = range(first, first + 5)
    ir = _INTO_LDS.sub(rf"\1, !alias.scope !{of_written}, !noalias !{of_read}", ir)
    ir = _FROM_LDS.sub(rf"\1, !alias.scope !{of_read}, !noalias !{of_written}", ir)
    return f"""{ir}
!{root} = distinct !{{!{root}, !"LDS"}}
!{written} = distinct !{{!{written}, !{root}, !"on its way"}}
!{read} = distinct !{{!{read}, !{root}, !"read"}}
!{of_written} = !{{!{written}}}
!{of_read} = !{{!{read}}}
"""


def set_code_object_version(ir: str, version: int) -> str:
    """Say which version of AMD's code objects is to be emitted (LLVM, "User Guide for AMDGPU
    Backend": Code Object). A module without the flag gets LLVM's own default."""
    number = max((int(number) for number in _METADATA.findall(ir)), default=-1) + 1
    flag = f'!{number} = !{{i32 1, !"amdhsa_code_object_version", i32 {100 * version}}}\n'
    if (found := _FLAGS.search(ir)) is None:
        return f"{ir}\n!llvm.module.flags = !{{!{number}}}\n{flag}"
    return _FLAGS.sub(f"!llvm.module.flags = !{{{found[1]}, !{number}}}", ir) + f"\n{flag}"


def loses_address_space(ir: str) -> bool:
    """Whether an address in LDS is taken for one in global memory.

    TVM's code generator does that to a view of a shared buffer; the kernel would compute garbage.
    """
    return bool(_LDS_AS_GLOBAL.search(ir))


def prepare_process(modules: Sequence[str]) -> None:
    """Set LLVM's options for all modules of a code object. Call it once, isolated.

    LLVM 22 takes scaled matrix instructions for ones that may run under a condition, unlike all
    others, and moves those of the last iterations to where a condition stores their sums: operands
    of all of them are live at once, and spill.
    """
    if any(map(asks_for_options, modules)):
        llvm.set_option("", "-disable-machine-sink")


def asks_for_options(ir: str) -> bool:
    """Whether `prepare_process` sets options for a module."""
    return bool(_SCALED.search(ir))


def emit(ir: str, symbol: str, arch: str) -> MachineCode:
    """Optimize and emit the kernel `symbol`. LLVM may end the process: call it isolated."""
    machine = _machine(arch)
    # LLVM orders what lies in the LDS by names: those of several kernels are told apart.
    module = llvm.parse_assembly(_LDS_NAME.sub(f"@{symbol}.shmem", ir))
    if "@mfmadsl." in ir:
        for text in _device_functions():
            functions = llvm.parse_assembly(text)
            functions.data_layout = module.data_layout
            module.link_in(functions)
    for function in module.functions:
        # TVM adds conversion routines to every module; private ones vanish when unused.
        if not function.is_declaration and function.name != symbol:
            function.linkage = "private"
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    optimized = separate_direct_loads(str(module))
    # Emission changes the module, so it starts from the text again.
    assembly = machine.emit_assembly(llvm.parse_assembly(optimized)).replace(_NO_INSTRUCTION, "")
    waiting = with_wait_states(assembly)
    if waiting != assembly:
        optimized = f"{optimized}\n{_EARLY} = !{{}}\n"
    return MachineCode(waiting, optimized)


def emit_object(optimized: Sequence[str], arch: str) -> bytes:
    """The object file of modules that `emit` has optimized. Call it isolated, too."""
    prepare_process(optimized)
    first, *others = map(llvm.parse_assembly, optimized)
    for other in others:
        first.link_in(other)
    machine = _machine(arch)
    if not any(_EARLY in ir for ir in optimized):
        return bytes(machine.emit_object(first))
    flag = _VERSION.search(str(first))
    assembly = with_wait_states(machine.emit_assembly(first))
    return assembled(assembly, TRIPLE, arch, int(flag[1]) if flag else _LLVMS_VERSION)


def _machine(arch: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch, opt=3)
