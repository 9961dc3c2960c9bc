/* The errors of HIP: their names, what they mean, and the last one of each thread. */
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local hipError_t last;

API const char *hipGetErrorName(hipError_t error);

hipError_t done_in(const char *call, hipError_t error) {
  if (!error) return error;
  last = error;
  explain("%s: %s", call, hipGetErrorName(error));
  return error;
}

void explain(const char *format, ...) {
  if (!getenv("MFMADSL_DEVICE_LOG")) return;
  char text[512];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  fprintf(stderr, "mfmadsl device: %s\n", text);
}

static const struct {
  hipError_t error;
  const char *name, *meaning;
} TABLE[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration",
     "invalid configuration argument"},
    {hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue", "invalid pitch argument"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid device symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice",
     "no ROCm-capable device is detected: start the program with `mfmadsl device -- PROGRAM`, or "
     "on a machine with a GPU without "
     "this library"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid device context"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {hipErrorUnsupportedLimit, "hipErrorUnsupportedLimit",
     "limit is not supported on this architecture"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorOperatingSystem, "hipErrorOperatingSystem",
     "OS call failed or operation not supported on this OS"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "out of resources"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorMissingConfiguration, "hipErrorMissingConfiguration",
     "missing configuration"},
    {hipErrorMapFailed, "hipErrorMapFailed",
     "mapping of buffer object failed"},
    {hipErrorAlreadyMapped, "hipErrorAlreadyMapped",
     "resource is already mapped"},
    {hipErrorNotMapped, "hipErrorNotMapped",
     "resource is not mapped"},
    {hipErrorIllegalState, "hipErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {hipErrorNotReady, "hipErrorNotReady",
     "device not ready"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

static const char *told(hipError_t error, bool name) {
  for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
    if (TABLE[i].error == error) return name ? TABLE[i].name : TABLE[i].meaning;
  return NULL;
}

API hipError_t hipGetLastError(void) {
  hipError_t error = last;
  last = hipSuccess;
  return error;
}
API hipError_t hipExtGetLastError(void) { return hipGetLastError(); }
API hipError_t hipPeekAtLastError(void) { return last; }

API const char *hipGetErrorName(hipError_t error) {
  const char *name = told(error, true);
  return name ? name : "hipErrorUnknown";
}
API const char *hipGetErrorString(hipError_t error) {
  const char *meaning = told(error, false);
  return meaning ? meaning : "unknown error";
}
API hipError_t hipDrvGetErrorName(hipError_t error, const char **name) {
  if (!name) return hipErrorInvalidValue;
  *name = told(error, true);
  return *name ? hipSuccess : hipErrorInvalidValue;
}
API hipError_t hipDrvGetErrorString(hipError_t error, const char **meaning) {
  if (!meaning) return hipErrorInvalidValue;
  *meaning = told(error, false);
  return *meaning ? hipSuccess : hipErrorInvalidValue;
}
