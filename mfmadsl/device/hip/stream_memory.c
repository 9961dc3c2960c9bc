/* Streams that wait for values in memory, and write them; and what else streams are told. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

/* Nothing else runs while a stream waits: a value that is not there will not come. */
enum { AT_LEAST, EQUAL, ANY_BIT, NO_BIT }; /* hipStreamWaitValueGte, Eq, And, Nor */

static bool holds(uint64_t there, uint64_t value, unsigned how, bool wide) {
  switch (how) {
  case AT_LEAST: return wide ? (int64_t)(there - value) >= 0 : (int32_t)(there - value) >= 0;
  case EQUAL: return there == value;
  case ANY_BIT: return there & value;
  }
  uint64_t neither = ~(there | value);
  return wide ? neither != 0 : (uint32_t)neither != 0;
}

/* A word of memory that a stream may reach, of 4 or 8 bytes. */
static hipError_t word(hipStream_t stream, void *pointer, size_t bytes) {
  hipError_t error = usable(stream);
  if (error) return error;
  if (!pointer || (uint64_t)pointer % bytes) return hipErrorInvalidValue;
  lock();
  if (captures(stream)) {
    explain("words that a stream waits for or writes cannot be captured here");
    error = hipErrorStreamCaptureUnsupported;
  } else if (!holding(pointer, bytes))
    error = hipErrorInvalidValue;
  unlock();
  return error ? error : fault(device_of(stream));
}
static hipError_t wait_for(hipStream_t stream, void *pointer, uint64_t value, unsigned how,
                           uint64_t mask, size_t bytes) {
  hipError_t error = how > NO_BIT ? hipErrorInvalidValue : word(stream, pointer, bytes);
  if (error) return error;
  uint64_t there = 0;
  note(EXCHANGED, stream, 0);
  memcpy(&there, pointer, bytes);
  if (holds(there & mask, value & mask, how, bytes == 8)) return hipSuccess;
  explain("a stream waits for a value that nothing before it has written");
  return hipErrorNotReady;
}
static hipError_t write_to(hipStream_t stream, void *pointer, uint64_t value, unsigned flags,
                           size_t bytes) {
  hipError_t error = flags > 1 ? hipErrorInvalidValue : word(stream, pointer, bytes);
  if (error) return error;
  note(EXCHANGED, stream, 0);
  note_memory(WRITTEN, stream, 0, bytes_at(pointer, bytes), (Region){0});
  host_access_begins();
  memcpy(pointer, &value, bytes);
  host_access_ends();
  return error;
}
API hipError_t hipStreamWaitValue32(hipStream_t stream, void *pointer, uint32_t value,
                                    unsigned how, uint32_t mask) {
  return done(wait_for(stream, pointer, value, how, mask, 4));
}
API hipError_t hipStreamWaitValue64(hipStream_t stream, void *pointer, uint64_t value,
                                    unsigned how, uint64_t mask) {
  return done(wait_for(stream, pointer, value, how, mask, 8));
}
API hipError_t hipStreamWriteValue32(hipStream_t stream, void *pointer, uint32_t value,
                                     unsigned flags) {
  return done(write_to(stream, pointer, value, flags, 4));
}
API hipError_t hipStreamWriteValue64(hipStream_t stream, void *pointer, uint64_t value,
                                     unsigned flags) {
  return done(write_to(stream, pointer, value, flags, 8));
}

/* hipStreamBatchMemOpParams */
typedef union {
  int operation;
  struct {
    int operation;
    void *pointer;
    union {
      uint32_t word;
      uint64_t wide;
    } value;
    unsigned flags;
    void *alias;
  } word;
  uint64_t room[6];
} MemoryOperation;
enum { WAIT_32 = 1, WRITE_32 = 2, FLUSH = 3, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };

API hipError_t hipStreamBatchMemOp(hipStream_t stream, unsigned count, MemoryOperation *list,
                                   unsigned flags) {
  hipError_t error = flags || !count || !list ? hipErrorInvalidValue : usable(stream);
  for (unsigned i = 0; i < count && !error; i++) {
    void *pointer = list[i].word.pointer;
    uint64_t wide = list[i].word.value.wide;
    uint32_t narrow = list[i].word.value.word;
    unsigned how = list[i].word.flags;
    switch (list[i].operation) {
    case WAIT_32: error = wait_for(stream, pointer, narrow, how, UINT32_MAX, 4); break;
    case WAIT_64: error = wait_for(stream, pointer, wide, how, UINT64_MAX, 8); break;
    case WRITE_32: error = write_to(stream, pointer, narrow, how, 4); break;
    case WRITE_64: error = write_to(stream, pointer, wide, how, 8); break;
    case FLUSH:
    case BARRIER: break; /* what came before is done */
    default: error = hipErrorInvalidValue;
    }
  }
  return done(error);
}

/* Compute units that a stream may use. The emulator does not say which one a workgroup is on. */
hipError_t hipStreamCreate(hipStream_t *stream);
API hipError_t hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t words,
                                            const uint32_t *mask) {
  if (!stream || !words || !mask) return done(hipErrorInvalidValue);
  uint32_t *units = malloc(words * sizeof *units);
  if (!units) return done(hipErrorOutOfMemory);
  hipError_t error = hipStreamCreate(stream);
  if (error) {
    free(units);
    return error;
  }
  memcpy(units, mask, words * sizeof *units);
  (*stream)->units = units, (*stream)->unit_words = words;
  return hipSuccess;
}
API hipError_t hipExtStreamGetCUMask(hipStream_t stream, uint32_t words, uint32_t *mask) {
  hipError_t error = mask && (int64_t)words * 32 >= device.compute_units ? usable(stream)
                                                                         : hipErrorInvalidValue;
  if (error) return done(error);
  bool own = !standard(stream) && stream->units;
  for (uint32_t i = 0; i < words; i++) {
    int64_t left = device.compute_units - 32 * (int64_t)i;
    uint32_t all = left >= 32 ? UINT32_MAX : left > 0 ? (1u << left) - 1 : 0;
    mask[i] = own ? i < stream->unit_words ? stream->units[i] : 0 : all;
  }
  return hipSuccess;
}

/* hipLaunchAttributeValue: of those of streams the priority alone is more than a wish. */
enum { ACCESS_WINDOW = 1, SYNCHRONIZATION = 3, PRIORITY = 8, DOMAIN_MAP = 9, DOMAIN = 10 };
static bool known_attribute(int attribute) {
  return attribute == ACCESS_WINDOW || attribute == SYNCHRONIZATION ||
         (attribute >= PRIORITY && attribute <= DOMAIN);
}
API hipError_t hipStreamSetAttribute(hipStream_t stream, int attribute, const void *value) {
  hipError_t error = value && known_attribute(attribute) ? usable(stream) : hipErrorInvalidValue;
  if (!error && attribute == PRIORITY && !standard(stream)) {
    int wanted;
    memcpy(&wanted, value, sizeof wanted);
    stream->priority = wanted < -1 ? -1 : wanted > 1 ? 1 : wanted;
  }
  return done(error);
}
API hipError_t hipStreamGetAttribute(hipStream_t stream, int attribute, void *value) {
  enum { VALUE_BYTES = 64 };
  hipError_t error = value && known_attribute(attribute) ? usable(stream) : hipErrorInvalidValue;
  if (error) return done(error);
  memset(value, 0, VALUE_BYTES);
  if (attribute == PRIORITY && !standard(stream))
    memcpy(value, &stream->priority, sizeof stream->priority);
  return hipSuccess;
}
API hipError_t hipStreamCopyAttributes(hipStream_t to, hipStream_t from) {
  hipError_t error = usable(to);
  if (!error) error = usable(from);
  if (!error && !standard(to)) to->priority = standard(from) ? 0 : from->priority;
  return done(error);
}
