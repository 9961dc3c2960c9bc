/* What programs wish of where memory lies. All of it lies where host and devices reach it, so that
   a wish changes nothing but what is told of it. */
#include "stream.h"

#include <stdlib.h>

/* hipMemRangeAttribute and hipMemoryAdvise; places are devices, -1 the host, -2 nowhere. */
enum { READ_MOSTLY = 1, PREFERRED, ACCESSED_BY, LAST_PREFETCHED, COHERENCY = 100 };
enum { HOST = -1, NOWHERE = -2, FINE_GRAINED = 0, COARSE_GRAINED = 1 };
enum {
  SET_READ_MOSTLY = 1,
  UNSET_READ_MOSTLY,
  SET_PREFERRED,
  UNSET_PREFERRED,
  SET_ACCESSED,
  UNSET_ACCESSED,
  SET_COARSE = 100,
  UNSET_COARSE
};

/* The last wishes of an allocation. */
typedef struct Wishes {
  uint64_t address;
  bool read_mostly, coarse;
  int preferred, prefetched;
  bool accessed[MOST_DEVICES + 1]; /* the host is the last */
  struct Wishes *next;
} Wishes;
static Wishes *wishes;

static Wishes *wishes_of(uint64_t address) {
  for (Wishes *each = wishes; each; each = each->next)
    if (each->address == address) return each;
  Wishes *made = calloc(1, sizeof *made);
  if (made) {
    made->address = address, made->preferred = made->prefetched = NOWHERE;
    made->next = wishes, wishes = made;
  }
  return made;
}

void forget_wishes(uint64_t address) {
  for (Wishes **place = &wishes; *place; place = &(*place)->next)
    if ((*place)->address == address) {
      Wishes *found = *place;
      *place = found->next;
      free(found);
      return;
    }
}

/* The wishes of what holds some bytes; `lock` is held. */
static hipError_t wished(const void *pointer, size_t size, Wishes **found) {
  const Allocation *there = size ? holding(pointer, size) : NULL;
  if (!there) return hipErrorInvalidValue;
  *found = wishes_of(there->address);
  return *found ? hipSuccess : hipErrorOutOfMemory;
}

static hipError_t check_place(int number) {
  return number == HOST ? ready() : device_exists(number);
}

static hipError_t prefetch(const void *pointer, size_t size, int number, hipStream_t stream) {
  hipError_t error = check_place(number);
  if (!error) error = usable(stream);
  if (error) return error;
  Wishes *found;
  lock();
  error = wished(pointer, size, &found);
  if (!error) found->prefetched = number;
  unlock();
  return error;
}
API hipError_t hipMemPrefetchAsync(const void *pointer, size_t size, int number,
                                   hipStream_t stream) {
  return done(prefetch(pointer, size, number, stream));
}

static hipError_t advise(const void *pointer, size_t size, int advice, int number) {
  bool placed = advice >= SET_PREFERRED && advice <= UNSET_ACCESSED && advice != UNSET_PREFERRED;
  hipError_t error = placed ? check_place(number) : ready();
  if (error) return error;
  Wishes *found;
  lock();
  error = wished(pointer, size, &found);
  if (!error) switch (advice) {
    case SET_READ_MOSTLY:
    case UNSET_READ_MOSTLY: found->read_mostly = advice == SET_READ_MOSTLY; break;
    case SET_PREFERRED: found->preferred = number; break;
    case UNSET_PREFERRED: found->preferred = NOWHERE; break;
    case SET_ACCESSED:
    case UNSET_ACCESSED:
      found->accessed[number == HOST ? MOST_DEVICES : number] = advice == SET_ACCESSED;
      break;
    case SET_COARSE:
    case UNSET_COARSE: found->coarse = advice == SET_COARSE; break;
    default: error = hipErrorInvalidValue;
    }
  unlock();
  return error;
}
API hipError_t hipMemAdvise(const void *pointer, size_t size, int advice, int number) {
  return done(advise(pointer, size, advice, number));
}

/* hipMemLocation */
typedef struct {
  int kind, number;
} Location;
static hipError_t place_of(Location location, int *number) {
  enum { DEVICE = 1, LAST_OF_HOST = 4 };
  if (location.kind < DEVICE || location.kind > LAST_OF_HOST) return hipErrorInvalidValue;
  *number = location.kind == DEVICE ? location.number : HOST;
  return hipSuccess;
}
API hipError_t hipMemPrefetchAsync_v2(const void *pointer, size_t size, Location location,
                                      unsigned flags, hipStream_t stream) {
  int number;
  hipError_t error = flags ? hipErrorInvalidValue : place_of(location, &number);
  return done(error ? error : prefetch(pointer, size, number, stream));
}
API hipError_t hipMemAdvise_v2(const void *pointer, size_t size, int advice, Location location) {
  int number;
  hipError_t error = place_of(location, &number);
  return done(error ? error : advise(pointer, size, advice, number));
}

static hipError_t told(int *values, size_t size, int attribute, const Wishes *of) {
  if (!values || size < sizeof *values || (attribute != ACCESSED_BY && size != sizeof *values) ||
      size % sizeof *values)
    return hipErrorInvalidValue;
  switch (attribute) {
  case READ_MOSTLY: *values = of->read_mostly; return hipSuccess;
  case PREFERRED: *values = of->preferred; return hipSuccess;
  case LAST_PREFETCHED: *values = of->prefetched; return hipSuccess;
  case COHERENCY: *values = of->coarse ? COARSE_GRAINED : FINE_GRAINED; return hipSuccess;
  case ACCESSED_BY: {
    size_t count = 0;
    for (int i = 0; i <= MOST_DEVICES && count < size / sizeof *values; i++)
      if (of->accessed[i]) values[count++] = i < MOST_DEVICES ? i : HOST;
    while (count < size / sizeof *values) values[count++] = NOWHERE;
    return hipSuccess;
  }
  }
  return hipErrorInvalidValue;
}
API hipError_t hipMemRangeGetAttribute(void *value, size_t value_bytes, int attribute,
                                       const void *pointer, size_t size) {
  Wishes *found;
  hipError_t error = ready();
  if (error) return done(error);
  lock();
  error = wished(pointer, size, &found);
  if (!error) error = told(value, value_bytes, attribute, found);
  unlock();
  return done(error);
}
API hipError_t hipMemRangeGetAttributes(void **values, size_t *sizes, int *attributes, size_t count,
                                        const void *pointer, size_t size) {
  if (!values || !sizes || !attributes || !count) return done(hipErrorInvalidValue);
  for (size_t i = 0; i < count; i++) {
    hipError_t error = hipMemRangeGetAttribute(values[i], sizes[i], attributes[i], pointer, size);
    if (error) return error;
  }
  return hipSuccess;
}
API hipError_t hipStreamAttachMemAsync(hipStream_t stream, void *pointer, size_t size,
                                       unsigned flags) {
  Allocation found;
  if (flags != 1 && flags != 2 && flags != 4) return done(hipErrorInvalidValue);
  hipError_t error = usable(stream);
  if (!error) error = find(&found, pointer);
  return done(error || !size || size == found.size ? error : hipErrorInvalidValue);
}
