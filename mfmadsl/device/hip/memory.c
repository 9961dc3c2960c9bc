/* The allocations in the range that this process and the emulator share.

   Addresses are those of this process, on the host as on the device. An unallocated page separates
   two allocations, so that an access past the end of one is found. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static Allocation *known;
static size_t count, room;
static uint64_t used[MOST_DEVICES], changes;

const Allocation *allocations(size_t *number, uint64_t *version) {
  *number = count, *version = changes;
  return known;
}
uint64_t virtual_start(void) { return memory_start() + RANGE / 2; }
uint64_t taken(int number) { return used[number]; }

bool take(int number, int64_t bytes) {
  uint64_t left = device.memory_bytes - used[number];
  if (bytes > 0 && (uint64_t)bytes > left) {
    explain("%lld bytes are asked for, %llu of %lld are taken", (long long)bytes,
            (unsigned long long)used[number], (long long)device.memory_bytes);
    return false;
  }
  used[number] += bytes;
  return true;
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
  bool inside = offset < found->size && size <= found->size - offset;
  return inside && !found->absent ? found : NULL;
}

uint64_t whole_pages(uint64_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static bool make_room(size_t more) {
  size_t wanted = room ? room : 64;
  while (wanted < count + more) wanted *= 2;
  Allocation *grown = wanted > room ? realloc(known, wanted * sizeof *known) : known;
  if (!grown) return false;
  known = grown, room = wanted;
  return true;
}

hipError_t allocate(void **pointer, size_t size, uint32_t flags, bool host, hipMemPool_t pool) {
  if (!pointer) return hipErrorInvalidValue;
  *pointer = NULL;
  hipError_t error = ready();
  if (error || !size) return error;
  int number = current_device();
  lock();
  /* The first gap that is large enough, after what the emulator keeps for itself. */
  uint64_t at = memory_start() + device.reserved_bytes;
  size_t place = 0;
  while (place < count && known[place].address - at < whole_pages(size) + PAGE) {
    at = known[place].address + whole_pages(known[place].size) + PAGE;
    place++;
  }
  error = hipErrorOutOfMemory;
  bool fits = size <= RANGE / 2 && at + whole_pages(size) + PAGE <= virtual_start();
  if (fits && make_room(1) && take(number, (int64_t)size)) {
    memmove(known + place + 1, known + place, (count - place) * sizeof *known);
    known[place] = (Allocation){at, size, flags, number, host, .pool = pool};
    count++, changes++;
    if (pool) pool_counts(pool, (int64_t)size);
    *pointer = (void *)at;
    if (host) memory_is_shared();
    note_memory(host ? WRITTEN : ALLOCATED, NULL, host, bytes_at(*pointer, size), (Region){0});
    error = hipSuccess;
  }
  unlock();
  return error;
}

/* Gives the pages back, and what was counted; who still reads them finds zeros. */
static void let_go(const Allocation *each) {
  note_memory(FREED, NULL, 0, bytes_at((void *)each->address, each->size), (Region){0});
  give_back(each->address - memory_start(), whole_pages(each->size));
  forget_wishes(each->address);
  take(each->device, -(int64_t)each->size);
  if (each->pool) pool_counts(each->pool, -(int64_t)each->size);
}

static void leave_out(Allocation *found) {
  memmove(found, found + 1, (known + count - found - 1) * sizeof *known);
  count--;
}

hipError_t release(void *pointer, bool host) {
  if (!pointer) return hipSuccess;
  hipError_t error = ready();
  if (error) return error;
  lock();
  size_t place = up_to((uint64_t)pointer);
  Allocation *found = place ? &known[place - 1] : NULL;
  error = hipErrorInvalidValue;
  if (found && found->address == (uint64_t)pointer && found->host == host && !found->mapped &&
      !found->absent) {
    let_go(found);
    found->absent = found->of_graph;
    if (!found->of_graph) leave_out(found);
    changes++;
    error = hipSuccess;
  }
  unlock();
  return error;
}

/* What begins at an address, which a graph has. */
static Allocation *of_graph(void *pointer) {
  size_t place = up_to((uint64_t)pointer);
  Allocation *found = place ? &known[place - 1] : NULL;
  bool right = found && found->address == (uint64_t)pointer && found->of_graph;
  return right ? found : NULL;
}
void give_to_graph(void *pointer) {
  lock();
  size_t place = up_to((uint64_t)pointer);
  if (place) known[place - 1].of_graph = true;
  unlock();
}
hipError_t come_back(void *pointer) {
  hipError_t error = hipSuccess;
  lock();
  Allocation *found = of_graph(pointer);
  if (!found)
    error = hipErrorInvalidValue; /* the device was reset */
  else if (found->absent && !take(found->device, (int64_t)found->size))
    error = hipErrorOutOfMemory;
  else if (found->absent) {
    found->absent = false, changes++;
    note_memory(ALLOCATED, NULL, 0, bytes_at(pointer, found->size), (Region){0});
  }
  unlock();
  return error;
}
void release_of_graph(void *pointer) {
  lock();
  Allocation *found = of_graph(pointer);
  if (found) {
    if (!found->absent) let_go(found);
    leave_out(found);
    changes++;
  }
  unlock();
}

hipError_t replace_mapped(uint64_t start, uint64_t size, const Allocation *mapped, size_t wanted) {
  size_t first = 0;
  while (first < count && known[first].address < start) first++;
  size_t last = first;
  while (last < count && known[last].address < start + size) last++;
  if (!make_room(wanted)) return hipErrorOutOfMemory;
  note_memory(FREED, NULL, 0, bytes_at((void *)start, size), (Region){0});
  memmove(known + first + wanted, known + last, (count - last) * sizeof *known);
  memcpy(known + first, mapped, wanted * sizeof *known);
  count += wanted - (last - first), changes++;
  return hipSuccess;
}

static void release_all(void) {
  lock();
  note(RESET, NULL, 0);
  give_back(device.reserved_bytes, RANGE - device.reserved_bytes);
  memset(used, 0, sizeof used);
  count = 0, changes++;
  forget_pools();
  forget_virtual();
  for (int i = 0; i < MOST_DEVICES; i++) forget_fault(i);
  unlock();
}

void release_those_of(int number) {
  if (device.count == 1) {
    release_all();
    return;
  }
  lock();
  size_t left = 0;
  for (size_t i = 0; i < count; i++) {
    if (known[i].device == number && !known[i].mapped) {
      if (!known[i].absent) let_go(&known[i]);
    }
    else
      known[left++] = known[i];
  }
  count = left, changes++;
  forget_fault(number);
  unlock();
}

static hipError_t allocate_safely(void **pointer, size_t size, uint32_t flags, bool host) {
  lock();
  hipError_t error = check_safe();
  unlock();
  return error ? error : allocate(pointer, size, flags, host, NULL);
}
static hipError_t release_safely(void *pointer, bool host) {
  lock();
  hipError_t error = check_safe();
  unlock();
  if (error) return error;
  if (pointer) note(HOST_AWAITED_DEVICE, NULL, 0); /* as HIP says of hipFree */
  return release(pointer, host);
}

API hipError_t hipMalloc(void **pointer, size_t size) {
  return done(allocate_safely(pointer, size, 0, false));
}
/* What the host writes to as well. */
static hipError_t allocate_for_both(void **pointer, size_t size, unsigned flags) {
  hipError_t error = allocate_safely(pointer, size, flags, false);
  if (!error && size) {
    memory_is_shared();
    note_memory(WRITTEN, NULL, 1, bytes_at(*pointer, size), (Region){0});
  }
  return error;
}
API hipError_t hipExtMallocWithFlags(void **pointer, size_t size, unsigned flags) {
  return done(allocate_for_both(pointer, size, flags));
}
API hipError_t hipMallocManaged(void **pointer, size_t size, unsigned flags) {
  return done(allocate_for_both(pointer, size, flags));
}
API hipError_t hipFree(void *pointer) { return done(release_safely(pointer, false)); }
API hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags) {
  return done(allocate_safely(pointer, size, flags, true));
}
API hipError_t hipHostAlloc(void **pointer, size_t size, unsigned flags) {
  return done(allocate_safely(pointer, size, flags, true));
}
API hipError_t hipMallocHost(void **pointer, size_t size) {
  return done(allocate_safely(pointer, size, 0, true));
}
API hipError_t hipMemAllocHost(void **pointer, size_t size) {
  return done(allocate_safely(pointer, size, 0, true));
}
API hipError_t hipHostFree(void *pointer) { return done(release_safely(pointer, true)); }
API hipError_t hipFreeHost(void *pointer) { return done(release_safely(pointer, true)); }

API hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  size_t row = (width + 255) / 256 * 256, size;
  if (!pitch || row < width || __builtin_mul_overflow(row, height, &size))
    return done(hipErrorInvalidValue);
  *pitch = row;
  return done(allocate_safely(pointer, size, 0, false));
}

API hipError_t hipMemAllocPitch(void **pointer, size_t *pitch, size_t width, size_t height,
                                unsigned element_bytes) {
  if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
    return done(hipErrorInvalidValue);
  return hipMallocPitch(pointer, pitch, width, height);
}

API hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total) {
  hipError_t error = ready();
  if (error || !free_bytes || !total) return done(error ? error : hipErrorInvalidValue);
  lock();
  *total = device.memory_bytes, *free_bytes = device.memory_bytes - taken(current_device());
  unlock();
  return hipSuccess;
}

hipError_t find(Allocation *found, const void *pointer) {
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
