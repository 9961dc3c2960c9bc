/* The allocations in the range that this process and the emulator share.

   Addresses are those of this process, on the host as on the device. An unallocated page separates
   two allocations, so that an access past the end of one is found. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static Allocation *known;
static size_t count, room, used;
static uint64_t changes;

const Allocation *allocations(size_t *number, uint64_t *version) {
  *number = count, *version = changes;
  return known;
}

/* How many allocations begin at or before an address. */
static size_t up_to(uint64_t address) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (known[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const Allocation *holding(const void *pointer, size_t size) {
  uint64_t address = (uint64_t)pointer;
  size_t place = up_to(address);
  if (!place) return NULL;
  const Allocation *found = &known[place - 1];
  uint64_t offset = address - found->address;
  return offset < found->size && size <= found->size - offset ? found : NULL;
}

static uint64_t pages(uint64_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static hipError_t allocate(void **pointer, size_t size, uint32_t flags, bool host) {
  if (!pointer) return hipErrorInvalidValue;
  *pointer = NULL;
  hipError_t error = ready();
  if (error || !size) return error;
  lock();
  error = hipErrorOutOfMemory;
  if (count == room) {
    Allocation *more = realloc(known, (room ? 2 * room : 64) * sizeof *known);
    if (!more) goto end;
    known = more, room = room ? 2 * room : 64;
  }
  if (size > (uint64_t)device.memory_bytes - used) {
    explain("%zu bytes are asked for, %zu of %lld are taken", size, used,
            (long long)device.memory_bytes);
    goto end;
  }
  /* The first gap that is large enough, after what the emulator keeps for itself. */
  uint64_t at = memory_start() + device.reserved_bytes;
  size_t place = 0;
  while (place < count && known[place].address - at < pages(size) + PAGE) {
    at = known[place].address + pages(known[place].size) + PAGE;
    place++;
  }
  if (at + pages(size) + PAGE > memory_start() + RANGE) goto end;
  memmove(known + place + 1, known + place, (count - place) * sizeof *known);
  known[place] = (Allocation){at, size, flags, host};
  count++, changes++, used += size;
  *pointer = (void *)at;
  error = hipSuccess;
end:
  unlock();
  return error;
}

static hipError_t release(void *pointer, bool host) {
  if (!pointer) return hipSuccess;
  hipError_t error = ready();
  if (error) return error;
  lock();
  size_t place = up_to((uint64_t)pointer);
  error = hipErrorInvalidValue;
  if (place && known[place - 1].address == (uint64_t)pointer && known[place - 1].host == host) {
    Allocation *found = &known[place - 1];
    /* Gives the pages back; who still reads them finds zeros. */
    give_back(found->address - memory_start(), pages(found->size));
    used -= found->size;
    memmove(found, found + 1, (count - place) * sizeof *known);
    count--, changes++;
    error = hipSuccess;
  }
  unlock();
  return error;
}

void release_all(void) {
  lock();
  give_back(device.reserved_bytes, RANGE - device.reserved_bytes);
  used = count = 0, changes++;
  forget_fault();
  unlock();
}

API hipError_t hipMalloc(void **pointer, size_t size) {
  return done(allocate(pointer, size, 0, false));
}
API hipError_t hipExtMallocWithFlags(void **pointer, size_t size, unsigned flags) {
  return done(allocate(pointer, size, flags, false));
}
API hipError_t hipMallocManaged(void **pointer, size_t size, unsigned flags) {
  return done(allocate(pointer, size, flags, false));
}
API hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream) {
  return done(is_stream(stream) ? allocate(pointer, size, 0, false) : hipErrorInvalidHandle);
}
API hipError_t hipFree(void *pointer) { return done(release(pointer, false)); }
API hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
  return done(is_stream(stream) ? release(pointer, false) : hipErrorInvalidHandle);
}
API hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags) {
  return done(allocate(pointer, size, flags, true));
}
API hipError_t hipHostAlloc(void **pointer, size_t size, unsigned flags) {
  return done(allocate(pointer, size, flags, true));
}
API hipError_t hipMallocHost(void **pointer, size_t size) {
  return done(allocate(pointer, size, 0, true));
}
API hipError_t hipMemAllocHost(void **pointer, size_t size) {
  return done(allocate(pointer, size, 0, true));
}
API hipError_t hipHostFree(void *pointer) { return done(release(pointer, true)); }
API hipError_t hipFreeHost(void *pointer) { return done(release(pointer, true)); }

/* Memory of the host that was not allocated here is not the emulator's to see. */
API hipError_t hipHostRegister(void *pointer, size_t size, unsigned flags) {
  (void)pointer, (void)size, (void)flags;
  explain("hipHostRegister: memory of malloc cannot be shared: take hipHostMalloc");
  return done(hipErrorNotSupported);
}
API hipError_t hipHostUnregister(void *pointer) {
  (void)pointer;
  return done(hipErrorHostMemoryNotRegistered);
}

API hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  size_t row = (width + 255) / 256 * 256, size;
  if (!pitch || row < width || __builtin_mul_overflow(row, height, &size))
    return done(hipErrorInvalidValue);
  *pitch = row;
  return done(allocate(pointer, size, 0, false));
}

API hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total) {
  hipError_t error = ready();
  if (error || !free_bytes || !total) return done(error ? error : hipErrorInvalidValue);
  lock();
  *total = device.memory_bytes, *free_bytes = device.memory_bytes - used;
  unlock();
  return hipSuccess;
}

/* An allocation that is looked at after the lock is given back. */
static hipError_t find(Allocation *found, const void *pointer) {
  hipError_t error = ready();
  if (error) return error;
  lock();
  const Allocation *there = holding(pointer, 1);
  if (there) *found = *there;
  unlock();
  return there ? hipSuccess : hipErrorInvalidValue;
}

API hipError_t hipMemGetAddressRange(void **base, size_t *size, void *pointer) {
  Allocation found;
  hipError_t error = find(&found, pointer);
  if (error) return done(error == hipErrorInvalidValue ? hipErrorNotFound : error);
  if (base) *base = (void *)found.address;
  if (size) *size = found.size;
  return hipSuccess;
}
API hipError_t hipMemPtrGetInfo(void *pointer, size_t *size) {
  Allocation found;
  hipError_t error = size ? find(&found, pointer) : hipErrorInvalidValue;
  if (!error) *size = found.size;
  return done(error);
}
API hipError_t hipHostGetDevicePointer(void **device_pointer, void *pointer, unsigned flags) {
  Allocation found;
  if (!device_pointer || flags) return done(hipErrorInvalidValue);
  hipError_t error = find(&found, pointer);
  if (!error && !found.host) error = hipErrorInvalidValue;
  if (!error) *device_pointer = pointer;
  return done(error);
}
API hipError_t hipHostGetFlags(unsigned *flags, void *pointer) {
  Allocation found;
  hipError_t error = flags ? find(&found, pointer) : hipErrorInvalidValue;
  if (!error && !found.host) error = hipErrorInvalidValue;
  if (!error) *flags = found.flags;
  return done(error);
}

enum { UNREGISTERED = 0, HOST = 1, DEVICE = 2 };
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
  if (error == hipErrorInvalidValue && !within(pointer)) { /* any other memory of the host */
    *attributes = (PointerAttributes){UNREGISTERED, -2, NULL, NULL, 0, 0};
    return hipSuccess;
  }
  if (error) return done(error);
  *attributes = (PointerAttributes){found.host ? HOST : DEVICE,          0, (void *)pointer,
                                    found.host ? (void *)pointer : NULL, 0, found.flags};
  return hipSuccess;
}

API hipError_t hipPointerGetAttribute(void *value, int attribute, void *pointer) {
  enum {
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    IS_MANAGED = 8,
    ORDINAL = 9,
    RANGE_START = 11,
    RANGE_SIZE = 12
  };
  Allocation found;
  hipError_t error = value ? find(&found, pointer) : hipErrorInvalidValue;
  if (error) return done(error);
  switch (attribute) {
  case MEMORY_TYPE: *(unsigned *)value = found.host ? HOST : DEVICE; break;
  case DEVICE_POINTER: *(void **)value = pointer; break;
  case HOST_POINTER:
    if (!found.host) return done(hipErrorInvalidValue);
    *(void **)value = pointer;
    break;
  case IS_MANAGED: *(bool *)value = false; break;
  case ORDINAL: *(int *)value = 0; break;
  case RANGE_START: *(void **)value = (void *)found.address; break;
  case RANGE_SIZE: *(size_t *)value = found.size; break;
  default: return done(hipErrorNotSupported);
  }
  return hipSuccess;
}

/* Copies. What is said to lie on the device must, all of it in one allocation. */
enum {
  HOST_TO_HOST,
  HOST_TO_DEVICE,
  DEVICE_TO_HOST,
  DEVICE_TO_DEVICE,
  BY_ADDRESS,
  WITHOUT_UNITS = 1024
};

static bool reachable(const void *pointer, size_t size, bool on_device, const char *what) {
  if (!on_device && !within(pointer)) return true;
  if (holding(pointer, size)) return true;
  explain("%zu bytes at %p, the %s of a copy, are not within one allocation", size, pointer, what);
  return false;
}

static hipError_t may_copy(const void *to, size_t to_size, const void *from, size_t from_size,
                           int kind) {
  if (kind < HOST_TO_HOST || (kind > BY_ADDRESS && kind != WITHOUT_UNITS))
    return hipErrorInvalidMemcpyDirection;
  if (!to || !from) return hipErrorInvalidValue;
  bool within_device = kind == DEVICE_TO_DEVICE || kind == WITHOUT_UNITS;
  if (!reachable(to, to_size, within_device || kind == HOST_TO_DEVICE, "destination"))
    return hipErrorInvalidValue;
  if (!reachable(from, from_size, within_device || kind == DEVICE_TO_HOST, "source"))
    return hipErrorInvalidValue;
  return fault();
}

/* `height` rows of `width` bytes, whose starts lie a pitch apart. */
static hipError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                            size_t width, size_t height, int kind, hipStream_t stream) {
  hipError_t error = ready();
  if (error) return error;
  if (!is_stream(stream)) return hipErrorInvalidHandle;
  if (!width || !height) return hipSuccess;
  if (width > to_pitch || width > from_pitch) return hipErrorInvalidPitchValue;
  size_t to_size, from_size;
  if (__builtin_mul_overflow(to_pitch, height - 1, &to_size) ||
      __builtin_mul_overflow(from_pitch, height - 1, &from_size) ||
      __builtin_add_overflow(to_size, width, &to_size) ||
      __builtin_add_overflow(from_size, width, &from_size))
    return hipErrorInvalidValue;
  lock();
  error = may_copy(to, to_size, from, from_size, kind);
  unlock();
  for (size_t row = 0; !error && row < height; row++)
    memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
  return error;
}

static hipError_t copy(void *to, const void *from, size_t size, int kind, hipStream_t stream) {
  return copy_rows(to, size, from, size, size, 1, kind, stream);
}

API hipError_t hipMemcpy(void *to, const void *from, size_t size, int kind) {
  return done(copy(to, from, size, kind, NULL));
}
API hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, int kind,
                              hipStream_t stream) {
  return done(copy(to, from, size, kind, stream));
}
API hipError_t hipMemcpyWithStream(void *to, const void *from, size_t size, int kind,
                                   hipStream_t stream) {
  return done(copy(to, from, size, kind, stream));
}
API hipError_t hipMemcpyHtoD(void *to, const void *from, size_t size) {
  return done(copy(to, from, size, HOST_TO_DEVICE, NULL));
}
API hipError_t hipMemcpyDtoH(void *to, void *from, size_t size) {
  return done(copy(to, from, size, DEVICE_TO_HOST, NULL));
}
API hipError_t hipMemcpyDtoD(void *to, void *from, size_t size) {
  return done(copy(to, from, size, DEVICE_TO_DEVICE, NULL));
}
API hipError_t hipMemcpyHtoDAsync(void *to, const void *from, size_t size, hipStream_t stream) {
  return done(copy(to, from, size, HOST_TO_DEVICE, stream));
}
API hipError_t hipMemcpyDtoHAsync(void *to, void *from, size_t size, hipStream_t stream) {
  return done(copy(to, from, size, DEVICE_TO_HOST, stream));
}
API hipError_t hipMemcpyDtoDAsync(void *to, void *from, size_t size, hipStream_t stream) {
  return done(copy(to, from, size, DEVICE_TO_DEVICE, stream));
}
API hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                             size_t size) {
  if (to_device || from_device) return done(hipErrorInvalidDevice);
  return done(copy(to, from, size, DEVICE_TO_DEVICE, NULL));
}
API hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                  size_t size, hipStream_t stream) {
  if (to_device || from_device) return done(hipErrorInvalidDevice);
  return done(copy(to, from, size, DEVICE_TO_DEVICE, stream));
}
API hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t height, int kind) {
  return done(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, NULL));
}
API hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                size_t width, size_t height, int kind, hipStream_t stream) {
  return done(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream));
}

/* Fills, of `times` elements of 1, 2 or 4 bytes. */
static hipError_t fill(void *to, uint32_t value, size_t width, size_t times, hipStream_t stream) {
  hipError_t error = ready();
  if (error) return error;
  if (!is_stream(stream)) return hipErrorInvalidHandle;
  size_t size;
  if (__builtin_mul_overflow(width, times, &size)) return hipErrorInvalidValue;
  if (!size) return hipSuccess;
  lock();
  error = to && reachable(to, size, true, "destination") ? fault() : hipErrorInvalidValue;
  unlock();
  if (error) return error;
  if (width == 1) memset(to, (int)value, size);
  for (size_t i = 0; width > 1 && i < times; i++) memcpy((char *)to + i * width, &value, width);
  return hipSuccess;
}

API hipError_t hipMemset(void *to, int value, size_t size) {
  return done(fill(to, value, 1, size, NULL));
}
API hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream) {
  return done(fill(to, value, 1, size, stream));
}
API hipError_t hipMemsetD8(void *to, unsigned char value, size_t times) {
  return done(fill(to, value, 1, times, NULL));
}
API hipError_t hipMemsetD8Async(void *to, unsigned char value, size_t times, hipStream_t stream) {
  return done(fill(to, value, 1, times, stream));
}
API hipError_t hipMemsetD16(void *to, unsigned short value, size_t times) {
  return done(fill(to, value, 2, times, NULL));
}
API hipError_t hipMemsetD16Async(void *to, unsigned short value, size_t times, hipStream_t stream) {
  return done(fill(to, value, 2, times, stream));
}
API hipError_t hipMemsetD32(void *to, int value, size_t times) {
  return done(fill(to, (uint32_t)value, 4, times, NULL));
}
API hipError_t hipMemsetD32Async(void *to, int value, size_t times, hipStream_t stream) {
  return done(fill(to, (uint32_t)value, 4, times, stream));
}
API hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                hipStream_t stream) {
  hipError_t error = ready();
  if (error) return done(error);
  if (width > pitch) return done(hipErrorInvalidPitchValue);
  if (!is_stream(stream)) return done(hipErrorInvalidHandle);
  if (!width || !height) return hipSuccess;
  size_t size;
  if (!to || __builtin_mul_overflow(pitch, height - 1, &size) ||
      __builtin_add_overflow(size, width, &size))
    return done(hipErrorInvalidValue);
  lock();
  error = reachable(to, size, true, "destination") ? fault() : hipErrorInvalidValue;
  unlock();
  for (size_t row = 0; !error && row < height; row++)
    memset((char *)to + row * pitch, value, width);
  return done(error);
}
API hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  return hipMemset2DAsync(to, pitch, value, width, height, NULL);
}
