/* The range of addresses that this process and the emulator share. */
#include "runtime.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static char *start;
static int memory = -1;

hipError_t map_memory(int *file) {
  memory = memfd_create("mfmadsl device", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, RANGE)) return hipErrorOperatingSystem;
  void *at = mmap(NULL, RANGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
  if (at == MAP_FAILED) {
    explain("%zu GiB of addresses cannot be had: is there a limit (ulimit -v)?", RANGE >> 30);
    return hipErrorOperatingSystem;
  }
  start = at;
  *file = dup(memory);
  return *file < 0 ? hipErrorOperatingSystem : hipSuccess;
}

uint64_t memory_start(void) { return (uint64_t)start; }

bool within(const void *pointer) {
  return start && (char *)pointer >= start && (char *)pointer < start + RANGE;
}

void give_back(uint64_t offset, uint64_t size) {
  fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
}
