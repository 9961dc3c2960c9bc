/* Launches: the kernel argument segment, and the request to the emulator. */
#include "module.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

/* The kernel argument segment, from pointers to the values or from the caller's own buffer. */
static hipError_t gather(const Description *is, char *segment, void **values, void **extra) {
  enum { END = 3, BUFFER = 1, BUFFER_SIZE = 2 };
  memset(segment, 0, is->kernarg_bytes);
  if (values && extra) return hipErrorInvalidValue;
  if (extra) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; (uintptr_t)*extra != END; extra += 2) {
      if ((uintptr_t)*extra == BUFFER)
        buffer = extra[1];
      else if ((uintptr_t)*extra == BUFFER_SIZE)
        size = *(size_t *)extra[1];
      else
        return hipErrorInvalidValue;
    }
    size_t needed = 0;
    for (uint32_t i = 0; i < is->arguments; i++)
      if (is->argument[i].offset + is->argument[i].size > needed)
        needed = is->argument[i].offset + is->argument[i].size;
    if (size < needed || (needed && !buffer)) {
      explain("a launch with %zu bytes of arguments: the kernel takes %zu", size, needed);
      return hipErrorInvalidValue;
    }
    if (needed) memcpy(segment, buffer, needed);
    return hipSuccess;
  }
  if (is->arguments && !values) return hipErrorInvalidValue;
  for (uint32_t i = 0; i < is->arguments; i++) {
    if (!values[i]) return hipErrorInvalidValue;
    memcpy(segment + is->argument[i].offset, values[i], is->argument[i].size);
  }
  return hipSuccess;
}

/* As the emulator gets it; the list of allocations only where it is not the one that it has. */
typedef struct {
  uint32_t function, grid[3], block[3], lds_bytes;
  uint64_t version, stream;
  uint32_t kernarg_bytes, allocations, device, room;
} Start;

/* Whether kernels of a device may reach an allocation. */
static bool visible(const Allocation *each, int number) {
  if (each->absent) return false;
  if (each->mapped) return mapped_for(each->address, number);
  return each->host || reaches(number, each->device);
}

static hipError_t run(const KernelCall *call, hipStream_t stream) {
  static uint64_t sent = UINT64_MAX, last_version, last_peers, version;
  static int last_device = -1;
  size_t count, shown = 0;
  uint64_t changes, nanoseconds = 0;
  int number = device_of(stream);
  const Allocation *known = allocations(&count, &changes);
  if (changes != last_version || peer_changes() != last_peers || number != last_device)
    last_version = changes, last_peers = peer_changes(), last_device = number, version++;
  if (sent == version) count = 0;
  const Description *is = &call->function->is;
  Start head = {is->number,
                {call->grid.x, call->grid.y, call->grid.z},
                {call->block.x, call->block.y, call->block.z},
                call->lds_bytes,
                version,
                (uint64_t)stream,
                is->kernarg_bytes,
                0,
                (uint32_t)number,
                0};
  size_t size = sizeof head + is->kernarg_bytes, got = 0;
  char *message = malloc(size + count * 2 * sizeof(uint64_t));
  if (!message) return hipErrorOutOfMemory;
  memcpy(message + sizeof head, call->segment, is->kernarg_bytes);
  for (size_t i = 0; i < count; i++)
    if (visible(&known[i], number)) {
      memcpy(message + size, &known[i], 2 * sizeof(uint64_t)); /* address and size */
      size += 2 * sizeof(uint64_t), shown++;
    }
  head.allocations = (uint32_t)shown;
  memcpy(message, &head, sizeof head);
  hipError_t error = ask(LAUNCH, message, size, &nanoseconds, sizeof nanoseconds, &got);
  free(message);
  if (!error || error == hipErrorLaunchFailure) sent = version;
  spend(nanoseconds);
  /* It is told where the program waits for the launch, as of a launch that runs on its own. */
  if (error == hipErrorLaunchFailure) set_fault(number, error), error = hipSuccess;
  return error;
}

hipError_t run_kernel(const KernelCall *call, hipStream_t stream) {
  lock();
  hipError_t error = is_function(call->function) ? fault(device_of(stream))
                                                 : hipErrorInvalidDeviceFunction;
  tell_touches();
  if (!error) error = run(call, stream);
  unlock();
  guard();
  return error;
}

/* Room for the values' addresses and the segment behind them. */
static hipError_t make_call(KernelCall *call) {
  const Description *is = &call->function->is;
  size_t addresses = is->arguments * sizeof(void *);
  char *room = malloc(addresses + is->kernarg_bytes + 1);
  if (!room) return hipErrorOutOfMemory;
  call->values = (void **)room, call->segment = room + addresses;
  for (uint32_t i = 0; i < is->arguments; i++)
    call->values[i] = call->segment + is->argument[i].offset;
  return hipSuccess;
}

hipError_t clone_call(KernelCall *made, const KernelCall *call) {
  *made = *call;
  if (!is_function(call->function)) return hipErrorInvalidDeviceFunction;
  hipError_t error = make_call(made);
  if (!error) memcpy(made->segment, call->segment, call->function->is.kernarg_bytes);
  return error;
}

static hipError_t check_call(const KernelCall *call) {
  const dim3 *grid = &call->grid, *block = &call->block;
  hipFunction_t function = call->function;
  if (!grid->x || !grid->y || !grid->z || !block->x || !block->y || !block->z)
    return hipErrorInvalidConfiguration;
  if (!is_function(function)) return hipErrorInvalidDeviceFunction;
  if ((uint64_t)block->x * block->y * block->z > function->is.max_threads) {
    explain("%s: a block of %u x %u x %u threads, of %u at most", function->name, block->x,
            block->y, block->z, function->is.max_threads);
    return hipErrorInvalidConfiguration;
  }
  if (call->lds_bytes > device.lds_bytes - function->is.lds_bytes) {
    explain("%s: %u bytes of LDS beside its own %u, of %lld", function->name, call->lds_bytes,
            function->is.lds_bytes, (long long)device.lds_bytes);
    return hipErrorLaunchOutOfResources;
  }
  return hipSuccess;
}

hipError_t kernel_work(Work *work, hipFunction_t function, dim3 grid, dim3 block,
                       uint32_t lds_bytes, void **values, void **extra) {
  *work = (Work){NOTHING};
  KernelCall call = {function, grid, block, lds_bytes, NULL, NULL};
  lock();
  hipError_t error = check_call(&call);
  if (!error) error = make_call(&call);
  if (!error) {
    *work = (Work){KERNEL, .kernel = call};
    error = gather(&function->is, call.segment, values, extra);
    if (error) free_work(work);
  }
  unlock();
  return error;
}

hipError_t launch(hipFunction_t function, dim3 grid, dim3 block, uint32_t lds_bytes,
                  hipStream_t stream, void **values, void **extra) {
  Work work;
  hipError_t error = usable(stream);
  if (!error) error = kernel_work(&work, function, grid, block, lds_bytes, values, extra);
  if (error) return error;
  error = submit(&work, stream);
  free_work(&work);
  return error;
}
