/* Virtual memory: addresses that are reserved, memory without addresses, and which lies where.

   What of a reservation is mapped, and may be accessed, are allocations like others; neighbours are
   one. Memory has one place at a time: the content goes with it. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

enum { GRANULE = 2 << 20 }; /* bytes */
enum { ON_DEVICE = 1, NO_ACCESS = 0, READ_ONLY = 1, READ_WRITE = 3, PINNED = 1 };

/* hipMemAllocationProp, hipMemLocation, hipMemAccessDesc */
typedef struct {
  int kind, number;
} Location;
typedef struct {
  int kind, handles;
  Location location;
  void *metadata;
  unsigned char flags[4], reserved[4];
} Props;
typedef struct {
  Location location;
  int flags;
} Access;

typedef struct Memory {
  uint64_t size;
  Props props;
  unsigned users;   /* the program's own and that of its mapping */
  char *kept;       /* its content, while it has no place */
  uint64_t address; /* its place, or 0 */
  struct Memory *next;
} *Handle;

typedef struct Mapping {
  uint64_t address, size;
  Handle memory;
  int flags[MOST_DEVICES];
  struct Mapping *next; /* at a higher address */
} Mapping;

typedef struct Reservation {
  uint64_t address, size;
  Mapping *mappings;
  struct Reservation *next; /* at a higher address */
} Reservation;

static Reservation *reservations;
static Handle handles;

static bool is_handle(Handle memory) {
  for (Handle each = handles; each; each = each->next)
    if (each == memory) return true;
  return false;
}

static Reservation *reserved(uint64_t address, uint64_t size) {
  for (Reservation *each = reservations; each; each = each->next)
    if (address >= each->address && address - each->address < each->size &&
        size <= each->size - (address - each->address))
      return each;
  return NULL;
}

static bool is_open(const Mapping *mapping) {
  for (int i = 0; i < MOST_DEVICES; i++)
    if (mapping->flags[i]) return true;
  return false;
}

static bool alike(const Mapping *one, const Mapping *other) {
  return one->address + one->size == other->address &&
         one->memory->props.location.number == other->memory->props.location.number &&
         !memcmp(one->flags, other->flags, sizeof one->flags);
}

/* Let the allocations be what is mapped and open now. */
static hipError_t publish(const Reservation *reservation) {
  size_t count = 0;
  for (Mapping *each = reservation->mappings; each; each = each->next) count++;
  Allocation *found = calloc(count + 1, sizeof *found);
  if (!found) return hipErrorOutOfMemory;
  count = 0;
  const Mapping *before = NULL;
  for (Mapping *each = reservation->mappings; each; each = each->next) {
    if (!is_open(each)) continue;
    if (before && alike(before, each))
      found[count - 1].size += each->size;
    else
      found[count++] = (Allocation){.address = each->address,
                                    .size = each->size,
                                    .device = each->memory->props.location.number,
                                    .mapped = true};
    before = each;
  }
  hipError_t error = replace_mapped(reservation->address, reservation->size, found, count);
  free(found);
  return error;
}

bool mapped_for(uint64_t address, int number) {
  const Reservation *reservation = reserved(address, 1);
  for (Mapping *each = reservation ? reservation->mappings : NULL; each; each = each->next)
    if (address - each->address < each->size) return each->flags[number] != NO_ACCESS;
  return false;
}

static void drop(Handle memory) {
  if (--memory->users) return;
  for (Handle *place = &handles; *place; place = &(*place)->next)
    if (*place == memory) {
      *place = memory->next;
      break;
    }
  take(memory->props.location.number, -(int64_t)memory->size);
  free(memory->kept);
  free(memory);
}

void forget_virtual(void) {
  for (Reservation *each = reservations, *next; each; each = next) {
    next = each->next;
    for (Mapping *one = each->mappings, *after; one; one = after) after = one->next, free(one);
    free(each);
  }
  reservations = NULL;
  for (Handle each = handles, next; each; each = next) {
    next = each->next;
    free(each->kept);
    free(each);
  }
  handles = NULL;
}

static bool whole(uint64_t size) { return size && size % GRANULE == 0; }

API hipError_t hipMemAddressReserve(void **pointer, size_t size, size_t alignment, void *wanted,
                                    unsigned long long flags) {
  (void)wanted; /* a wish */
  bool aligned = !(alignment & (alignment - 1)) && alignment <= RANGE / 4;
  if (!pointer || !whole(size) || !aligned || flags) return done(hipErrorInvalidValue);
  *pointer = NULL;
  hipError_t error = ready();
  if (error) return done(error);
  Reservation *made = calloc(1, sizeof *made);
  if (!made) return done(hipErrorOutOfMemory);
  if (alignment < GRANULE) alignment = GRANULE;
  lock();
  Reservation **place = &reservations;
  uint64_t end = memory_start() + RANGE;
  uint64_t at = (virtual_start() + alignment - 1) / alignment * alignment;
  /* A granule that nobody has separates two. */
  for (; *place && ((*place)->address < at || (*place)->address - at < size + GRANULE);
       place = &(*place)->next)
    at = ((*place)->address + (*place)->size + GRANULE + alignment - 1) / alignment * alignment;
  if (at > end || size > end - at) {
    free(made);
    error = hipErrorOutOfMemory;
  } else {
    *made = (Reservation){at, size, NULL, *place};
    *place = made, *pointer = (void *)at;
  }
  unlock();
  return done(error);
}
API hipError_t hipMemAddressFree(void *pointer, size_t size) {
  hipError_t error = hipErrorInvalidValue;
  lock();
  for (Reservation **place = &reservations; *place; place = &(*place)->next)
    if ((*place)->address == (uint64_t)pointer) {
      Reservation *found = *place;
      if (found->size == size && !found->mappings) {
        *place = found->next;
        free(found);
        error = hipSuccess;
      }
      break;
    }
  unlock();
  return done(error);
}

static hipError_t check_props(const Props *props) {
  if (!props || props->kind != PINNED || props->location.kind != ON_DEVICE)
    return hipErrorInvalidValue;
  hipError_t error = device_exists(props->location.number);
  return error == hipErrorInvalidDevice ? hipErrorInvalidValue : error;
}
API hipError_t hipMemGetAllocationGranularity(size_t *bytes, const Props *props, int option) {
  hipError_t error = bytes && (option == 0 || option == 1) ? check_props(props)
                                                           : hipErrorInvalidValue;
  if (!error) *bytes = GRANULE;
  return done(error);
}
API hipError_t hipMemCreate(Handle *memory, size_t size, const Props *props,
                            unsigned long long flags) {
  if (!memory || !whole(size) || flags) return done(hipErrorInvalidValue);
  hipError_t error = check_props(props);
  if (!error && props->handles) {
    explain("hipMemCreate: memory that other processes share is not emulated");
    error = hipErrorNotSupported;
  }
  Handle made = error ? NULL : calloc(1, sizeof *made);
  if (!error && !made) error = hipErrorOutOfMemory;
  if (error) return done(error);
  lock();
  if (take(props->location.number, (int64_t)size)) {
    *made = (struct Memory){.size = size, .props = *props, .users = 1, .next = handles};
    *memory = handles = made;
  } else {
    free(made);
    error = hipErrorOutOfMemory;
  }
  unlock();
  return done(error);
}
API hipError_t hipMemRelease(Handle memory) {
  lock();
  hipError_t error = is_handle(memory) ? hipSuccess : hipErrorInvalidValue;
  if (!error) drop(memory);
  unlock();
  return done(error);
}
API hipError_t hipMemGetAllocationPropertiesFromHandle(Props *props, Handle memory) {
  lock();
  hipError_t error = props && is_handle(memory) ? hipSuccess : hipErrorInvalidValue;
  if (!error) *props = memory->props;
  unlock();
  return done(error);
}
API hipError_t hipMemRetainAllocationHandle(Handle *memory, void *pointer) {
  hipError_t error = hipErrorInvalidValue;
  lock();
  const Reservation *found = memory ? reserved((uint64_t)pointer, 1) : NULL;
  for (Mapping *each = found ? found->mappings : NULL; each; each = each->next)
    if ((uint64_t)pointer - each->address < each->size) {
      *memory = each->memory, each->memory->users++;
      error = hipSuccess;
    }
  unlock();
  return done(error);
}

static hipError_t map(uint64_t address, uint64_t size, Handle memory) {
  Reservation *found = reserved(address, size);
  if (!found || !is_handle(memory) || size != memory->size) return hipErrorInvalidValue;
  if (memory->address) {
    explain("hipMemMap: memory in two places at once is not emulated");
    return hipErrorNotSupported;
  }
  Mapping **place = &found->mappings;
  while (*place && (*place)->address + (*place)->size <= address) place = &(*place)->next;
  if (*place && (*place)->address < address + size) return hipErrorInvalidValue;
  Mapping *made = calloc(1, sizeof *made);
  if (!made) return hipErrorOutOfMemory;
  *made = (Mapping){.address = address, .size = size, .memory = memory, .next = *place};
  *place = made, memory->address = address, memory->users++;
  if (memory->kept) memcpy((void *)address, memory->kept, size);
  free(memory->kept);
  memory->kept = NULL;
  return hipSuccess;
}
API hipError_t hipMemMap(void *pointer, size_t size, size_t offset, Handle memory,
                         unsigned long long flags) {
  if (offset || flags || !whole(size) || (uint64_t)pointer % GRANULE)
    return done(hipErrorInvalidValue);
  lock();
  hipError_t error = map((uint64_t)pointer, size, memory);
  unlock();
  return done(error);
}

/* Whether mappings fill a range, from the first of them to the last. */
static bool filled(const Reservation *found, uint64_t start, uint64_t size) {
  uint64_t at = start;
  for (const Mapping *each = found->mappings; each && at < start + size; each = each->next) {
    if (each->address + each->size <= start) continue;
    if (each->address != at) return false;
    at += each->size;
  }
  return at == start + size;
}

API hipError_t hipMemUnmap(void *pointer, size_t size) {
  uint64_t start = (uint64_t)pointer;
  lock();
  Reservation *found = reserved(start, size);
  hipError_t error = found && size && filled(found, start, size) ? hipSuccess
                                                                 : hipErrorInvalidValue;
  for (Mapping **place = found ? &found->mappings : NULL; !error && *place;) {
    Mapping *each = *place;
    if (each->address - start >= size) {
      place = &each->next;
      continue;
    }
    /* Whoever still has it may map it again. */
    if (each->memory->users > 1 && (each->memory->kept = malloc(each->size)))
      memcpy(each->memory->kept, (void *)each->address, each->size);
    each->memory->address = 0;
    drop(each->memory);
    give_back(each->address - memory_start(), each->size);
    *place = each->next;
    free(each);
  }
  if (!error) error = publish(found);
  unlock();
  return done(error);
}

API hipError_t hipMemSetAccess(void *pointer, size_t size, const Access *wanted, size_t count) {
  uint64_t start = (uint64_t)pointer;
  if (!wanted || !count) return done(hipErrorInvalidValue);
  lock();
  Reservation *found = reserved(start, size);
  hipError_t error = found && size && filled(found, start, size) ? hipSuccess
                                                                 : hipErrorInvalidValue;
  for (size_t i = 0; i < count && !error; i++) {
    bool known = wanted[i].flags == NO_ACCESS || wanted[i].flags == READ_ONLY ||
                 wanted[i].flags == READ_WRITE;
    if (!known || wanted[i].location.kind != ON_DEVICE || device_exists(wanted[i].location.number))
      error = hipErrorInvalidValue;
    else if (wanted[i].flags == READ_ONLY) {
      explain("hipMemSetAccess: memory that may only be read is not emulated");
      error = hipErrorNotSupported;
    }
  }
  for (Mapping *each = error ? NULL : found->mappings; each; each = each->next)
    for (size_t i = 0; each->address - start < size && i < count; i++)
      each->flags[wanted[i].location.number] = wanted[i].flags;
  if (!error) error = publish(found);
  unlock();
  return done(error);
}
API hipError_t hipMemGetAccess(unsigned long long *flags, const Location *location,
                               void *pointer) {
  bool asked = flags && location && location->kind == ON_DEVICE && !device_exists(location->number);
  lock();
  const Reservation *found = asked ? reserved((uint64_t)pointer, 1) : NULL;
  hipError_t error = found ? hipSuccess : hipErrorInvalidValue;
  if (!error) *flags = mapped_for((uint64_t)pointer, location->number) ? READ_WRITE : NO_ACCESS;
  unlock();
  return done(error);
}
