/* What is known of a kernel, and how many of its workgroups a compute unit holds at once. */
#include "module.h"

#include <string.h>

/* hipFunction_attribute */
enum {
  MAX_THREADS,
  SHARED,
  CONSTANT,
  LOCAL,
  REGISTERS,
  PTX_VERSION,
  BINARY_VERSION,
  CACHE_MODE,
  MAX_DYNAMIC,
  CARVEOUT
};

static int version(void) { return (int)(device.major * 10 + device.minor); }

API hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t function) {
  Description is;
  hipError_t error = value ? describe(function, &is) : hipErrorInvalidValue;
  if (error) return done(error);
  switch (attribute) {
  case MAX_THREADS: *value = (int)is.max_threads; break;
  case SHARED: *value = (int)is.lds_bytes; break;
  case CONSTANT: *value = 0; break;
  case LOCAL: *value = (int)is.scratch_bytes; break;
  case REGISTERS: *value = (int)is.registers; break;
  case PTX_VERSION:
  case BINARY_VERSION: *value = version(); break;
  case CACHE_MODE:
  case CARVEOUT: *value = 0; break;
  case MAX_DYNAMIC: *value = (int)(device.lds_bytes - is.lds_bytes); break;
  default: return done(hipErrorInvalidValue);
  }
  return hipSuccess;
}

/* hipFuncAttributes */
typedef struct {
  int binary_version, cache_mode;
  size_t constant_bytes, local_bytes;
  int most_dynamic, most_threads, registers, carveout, ptx_version;
  size_t shared_bytes;
} Attributes;
API hipError_t hipFuncGetAttributes(Attributes *told, const void *named) {
  hipFunction_t function;
  Description is;
  hipError_t error = told ? any_function(&function, named) : hipErrorInvalidValue;
  if (!error) error = describe(function, &is);
  if (error) return done(error);
  *told = (Attributes){.binary_version = version(),
                       .local_bytes = is.scratch_bytes,
                       .most_dynamic = (int)(device.lds_bytes - is.lds_bytes),
                       .most_threads = (int)is.max_threads,
                       .registers = (int)is.registers,
                       .ptx_version = version(),
                       .shared_bytes = is.lds_bytes};
  return hipSuccess;
}

/* All of the LDS may be asked for without saying so before. */
API hipError_t hipFuncSetAttribute(const void *named, int attribute, int value) {
  hipFunction_t function;
  Description is;
  hipError_t error = any_function(&function, named);
  if (!error) error = describe(function, &is);
  if (error) return done(error);
  bool fits = value >= 0 && (uint32_t)value <= device.lds_bytes - is.lds_bytes;
  bool known = (attribute == MAX_DYNAMIC && fits) ||
               (attribute == CARVEOUT && value >= -1 && value <= 100);
  return done(known ? hipSuccess : hipErrorInvalidValue);
}
API hipError_t hipFuncSetCacheConfig(const void *named, int config) {
  hipFunction_t function;
  return done(config < 0 || config > 3 ? hipErrorInvalidValue : any_function(&function, named));
}
API hipError_t hipFuncSetSharedMemConfig(const void *named, int config) {
  hipFunction_t function;
  return done(config < 0 || config > 2 ? hipErrorInvalidValue : any_function(&function, named));
}

static char *name_of(hipFunction_t function) {
  lock();
  char *name = is_function(function) ? function->name : NULL;
  unlock();
  return name;
}
API const char *hipKernelNameRef(hipFunction_t function) { return name_of(function); }
API const char *hipKernelNameRefByPtr(const void *named, hipStream_t stream) {
  (void)stream;
  hipFunction_t function;
  return any_function(&function, named) ? NULL : name_of(function);
}

/* How many workgroups of so many threads a compute unit holds; 0 where they are too large. */
static hipError_t resident(int *found, hipFunction_t function, int threads, size_t lds_bytes) {
  Description is;
  hipError_t error = found && threads > 0 ? describe(function, &is) : hipErrorInvalidValue;
  if (error) return error;
  *found = 0;
  if ((uint32_t)threads > is.max_threads || lds_bytes > (size_t)device.lds_bytes - is.lds_bytes)
    return hipSuccess;
  uint32_t asked[] = {is.number, (uint32_t)threads, (uint32_t)lds_bytes}, answer = 0;
  size_t got = 0;
  lock();
  error = ask(RESIDENT, asked, sizeof asked, &answer, sizeof answer, &got);
  unlock();
  if (!error) *found = (int)answer;
  return error;
}
API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *count,
                                                                  hipFunction_t function,
                                                                  int threads, size_t lds_bytes) {
  return done(resident(count, function, threads, lds_bytes));
}
API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *count, hipFunction_t function, int threads, size_t lds_bytes, unsigned flags) {
  return done(flags > 1 ? hipErrorInvalidValue : resident(count, function, threads, lds_bytes));
}
API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *named,
                                                            int threads, size_t lds_bytes) {
  hipFunction_t function;
  hipError_t error = any_function(&function, named);
  return done(error ? error : resident(count, function, threads, lds_bytes));
}
API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *named,
                                                                     int threads, size_t lds_bytes,
                                                                     unsigned flags) {
  if (flags > 1) return done(hipErrorInvalidValue);
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(count, named, threads, lds_bytes);
}

/* The block with which most threads are resident, the largest of those, and a grid of as many as
 * the device holds. */
static hipError_t best_block(int *grid, int *block, hipFunction_t function, size_t lds_bytes,
                             int most) {
  Description is;
  hipError_t error = grid && block && most >= 0 ? describe(function, &is) : hipErrorInvalidValue;
  if (error) return error;
  int wave = (int)device.wave_size, best = 0, limit = (int)is.max_threads;
  if (most && most < limit) limit = most;
  *grid = *block = 0;
  for (int threads = limit / wave * wave; threads > 0 && !error; threads -= wave) {
    int count;
    error = resident(&count, function, threads, lds_bytes);
    if (!error && count * threads > best)
      best = count * threads, *block = threads, *grid = count * (int)device.compute_units;
  }
  return error;
}
API hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block,
                                                       hipFunction_t function, size_t lds_bytes,
                                                       int most) {
  return done(best_block(grid, block, function, lds_bytes, most));
}
API hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block,
                                                                hipFunction_t function,
                                                                size_t lds_bytes, int most,
                                                                unsigned flags) {
  return done(flags > 1 ? hipErrorInvalidValue
                        : best_block(grid, block, function, lds_bytes, most));
}
API hipError_t hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *named,
                                                 size_t lds_bytes, int most) {
  hipFunction_t function;
  hipError_t error = any_function(&function, named);
  return done(error ? error : best_block(grid, block, function, lds_bytes, most));
}
API hipError_t hipOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *named, int count,
                                                        int threads) {
  hipFunction_t function;
  Description is;
  hipError_t error = bytes && count > 0 ? any_function(&function, named) : hipErrorInvalidValue;
  if (!error) error = describe(function, &is);
  int found = 0;
  if (!error) error = resident(&found, function, threads, 0);
  if (!error && found < count) error = hipErrorInvalidValue;
  if (error) return done(error);
  /* The most with which as many still fit, by halves. */
  size_t low = 0, high = device.lds_bytes - is.lds_bytes;
  while (low < high && !error) {
    size_t middle = (low + high + 1) / 2;
    error = resident(&found, function, threads, middle);
    if (found >= count)
      low = middle;
    else
      high = middle - 1;
  }
  *bytes = low;
  return done(error);
}
