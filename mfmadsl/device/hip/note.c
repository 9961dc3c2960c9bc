/* What streams and the host do, told to the emulator where it asks. */
#include "stream.h"

typedef struct {
  uint32_t kind;
  int32_t device;
  uint64_t stream, other;
  Region to, from;
} Note;

Region bytes_at(const void *pointer, size_t size) {
  return (Region){(uint64_t)pointer, size, 1, size, 1, size};
}

static bool frees_the_host(NoteKind kind) {
  return (kind >= HOST_AWAITED_EVENT && kind <= EXCHANGED) || kind == FREED || kind == RESET;
}

void note_memory(NoteKind kind, hipStream_t stream, uint64_t other, Region to, Region from) {
  if (!device.sanitizes) return;
  if (kind != TOUCHED) tell_touches();
  lock();
  Note told = {kind, device_of(stream), (uint64_t)stream, other, to, from};
  ask(NOTE, &told, sizeof told, NULL, 0, NULL);
  unlock();
  if (frees_the_host(kind)) guard();
}

void note(NoteKind kind, hipStream_t stream, uint64_t other) {
  note_memory(kind, stream, other, (Region){0}, (Region){0});
}

void tell_touch(uint64_t address) {
  note_memory(TOUCHED, NULL, 0, bytes_at((void *)address, 1), (Region){0});
}
