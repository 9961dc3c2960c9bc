/* Streams and events. All work is done when the call that asks for it returns, which is one of the
   orders that HIP allows; so a stream never has anything left to do, and an event is what the clock
   showed. */
#include "runtime.h"

#include <stdlib.h>
#include <time.h>

struct Stream {
  unsigned flags;
  int priority;
  struct Stream *next;
};
struct Event {
  bool recorded, timed;
  uint64_t time;
  struct Event *next;
};

static struct Stream *streams;
static struct Event *events;
static uint64_t spent; /* nanoseconds, in the model */
static hipError_t failed;

void spend(uint64_t nanoseconds) { spent += nanoseconds; }
hipError_t fault(void) { return failed; }
void set_fault(hipError_t error) {
  if (!failed) failed = error;
}
void forget_fault(void) { failed = hipSuccess; }

/* The clock that events read: that of the model, where it is asked, else this machine's. */
static uint64_t now(void) {
  if (device.models_time) return spent;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static bool standard(hipStream_t stream) {
  return (uintptr_t)stream <= 2;
} /* NULL, legacy, that of the thread */

static bool among_streams(hipStream_t stream) {
  if (standard(stream)) return true;
  for (struct Stream *each = streams; each; each = each->next)
    if (each == stream) return true;
  return false;
}
static bool among_events(hipEvent_t event) {
  for (struct Event *each = events; each; each = each->next)
    if (each == event) return true;
  return false;
}

bool is_stream(hipStream_t stream) {
  lock();
  bool found = among_streams(stream);
  unlock();
  return found;
}

/* Ready, and a stream; an error of a launch is told by whoever waits. */
static hipError_t usable(hipStream_t stream) {
  hipError_t error = ready();
  return error ? error : is_stream(stream) ? hipSuccess : hipErrorInvalidHandle;
}

API hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority) {
  if (!stream || flags > 1) return done(hipErrorInvalidValue);
  hipError_t error = ready();
  if (error) return done(error);
  struct Stream *made = malloc(sizeof *made);
  if (!made) return done(hipErrorOutOfMemory);
  lock();
  *made = (struct Stream){flags, priority < -1 ? -1 : priority > 1 ? 1 : priority, streams};
  *stream = streams = made;
  unlock();
  return hipSuccess;
}
API hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}
API hipError_t hipStreamCreate(hipStream_t *stream) {
  return hipStreamCreateWithPriority(stream, 0, 0);
}

API hipError_t hipStreamDestroy(hipStream_t stream) {
  hipError_t error = ready();
  if (error) return done(error);
  error = hipErrorInvalidHandle;
  lock();
  for (struct Stream **place = &streams; *place; place = &(*place)->next)
    if (*place == stream) {
      *place = stream->next;
      free(stream);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}

API hipError_t hipStreamSynchronize(hipStream_t stream) {
  hipError_t error = usable(stream);
  return done(error ? error : fault());
}
API hipError_t hipStreamQuery(hipStream_t stream) { return hipStreamSynchronize(stream); }

API hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags) {
  hipError_t error = flags ? usable(stream) : hipErrorInvalidValue;
  if (!error) *flags = standard(stream) ? 0 : stream->flags;
  return done(error);
}
API hipError_t hipStreamGetPriority(hipStream_t stream, int *priority) {
  hipError_t error = priority ? usable(stream) : hipErrorInvalidValue;
  if (!error) *priority = standard(stream) ? 0 : stream->priority;
  return done(error);
}
API hipError_t hipStreamGetDevice(hipStream_t stream, int *number) {
  hipError_t error = number ? usable(stream) : hipErrorInvalidValue;
  if (!error) *number = 0;
  return done(error);
}
API hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 1;
  if (greatest) *greatest = -1;
  return done(ready());
}

typedef void (*Callback)(hipStream_t stream, hipError_t status, void *data);
API hipError_t hipStreamAddCallback(hipStream_t stream, Callback callback, void *data,
                                    unsigned flags) {
  hipError_t error = callback && !flags ? usable(stream) : hipErrorInvalidValue;
  if (!error) callback(stream, fault(), data);
  return done(error);
}
API hipError_t hipLaunchHostFunc(hipStream_t stream, void (*function)(void *), void *data) {
  hipError_t error = function ? usable(stream) : hipErrorInvalidValue;
  if (!error) function(data);
  return done(error);
}

enum { BLOCKING = 1, WITHOUT_TIME = 2 }; /* of the flags of an event */

API hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  if (!event) return done(hipErrorInvalidValue);
  hipError_t error = ready();
  if (error) return done(error);
  struct Event *made = malloc(sizeof *made);
  if (!made) return done(hipErrorOutOfMemory);
  lock();
  *made = (struct Event){.timed = !(flags & WITHOUT_TIME), .next = events};
  *event = events = made;
  unlock();
  return hipSuccess;
}
API hipError_t hipEventCreate(hipEvent_t *event) { return hipEventCreateWithFlags(event, 0); }

API hipError_t hipEventDestroy(hipEvent_t event) {
  hipError_t error = ready();
  if (error) return done(error);
  error = hipErrorInvalidHandle;
  lock();
  for (struct Event **place = &events; *place; place = &(*place)->next)
    if (*place == event) {
      *place = event->next;
      free(event);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}

API hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
  hipError_t error = flags > 1 ? hipErrorInvalidValue : usable(stream);
  if (error) return done(error);
  lock();
  error = among_events(event) ? hipSuccess : hipErrorInvalidHandle;
  if (!error) event->recorded = true, event->time = now();
  unlock();
  return done(error);
}
API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return hipEventRecordWithFlags(event, stream, 0);
}

API hipError_t hipEventQuery(hipEvent_t event) {
  hipError_t error = ready();
  if (error) return done(error);
  lock();
  error = among_events(event) ? fault() : hipErrorInvalidHandle;
  unlock();
  return done(error);
}
API hipError_t hipEventSynchronize(hipEvent_t event) { return hipEventQuery(event); }

API hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  hipError_t error = flags > 1 ? hipErrorInvalidValue : usable(stream);
  if (error) return done(error);
  lock();
  error = among_events(event) ? hipSuccess : hipErrorInvalidHandle;
  unlock();
  return done(error);
}

API hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t first, hipEvent_t last) {
  hipError_t error = milliseconds ? ready() : hipErrorInvalidValue;
  if (error) return done(error);
  lock();
  bool both = among_events(first) && among_events(last);
  if (!both || !first->recorded || !last->recorded || !first->timed || !last->timed)
    error = hipErrorInvalidHandle;
  else
    *milliseconds = (float)((double)(int64_t)(last->time - first->time) / 1e6);
  unlock();
  return done(error);
}
