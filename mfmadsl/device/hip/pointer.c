/* What a pointer points to. */
#include "runtime.h"

enum { UNREGISTERED = 0, HOST = 1, DEVICE = 2 };
/* The flags of memory of the host that streams may reach. */
static hipError_t host_flags(const void *pointer, unsigned *flags) {
  Allocation found;
  hipError_t error = ready();
  if (error || is_registered(pointer, 1, flags)) return error;
  error = find(&found, pointer);
  if (!error && !found.host) error = hipErrorInvalidValue;
  if (!error) *flags = found.flags;
  return error;
}
API hipError_t hipHostGetDevicePointer(void **device_pointer, void *pointer, unsigned flags) {
  unsigned own;
  hipError_t error = device_pointer && !flags ? host_flags(pointer, &own) : hipErrorInvalidValue;
  if (!error) *device_pointer = pointer;
  return done(error);
}
API hipError_t hipHostGetFlags(unsigned *flags, void *pointer) {
  return done(flags ? host_flags(pointer, flags) : hipErrorInvalidValue);
}

typedef struct {
  int type, device;
  void *device_pointer, *host_pointer;
  int managed;
  unsigned flags;
} PointerAttributes;

API hipError_t hipPointerGetAttributes(PointerAttributes *attributes, const void *pointer) {
  Allocation found;
  if (!attributes || !pointer) return done(hipErrorInvalidValue);
  hipError_t error = find(&found, pointer);
  unsigned flags;
  if (error == hipErrorInvalidValue && is_registered(pointer, 1, &flags)) {
    *attributes = (PointerAttributes){HOST, 0, (void *)pointer, (void *)pointer, 0, flags};
    return hipSuccess;
  }
  if (error == hipErrorInvalidValue && !within(pointer)) { /* any other memory of the host */
    *attributes = (PointerAttributes){UNREGISTERED, -2, NULL, NULL, 0, 0};
    return hipSuccess;
  }
  if (error) return done(error);
  *attributes = (PointerAttributes){found.host ? HOST : DEVICE,
                                    found.device,
                                    (void *)pointer,
                                    found.host ? (void *)pointer : NULL,
                                    0,
                                    found.flags};
  return hipSuccess;
}

/* hipPointer_attribute */
enum {
  CONTEXT = 1,
  MEMORY_TYPE = 2,
  DEVICE_POINTER = 3,
  HOST_POINTER = 4,
  SYNCHRONOUS = 6,
  BUFFER = 7,
  IS_MANAGED = 8,
  ORDINAL = 9,
  LEGACY_IPC = 10,
  RANGE_START = 11,
  RANGE_SIZE = 12,
  IS_MAPPED = 13,
  HANDLES = 14,
  REMOTE = 15,
  ACCESS = 16,
  POOL = 17,
};

static hipError_t attribute_of(void *value, int attribute, const Allocation *found,
                               void *pointer) {
  switch (attribute) {
  case MEMORY_TYPE: *(unsigned *)value = found->host ? HOST : DEVICE; return hipSuccess;
  case DEVICE_POINTER: *(void **)value = pointer; return hipSuccess;
  case HOST_POINTER:
    if (!found->host) return hipErrorInvalidValue;
    *(void **)value = pointer;
    return hipSuccess;
  case SYNCHRONOUS: *(int *)value = 1; return hipSuccess;
  case BUFFER: *(uint64_t *)value = found->address; return hipSuccess;
  case IS_MANAGED:
  case LEGACY_IPC: *(bool *)value = false; return hipSuccess;
  case IS_MAPPED: *(bool *)value = true; return hipSuccess;
  case ORDINAL: *(int *)value = found->device; return hipSuccess;
  case RANGE_START: *(void **)value = (void *)found->address; return hipSuccess;
  case RANGE_SIZE: *(size_t *)value = found->size; return hipSuccess;
  case HANDLES:
  case REMOTE: *(int *)value = 0; return hipSuccess;
  case ACCESS: *(int *)value = 3; return hipSuccess;
  case POOL: *(hipMemPool_t *)value = found->pool; return hipSuccess;
  case CONTEXT: return hipErrorNotSupported;
  }
  return hipErrorInvalidValue;
}

API hipError_t hipPointerGetAttribute(void *value, int attribute, void *pointer) {
  Allocation found;
  hipError_t error = value ? find(&found, pointer) : hipErrorInvalidValue;
  return done(error ? error : attribute_of(value, attribute, &found, pointer));
}
API hipError_t hipDrvPointerGetAttributes(unsigned count, const int *attributes, void **values,
                                          void *pointer) {
  if (!count || !attributes || !values) return done(hipErrorInvalidValue);
  for (unsigned i = 0; i < count; i++) {
    Allocation found;
    if (!values[i]) return done(hipErrorInvalidValue);
    hipError_t error = find(&found, pointer);
    if (!error) error = attribute_of(values[i], attributes[i], &found, pointer);
    /* Of what is none of HIP's memory there is nothing to tell, which is no error. */
    if (error && error != hipErrorInvalidValue) return done(error);
  }
  return hipSuccess;
}
API hipError_t hipPointerSetAttribute(const void *value, int attribute, void *pointer) {
  Allocation found;
  hipError_t error = value ? find(&found, pointer) : hipErrorInvalidValue;
  /* All that may be set is that copies wait, which they do here. */
  return done(error || attribute == SYNCHRONOUS ? error : hipErrorInvalidValue);
}
