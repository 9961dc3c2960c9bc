/* The ways to ask for a launch. */
#include "module.h"
#include "stream.h"

#include <string.h>

API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned lds_bytes,
                                     hipStream_t stream, void **values, void **extra) {
  return done(
      launch(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, lds_bytes, stream, values, extra));
}
API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                                unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                unsigned lds_bytes, hipStream_t stream,
                                                void **values) {
  return done(
      launch(function, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, lds_bytes, stream, values, NULL));
}

typedef struct {
  dim3 grid, block;
  unsigned lds_bytes;
  hipStream_t stream;
  void *attributes;
  unsigned count;
} LaunchConfiguration;
API hipError_t hipDrvLaunchKernelEx(const LaunchConfiguration *how, hipFunction_t function,
                                    void **values, void **extra) {
  if (!how) return done(hipErrorInvalidValue);
  return done(launch(function, how->grid, how->block, how->lds_bytes, how->stream, values, extra));
}

/* Named by its stub, as compilers do. */
API hipError_t hipLaunchKernelExC(const LaunchConfiguration *how, const void *named,
                                  void **values) {
  hipFunction_t function;
  hipError_t error = how ? any_function(&function, named) : hipErrorInvalidValue;
  if (error) return done(error);
  return done(
      launch(function, how->grid, how->block, how->lds_bytes, how->stream, values, NULL));
}

/* Its grid is in threads, and need not be whole blocks: those that are not are refused. */
API hipError_t hipExtModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy,
                                        unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                        size_t lds_bytes, hipStream_t stream, void **values,
                                        void **extra, hipEvent_t before, hipEvent_t after,
                                        unsigned flags) {
  (void)flags;
  if (!bx || !by || !bz || lds_bytes > UINT32_MAX) return done(hipErrorInvalidConfiguration);
  if (gx % bx || gy % by || gz % bz) {
    explain("hipExtModuleLaunchKernel: %u x %u x %u threads are no whole blocks of %u x %u x %u",
            gx, gy, gz, bx, by, bz);
    return done(hipErrorNotSupported);
  }
  hipError_t error = before ? hipEventRecord(before, stream) : hipSuccess;
  if (!error)
    error = launch(function, (dim3){gx / bx, gy / by, gz / bz}, (dim3){bx, by, bz},
                   (uint32_t)lds_bytes, stream, values, extra);
  if (!error && after) error = hipEventRecord(after, stream);
  return done(error);
}

/* Events before and after a launch by its stub. */
API hipError_t hipExtLaunchKernel(const void *named, dim3 grid, dim3 block, void **values,
                                  size_t lds_bytes, hipStream_t stream, hipEvent_t before,
                                  hipEvent_t after, int flags) {
  (void)flags;
  if (lds_bytes > UINT32_MAX) return done(hipErrorInvalidConfiguration);
  hipFunction_t function;
  hipError_t error = any_function(&function, named);
  if (!error && before) error = hipEventRecord(before, stream);
  if (!error)
    error = launch(function, grid, block, (uint32_t)lds_bytes, stream, values, NULL);
  if (!error && after) error = hipEventRecord(after, stream);
  return done(error);
}

/* Launches on several devices, one after another: all of them are done when this returns. */
typedef struct {
  hipFunction_t function;
  unsigned gx, gy, gz, bx, by, bz, lds_bytes;
  hipStream_t stream;
  void **values;
} FunctionLaunch;
typedef struct {
  void *named;
  dim3 grid, block;
  void **values;
  size_t lds_bytes;
  hipStream_t stream;
} StubLaunch;

/* Each on a stream of its own device. */
static hipError_t check_streams(size_t count, hipStream_t (*stream_of)(const void *, size_t),
                                const void *list) {
  bool taken[MOST_DEVICES] = {false};
  for (size_t i = 0; i < count; i++) {
    hipStream_t stream = stream_of(list, i);
    hipError_t error = usable(stream);
    if (error) return error;
    if (standard(stream) || taken[device_of(stream)]) return hipErrorInvalidValue;
    taken[device_of(stream)] = true;
  }
  return count ? hipSuccess : hipErrorInvalidValue;
}
static hipStream_t functions_stream(const void *list, size_t i) {
  return ((const FunctionLaunch *)list)[i].stream;
}
static hipStream_t stubs_stream(const void *list, size_t i) {
  return ((const StubLaunch *)list)[i].stream;
}

API hipError_t hipModuleLaunchCooperativeKernelMultiDevice(const FunctionLaunch *list,
                                                           unsigned count, unsigned flags) {
  (void)flags;
  hipError_t error = list ? check_streams(count, functions_stream, list) : hipErrorInvalidValue;
  for (unsigned i = 0; i < count && !error; i++) {
    const FunctionLaunch *one = &list[i];
    error = launch(one->function, (dim3){one->gx, one->gy, one->gz},
                   (dim3){one->bx, one->by, one->bz}, one->lds_bytes, one->stream, one->values,
                   NULL);
  }
  return done(error);
}
static hipError_t launch_stubs(const StubLaunch *list, int count) {
  hipError_t error = list && count > 0 ? check_streams((size_t)count, stubs_stream, list)
                                       : hipErrorInvalidValue;
  for (int i = 0; i < count && !error; i++) {
    hipFunction_t function;
    if (list[i].lds_bytes > UINT32_MAX) return hipErrorInvalidConfiguration;
    error = any_function(&function, list[i].named);
    if (!error)
      error = launch(function, list[i].grid, list[i].block, (uint32_t)list[i].lds_bytes,
                     list[i].stream, list[i].values, NULL);
  }
  return error;
}
API hipError_t hipLaunchCooperativeKernelMultiDevice(const StubLaunch *list, int count,
                                                     unsigned flags) {
  (void)flags;
  return done(launch_stubs(list, count));
}
API hipError_t hipExtLaunchMultiKernelMultiDevice(const StubLaunch *list, int count,
                                                  unsigned flags) {
  (void)flags;
  return done(launch_stubs(list, count));
}

/* The oldest way: sizes, then arguments one by one at their offsets, then the kernel. */
enum { MOST_BYTES = 4096 };
static _Thread_local struct {
  bool asked;
  dim3 grid, block;
  size_t lds_bytes, argument_bytes;
  hipStream_t stream;
  char arguments[MOST_BYTES];
} configured;

API hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t lds_bytes, hipStream_t stream) {
  configured.asked = true, configured.grid = grid, configured.block = block;
  configured.lds_bytes = lds_bytes, configured.stream = stream, configured.argument_bytes = 0;
  return hipSuccess;
}
API hipError_t hipSetupArgument(const void *argument, size_t size, size_t offset) {
  if (!configured.asked) return done(hipErrorMissingConfiguration);
  if (!argument || offset > MOST_BYTES || size > MOST_BYTES - offset)
    return done(hipErrorInvalidValue);
  memcpy(configured.arguments + offset, argument, size);
  if (offset + size > configured.argument_bytes) configured.argument_bytes = offset + size;
  return hipSuccess;
}
API hipError_t hipLaunchByPtr(const void *named) {
  if (!configured.asked) return done(hipErrorMissingConfiguration);
  configured.asked = false;
  hipFunction_t function;
  hipError_t error = configured.lds_bytes > UINT32_MAX ? hipErrorInvalidConfiguration
                                                       : any_function(&function, named);
  if (error) return done(error);
  void *extra[] = {(void *)1, configured.arguments, (void *)2, &configured.argument_bytes,
                   (void *)3};
  return done(launch(function, configured.grid, configured.block, (uint32_t)configured.lds_bytes,
                     configured.stream, NULL, extra));
}
