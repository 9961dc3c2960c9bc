/* Memory pools, and memory that streams allocate. Freed memory goes back at once, so that a pool
   reserves what is used. */
#include "stream.h"

#include <stdlib.h>

struct Pool {
  int device;
  bool own; /* of a device: nobody else destroys it */
  uint64_t reuse[3], threshold, used, high;
  size_t most;
  struct Pool *next;
};

static struct Pool defaults[MOST_DEVICES];
static hipMemPool_t current[MOST_DEVICES], made_pools;

static hipMemPool_t default_pool(int number) {
  struct Pool *pool = &defaults[number];
  if (!pool->own) *pool = (struct Pool){.device = number, .own = true, .reuse = {1, 1, 1}};
  return pool;
}

static bool is_pool(hipMemPool_t pool) {
  if (pool >= defaults && pool < defaults + MOST_DEVICES) return pool->own;
  for (hipMemPool_t each = made_pools; each; each = each->next)
    if (each == pool) return true;
  return false;
}

void pool_counts(hipMemPool_t pool, int64_t bytes) {
  pool->used += bytes;
  if (pool->used > pool->high) pool->high = pool->used;
}

void forget_pools(void) {
  for (int i = 0; i < MOST_DEVICES; i++) current[i] = NULL, defaults[i].used = 0;
  for (hipMemPool_t each = made_pools; each; each = each->next) each->used = 0;
}

static hipMemPool_t pool_of(int number) {
  return current[number] ? current[number] : default_pool(number);
}

API hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int number) {
  hipError_t error = pool ? device_exists(number) : hipErrorInvalidValue;
  lock();
  if (!error) *pool = default_pool(number);
  unlock();
  return done(error);
}
API hipError_t hipDeviceGetMemPool(hipMemPool_t *pool, int number) {
  hipError_t error = pool ? device_exists(number) : hipErrorInvalidValue;
  lock();
  if (!error) *pool = pool_of(number);
  unlock();
  return done(error);
}
API hipError_t hipDeviceSetMemPool(int number, hipMemPool_t pool) {
  hipError_t error = device_exists(number);
  lock();
  if (!error && !(is_pool(pool) && pool->device == number)) error = hipErrorInvalidValue;
  if (!error) current[number] = pool;
  unlock();
  return done(error);
}

/* hipMemPoolProps: of the kinds of memory, places and handles, what an emulated device has. */
typedef struct {
  int kind, handles, location_kind, location;
  void *security;
  size_t most;
  unsigned char reserved[56];
} Props;
enum { PINNED = 1, ON_DEVICE = 1 };

API hipError_t hipMemPoolCreate(hipMemPool_t *pool, const Props *wanted) {
  if (!pool || !wanted || wanted->kind != PINNED || wanted->location_kind != ON_DEVICE)
    return done(hipErrorInvalidValue);
  hipError_t error = device_exists(wanted->location);
  if (error) return done(error == hipErrorInvalidDevice ? hipErrorInvalidValue : error);
  if (wanted->handles) {
    explain("hipMemPoolCreate: pools that other processes share are not emulated");
    return done(hipErrorNotSupported);
  }
  hipMemPool_t made = calloc(1, sizeof *made);
  if (!made) return done(hipErrorOutOfMemory);
  lock();
  *made = (struct Pool){.device = wanted->location, .reuse = {1, 1, 1}, .most = wanted->most,
                        .next = made_pools};
  *pool = made_pools = made;
  unlock();
  return hipSuccess;
}
API hipError_t hipMemPoolDestroy(hipMemPool_t pool) {
  hipError_t error = hipErrorInvalidValue;
  lock();
  for (hipMemPool_t *place = &made_pools; *place; place = &(*place)->next)
    if (*place == pool) {
      size_t count;
      uint64_t version;
      const Allocation *known = allocations(&count, &version);
      /* What is still allocated stays so. */
      for (size_t i = 0; i < count; i++)
        if (known[i].pool == pool) ((Allocation *)known)[i].pool = NULL;
      for (int i = 0; i < MOST_DEVICES; i++)
        if (current[i] == pool) current[i] = NULL;
      *place = pool->next;
      free(pool);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}

/* hipMemPoolAttr */
enum { FIRST_REUSE = 1, LAST_REUSE = 3, THRESHOLD, RESERVED, MOST_RESERVED, USED, MOST_USED };

API hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, int attribute, void *value) {
  hipError_t error = hipSuccess;
  lock();
  if (!value || !is_pool(pool))
    error = hipErrorInvalidValue;
  else if (attribute >= FIRST_REUSE && attribute <= LAST_REUSE)
    *(int *)value = (int)pool->reuse[attribute - FIRST_REUSE];
  else
    switch (attribute) {
    case THRESHOLD: *(uint64_t *)value = pool->threshold; break;
    case RESERVED:
    case USED: *(uint64_t *)value = pool->used; break;
    case MOST_RESERVED:
    case MOST_USED: *(uint64_t *)value = pool->high; break;
    default: error = hipErrorInvalidValue;
    }
  unlock();
  return done(error);
}
API hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, int attribute, void *value) {
  hipError_t error = hipSuccess;
  lock();
  if (!value || !is_pool(pool))
    error = hipErrorInvalidValue;
  else if (attribute >= FIRST_REUSE && attribute <= LAST_REUSE)
    pool->reuse[attribute - FIRST_REUSE] = *(int *)value != 0;
  else if (attribute == THRESHOLD)
    pool->threshold = *(uint64_t *)value;
  else if ((attribute == MOST_RESERVED || attribute == MOST_USED) && !*(uint64_t *)value)
    pool->high = pool->used;
  else
    error = hipErrorInvalidValue;
  unlock();
  return done(error);
}
API hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t bytes) {
  (void)bytes; /* nothing is kept that is not used */
  lock();
  hipError_t error = is_pool(pool) ? hipSuccess : hipErrorInvalidValue;
  unlock();
  return done(error);
}

/* hipMemLocation and hipMemAccessDesc. A pool's own device may always read and write. */
typedef struct {
  int kind, number;
} Location;
typedef struct {
  Location location;
  int flags;
} Access;
enum { NO_ACCESS = 0, READ_WRITE = 3 };

API hipError_t hipMemPoolSetAccess(hipMemPool_t pool, const Access *wanted, size_t count) {
  hipError_t error = wanted || !count ? hipSuccess : hipErrorInvalidValue;
  lock();
  if (!is_pool(pool)) error = hipErrorInvalidValue;
  for (size_t i = 0; i < count && !error; i++) {
    if (wanted[i].location.kind != ON_DEVICE || device_exists(wanted[i].location.number))
      error = hipErrorInvalidValue;
    else if (wanted[i].location.number == pool->device && wanted[i].flags != READ_WRITE)
      error = hipErrorInvalidValue;
    else if (wanted[i].location.number != pool->device && wanted[i].flags) {
      explain("hipMemPoolSetAccess: let other devices in by hipDeviceEnablePeerAccess");
      error = hipErrorNotSupported;
    }
  }
  unlock();
  return done(error);
}
API hipError_t hipMemPoolGetAccess(int *flags, hipMemPool_t pool, const Location *location) {
  lock();
  hipError_t error = flags && location && is_pool(pool) && location->kind == ON_DEVICE
                         ? device_exists(location->number)
                         : hipErrorInvalidValue;
  if (!error) *flags = reaches(location->number, pool->device) ? READ_WRITE : NO_ACCESS;
  unlock();
  return done(error);
}

/* Memory that a stream allocates: of its device's pool. Where the stream captures, the graph has
   it. */
static hipError_t allocate_on(void **pointer, size_t size, hipMemPool_t pool, hipStream_t stream) {
  hipError_t error = pointer ? usable(stream) : hipErrorInvalidValue;
  if (error) return error;
  lock();
  Work work = {NOTHING};
  if (size && captures(stream)) {
    if (!(error = block_work(size, &work)) && !(error = capture_work(stream, &work)))
      *pointer = work.block->address;
    free_work(&work);
  } else {
    if (!pool) pool = pool_of(device_of(stream));
    if (!is_pool(pool))
      error = hipErrorInvalidValue;
    else if (pool->most && size > pool->most - pool->used)
      error = hipErrorOutOfMemory;
    else
      error = allocate(pointer, size, 0, false, pool);
    if (!error && size)
      note_memory(ALLOCATED_ON, stream, 0, bytes_at(*pointer, size), (Region){0});
  }
  unlock();
  return error;
}
API hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream) {
  return done(allocate_on(pointer, size, NULL, stream));
}
API hipError_t hipMallocFromPoolAsync(void **pointer, size_t size, hipMemPool_t pool,
                                      hipStream_t stream) {
  return done(pool ? allocate_on(pointer, size, pool, stream) : hipErrorInvalidValue);
}
API hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
  hipError_t error = usable(stream);
  if (error) return done(error);
  lock();
  Work work = {FREE, .freed = pointer};
  const Allocation *found = captures(stream) ? NULL : holding(pointer, 1);
  if (found)
    note_memory(FREED_ON, stream, 0, bytes_at(pointer, found->size), (Region){0});
  error = captures(stream) ? capture_work(stream, &work) : release(pointer, false);
  unlock();
  return done(error);
}
