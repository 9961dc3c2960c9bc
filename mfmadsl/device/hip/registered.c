/* Memory of malloc that is registered: streams copy from and to it, as from and to all memory of the
   host. Kernels do not reach it, for the emulator does not see it. */
#include "runtime.h"

#include <stdlib.h>

typedef struct Registered {
  uint64_t address, size;
  unsigned flags;
  struct Registered *next;
} Registered;
static Registered *all;

static const Registered *containing(const void *pointer, uint64_t size) {
  uint64_t address = (uint64_t)pointer;
  for (const Registered *each = all; each; each = each->next)
    if (address - each->address < each->size && size <= each->size - (address - each->address))
      return each;
  return NULL;
}

bool is_registered(const void *pointer, uint64_t size, unsigned *flags) {
  lock();
  const Registered *found = containing(pointer, size);
  if (found && flags) *flags = found->flags;
  unlock();
  return found;
}

API hipError_t hipHostRegister(void *pointer, size_t size, unsigned flags) {
  enum { KNOWN = 0x1 | 0x2 | 0x4 | 0x8 | 0x80000000u }; /* hipHostRegisterPortable and on */
  hipError_t error = pointer && size && !(flags & ~KNOWN) ? ready() : hipErrorInvalidValue;
  if (!error && within(pointer)) error = hipErrorInvalidValue;
  Registered *made = error ? NULL : malloc(sizeof *made);
  if (!error && !made) error = hipErrorOutOfMemory;
  if (error) return done(error);
  uint64_t address = (uint64_t)pointer;
  lock();
  for (const Registered *each = all; each && !error; each = each->next)
    if (address < each->address + each->size && each->address < address + size)
      error = hipErrorHostMemoryAlreadyRegistered;
  if (error)
    free(made);
  else
    *made = (Registered){address, size, flags, all}, all = made;
  unlock();
  return done(error);
}
API hipError_t hipHostUnregister(void *pointer) {
  hipError_t error = ready();
  if (error) return done(error);
  error = hipErrorHostMemoryNotRegistered;
  lock();
  for (Registered **place = &all; *place; place = &(*place)->next)
    if ((*place)->address == (uint64_t)pointer) {
      Registered *found = *place;
      *place = found->next;
      free(found);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}
