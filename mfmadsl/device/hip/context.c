/* Contexts: those of the devices, and others that programs make. All of a device share its memory.
   Each thread has a stack of them, and the device that it works with is that of the topmost. */
#include "stream.h"

#include <stdlib.h>

typedef struct Context {
  int device;
  unsigned flags;
  struct Context *next;
} *hipCtx_t;

static struct Context primaries[MOST_DEVICES];
static hipCtx_t others;

enum { DEPTH = 64, KNOWN_FLAGS = 31 };
static _Thread_local hipCtx_t stack[DEPTH];
static _Thread_local int depth;

static hipCtx_t primary(int number) {
  primaries[number].device = number;
  return &primaries[number];
}
static bool is_context(hipCtx_t context) {
  if (context >= primaries && context < primaries + MOST_DEVICES) return true;
  for (hipCtx_t each = others; each; each = each->next)
    if (each == context) return true;
  return false;
}
static hipError_t check(hipCtx_t context) {
  hipError_t error = ready();
  lock();
  if (!error && !is_context(context)) error = hipErrorInvalidContext;
  unlock();
  return error;
}
static hipError_t work_with(int number) {
  hipError_t hipSetDevice(int number);
  return hipSetDevice(number);
}
/* The topmost, if it is still that of the device; hipSetDevice goes by the contexts. */
static hipCtx_t top(void) {
  int number = current_device();
  return depth && stack[depth - 1]->device == number ? stack[depth - 1] : primary(number);
}

static hipError_t push(hipCtx_t context) {
  if (depth == DEPTH) return hipErrorInvalidContext;
  stack[depth++] = context;
  return work_with(context->device);
}

API hipError_t hipCtxCreate(hipCtx_t *context, unsigned flags, int number) {
  hipError_t error = context && flags <= KNOWN_FLAGS ? device_exists(number)
                                                     : hipErrorInvalidValue;
  hipCtx_t made = error ? NULL : malloc(sizeof *made);
  if (!error && !made) error = hipErrorOutOfMemory;
  if (error) return done(error);
  lock();
  *made = (struct Context){number, flags, others};
  *context = others = made;
  unlock();
  return done(push(made));
}
API hipError_t hipCtxDestroy(hipCtx_t context) {
  hipError_t error = hipErrorInvalidContext;
  lock();
  for (hipCtx_t *place = &others; *place; place = &(*place)->next)
    if (*place == context) {
      *place = context->next;
      int kept = 0;
      for (int i = 0; i < depth; i++)
        if (stack[i] != context) stack[kept++] = stack[i];
      depth = kept;
      free(context);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}
API hipError_t hipCtxPushCurrent(hipCtx_t context) {
  hipError_t error = check(context);
  return done(error ? error : push(context));
}
API hipError_t hipCtxPopCurrent(hipCtx_t *context) {
  hipError_t error = ready();
  if (!error && !depth) error = hipErrorInvalidContext;
  if (error) return done(error);
  hipCtx_t popped = stack[--depth];
  if (context) *context = popped;
  return done(work_with(depth ? stack[depth - 1]->device : 0));
}
API hipError_t hipCtxGetCurrent(hipCtx_t *context) {
  hipError_t error = context ? ready() : hipErrorInvalidValue;
  if (!error) *context = top();
  return done(error);
}
API hipError_t hipCtxSetCurrent(hipCtx_t context) {
  hipError_t error = context ? check(context) : ready();
  if (error) return done(error);
  if (depth) depth--;
  return done(context ? push(context) : work_with(depth ? stack[depth - 1]->device : 0));
}
API hipError_t hipCtxGetDevice(int *number) {
  hipError_t error = number ? ready() : hipErrorInvalidValue;
  if (!error) *number = current_device();
  return done(error);
}
API hipError_t hipCtxGetFlags(unsigned *flags) {
  hipError_t error = flags ? ready() : hipErrorInvalidValue;
  if (!error) *flags = top()->flags;
  return done(error);
}
API hipError_t hipCtxGetApiVersion(hipCtx_t context, unsigned *version) {
  hipError_t error = version ? (context ? check(context) : ready()) : hipErrorInvalidValue;
  if (!error) *version = 4; /* as ROCm tells it */
  return done(error);
}
hipError_t hipDeviceSynchronize(void);
API hipError_t hipCtxSynchronize(void) { return hipDeviceSynchronize(); }
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags);
hipError_t hipDeviceDisablePeerAccess(int peer);
API hipError_t hipCtxEnablePeerAccess(hipCtx_t peer, unsigned flags) {
  hipError_t error = check(peer);
  return error ? done(error) : hipDeviceEnablePeerAccess(peer->device, flags);
}
API hipError_t hipCtxDisablePeerAccess(hipCtx_t peer) {
  hipError_t error = check(peer);
  return error ? done(error) : hipDeviceDisablePeerAccess(peer->device);
}

API hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *context, int number) {
  hipError_t error = context ? device_exists(number) : hipErrorInvalidValue;
  if (!error) *context = primary(number);
  return done(error);
}
API hipError_t hipDevicePrimaryCtxRelease(int number) { return done(device_exists(number)); }
API hipError_t hipDevicePrimaryCtxReset(int number) { return done(device_exists(number)); }
API hipError_t hipDevicePrimaryCtxGetState(int number, unsigned *flags, int *active) {
  hipError_t error = flags && active ? device_exists(number) : hipErrorInvalidValue;
  if (!error) *flags = primary(number)->flags, *active = 1;
  return done(error);
}
API hipError_t hipDevicePrimaryCtxSetFlags(int number, unsigned flags) {
  hipError_t error = flags <= KNOWN_FLAGS ? device_exists(number) : hipErrorInvalidValue;
  if (!error) primary(number)->flags = flags;
  return done(error);
}
