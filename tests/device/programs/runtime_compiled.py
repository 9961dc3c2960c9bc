"""A program in HIP's C++, compiled by hiprtc and launched: prints what is wrong.

mfmadsl device -- python -m tests.device.programs.runtime_compiled
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from hip import hip, hiprtc

from tests.device.programs.calls import call, check, tell

TEXT = b"""
template <typename T> __global__ void scaled(T *x, T factor, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = factor * x[i] + OFFSET;
}
"""
COUNT = 100
KIND = hip.hipMemcpyKind
R = hiprtc.hiprtcResult


def created(text: bytes) -> Any:
    return call(hiprtc.hiprtcCreateProgram(text, b"scaled.hip", 0, None, None))


def log_of(program: Any) -> str:
    log = bytearray(call(hiprtc.hiprtcGetProgramLogSize(program)))
    call(hiprtc.hiprtcGetProgramLog(program, log))
    return log.rstrip(b"\0").decode()


def compiled_and_launched() -> None:
    program = created(TEXT)
    call(hiprtc.hiprtcAddNameExpression(program, b"scaled<float>"))
    early = hiprtc.hiprtcGetLoweredName(program, b"scaled<float>")[0]
    check("no name yet", early == R.HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION)
    check("no code yet", hiprtc.hiprtcGetCodeSize(program)[0] == R.HIPRTC_ERROR_INVALID_PROGRAM)
    call(hiprtc.hiprtcCompileProgram(program, 1, [b"-DOFFSET=5"]))
    check("log", log_of(program) == "")
    late = hiprtc.hiprtcAddNameExpression(program, b"scaled<int>")[0]
    check("too late", late == R.HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION)
    other = hiprtc.hiprtcGetLoweredName(program, b"scaled<int>")[0]
    check("not asked for", other == R.HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID)
    name = call(hiprtc.hiprtcGetLoweredName(program, b"scaled<float>"))
    code = bytearray(call(hiprtc.hiprtcGetCodeSize(program)))
    call(hiprtc.hiprtcGetCode(program, code))
    function = call(hip.hipModuleGetFunction(call(hip.hipModuleLoadData(code)), name))
    x = np.arange(COUNT, dtype=np.float32)
    on_device = call(hip.hipMalloc(x.nbytes))
    call(hip.hipMemcpy(on_device, x, x.nbytes, KIND.hipMemcpyHostToDevice))
    extents = (2, 1, 1, 64, 1, 1)
    given = (on_device, ctypes.c_float(3), ctypes.c_int(COUNT))
    call(hip.hipModuleLaunchKernel(function, *extents, 0, None, None, given))
    found = np.zeros_like(x)
    call(hip.hipMemcpy(found, on_device, x.nbytes, KIND.hipMemcpyDeviceToHost))
    check("result", (found == 3 * x + 5).all())
    call(hiprtc.hiprtcDestroyProgram(program.createRef()))


def refused() -> None:
    program = created(TEXT)
    error = hiprtc.hiprtcCompileProgram(program, 0, [])[0]
    check("does not compile", error == R.HIPRTC_ERROR_COMPILATION)
    check("says where", "scaled.hip:4:41: error: use of undeclared" in log_of(program))
    check("no code", hiprtc.hiprtcGetCodeSize(program)[0] == R.HIPRTC_ERROR_INVALID_PROGRAM)
    check("no bitcode", hiprtc.hiprtcGetBitcodeSize(program)[0] == R.HIPRTC_ERROR_INVALID_PROGRAM)
    check("twice", hiprtc.hiprtcCompileProgram(program, 0, [])[0] == R.HIPRTC_ERROR_COMPILATION)
    check(
        "no source",
        hiprtc.hiprtcCreateProgram(None, None, 0, None, None)[0] == R.HIPRTC_ERROR_INVALID_INPUT,
    )


compiled_and_launched()
refused()
tell("calls")
