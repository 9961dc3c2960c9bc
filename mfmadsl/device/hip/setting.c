/* What programs set for a device or a context: limits, and wishes of how a compute unit divides its
   memory, which CDNA's does not. */
#include "runtime.h"

enum { PREFER_NONE = 0, MOST_CACHE = 3, MOST_BANKS = 2 };

static hipError_t get(int *config) {
  hipError_t error = config ? ready() : hipErrorInvalidValue;
  if (!error) *config = PREFER_NONE;
  return error;
}
static hipError_t set(int config, int most) {
  return config < 0 || config > most ? hipErrorInvalidValue : ready();
}
API hipError_t hipDeviceGetCacheConfig(int *config) { return done(get(config)); }
API hipError_t hipDeviceSetCacheConfig(int config) { return done(set(config, MOST_CACHE)); }
API hipError_t hipCtxGetCacheConfig(int *config) { return done(get(config)); }
API hipError_t hipCtxSetCacheConfig(int config) { return done(set(config, MOST_CACHE)); }
API hipError_t hipDeviceGetSharedMemConfig(int *config) { return done(get(config)); }
API hipError_t hipDeviceSetSharedMemConfig(int config) { return done(set(config, MOST_BANKS)); }
API hipError_t hipCtxGetSharedMemConfig(int *config) { return done(get(config)); }
API hipError_t hipCtxSetSharedMemConfig(int config) { return done(set(config, MOST_BANKS)); }

/* hipLimit_t. Kernels of the emulator have neither a heap nor a place to print to, and as much
   scratch memory as they ask for. */
enum { STACK, PRINTF, HEAP, SCRATCH_LEAST = 0x1000, SCRATCH_MOST, SCRATCH_NOW };
static size_t stack = 1024;
static const size_t MOST_STACK = 131056; /* bytes of a lane, as ROCm allows it */

API hipError_t hipDeviceGetLimit(size_t *value, int limit) {
  hipError_t error = value ? ready() : hipErrorInvalidValue;
  if (error) return done(error);
  switch (limit) {
  case STACK: *value = stack; break;
  case HEAP:
  case PRINTF:
  case SCRATCH_LEAST: *value = 0; break;
  case SCRATCH_MOST:
  case SCRATCH_NOW: *value = MOST_STACK; break;
  default: return done(hipErrorUnsupportedLimit);
  }
  return hipSuccess;
}
API hipError_t hipDeviceSetLimit(int limit, size_t value) {
  hipError_t error = ready();
  if (error) return done(error);
  if (limit == STACK && value <= MOST_STACK) {
    stack = value;
    return hipSuccess;
  }
  if (limit == STACK) return done(hipErrorInvalidValue);
  explain("hipDeviceSetLimit: limit %d cannot be set of an emulated device", limit);
  return done(hipErrorUnsupportedLimit);
}

/* There is no profiler to start: `mfmadsl device --profile` sees all launches. */
API hipError_t hipProfilerStart(void) { return done(ready()); }
API hipError_t hipProfilerStop(void) { return done(ready()); }
