/* Streams and events. All work is done when the call that asks for it returns, which is one of the
   orders that HIP allows; so a stream never has anything left to do, and an event is what the clock
   showed. */
#include "stream.h"

#include <stdlib.h>
#include <time.h>

static struct Stream *streams;
static struct Event *events;
static uint64_t last_number;

struct Stream *all_streams(void) { return streams; }
struct Event *all_events(void) { return events; }

static uint64_t spent; /* nanoseconds, in the model */
static hipError_t failed[MOST_DEVICES];

void spend(uint64_t nanoseconds) { spent += nanoseconds; }
hipError_t fault(int number) { return failed[number]; }
void set_fault(int number, hipError_t error) {
  if (!failed[number]) failed[number] = error;
}
void forget_fault(int number) { failed[number] = hipSuccess; }

/* The clock that events read: that of the model, where it is asked, else this machine's. */
static uint64_t now(void) {
  if (device.models_time) return spent;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

bool standard(hipStream_t stream) { return (uintptr_t)stream <= 2; }

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

int device_of(hipStream_t stream) {
  return standard(stream) ? current_device() : stream->device;
}

bool is_event(hipEvent_t event) {
  lock();
  bool found = among_events(event);
  unlock();
  return found;
}

hipError_t usable(hipStream_t stream) {
  hipError_t error = ready();
  return error ? error : is_stream(stream) ? hipSuccess : hipErrorInvalidHandle;
}

static hipError_t make_stream(hipStream_t *stream, unsigned flags, int priority) {
  if (!stream || flags > WITHOUT_OTHERS) return hipErrorInvalidValue;
  hipError_t error = ready();
  if (error) return error;
  struct Stream *made = malloc(sizeof *made);
  if (!made) return hipErrorOutOfMemory;
  lock();
  *made = (struct Stream){.flags = flags,
                          .priority = priority < -1 ? -1 : priority > 1 ? 1 : priority,
                          .device = current_device(),
                          .number = ++last_number,
                          .next = streams};
  *stream = streams = made;
  note(STREAM_MADE, made, flags);
  unlock();
  return hipSuccess;
}
API hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority) {
  return done(make_stream(stream, flags, priority));
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
      note(STREAM_GONE, stream, 0);
      forget_stream(stream);
      free(stream->units);
      free(stream);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}

API hipError_t hipStreamSynchronize(hipStream_t stream) {
  hipError_t error = usable(stream);
  lock();
  if (!error) error = check_not_captured(stream);
  unlock();
  if (!error) note(HOST_AWAITED_STREAM, stream, 0);
  return done(error ? error : fault(device_of(stream)));
}
PER_THREAD(hipStreamSynchronize);
API hipError_t hipStreamQuery(hipStream_t stream) { return hipStreamSynchronize(stream); }
PER_THREAD(hipStreamQuery);

API hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags) {
  hipError_t error = flags ? usable(stream) : hipErrorInvalidValue;
  if (!error) *flags = standard(stream) ? 0 : stream->flags;
  return done(error);
}
PER_THREAD(hipStreamGetFlags);
API hipError_t hipStreamGetPriority(hipStream_t stream, int *priority) {
  hipError_t error = priority ? usable(stream) : hipErrorInvalidValue;
  if (!error) *priority = standard(stream) ? 0 : stream->priority;
  return done(error);
}
PER_THREAD(hipStreamGetPriority);
API hipError_t hipStreamGetDevice(hipStream_t stream, int *number) {
  hipError_t error = number ? usable(stream) : hipErrorInvalidValue;
  if (!error) *number = device_of(stream);
  return done(error);
}
API int hipGetStreamDeviceId(hipStream_t stream) { return usable(stream) ? -1 : device_of(stream); }
API hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *number) {
  hipError_t error = number ? usable(stream) : hipErrorInvalidValue;
  if (!error) *number = standard(stream) ? 0 : stream->number;
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
  lock();
  if (!error) error = check_not_captured(stream);
  unlock();
  if (!error) note(EXCHANGED, stream, 0), callback(stream, fault(device_of(stream)), data);
  return done(error);
}
PER_THREAD(hipStreamAddCallback);
API hipError_t hipLaunchHostFunc(hipStream_t stream, void (*function)(void *), void *data) {
  Work work = {HOST_CALL, .host = {function, data}};
  return done(function ? submit(&work, stream) : hipErrorInvalidValue);
}
PER_THREAD(hipLaunchHostFunc);

enum { BLOCKING = 1, WITHOUT_TIME = 2 }; /* of the flags of an event */

API hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  if (!event) return done(hipErrorInvalidValue);
  hipError_t error = ready();
  if (error) return done(error);
  struct Event *made = malloc(sizeof *made);
  if (!made) return done(hipErrorOutOfMemory);
  lock();
  *made = (struct Event){.timed = !(flags & WITHOUT_TIME),
                          .device = current_device(),
                          .next = events};
  *event = events = made;
  note(EVENT_GONE, NULL, (uint64_t)made); /* one that was there before, and is forgotten */
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
      free(event->after.node);
      free(event);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}

hipError_t record(hipEvent_t event, hipStream_t stream) {
  lock();
  hipError_t error = among_events(event) ? hipSuccess : hipErrorInvalidHandle;
  if (!error) event->recorded = true, event->time = now(), event->captured = 0,
              event->device = device_of(stream);
  if (!error) note(RECORDED, stream, (uint64_t)event);
  unlock();
  return error;
}

/* hipEventRecordExternal: a node of the graph, where the stream captures. */
enum { AS_NODE = 1 };
API hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
  hipError_t error = flags > AS_NODE ? hipErrorInvalidValue : usable(stream);
  if (!error && !is_event(event)) error = hipErrorInvalidHandle;
  if (error) return done(error);
  Work work = {RECORD, .event = event};
  lock();
  bool captured = captures(stream);
  if (captured) error = flags ? capture_work(stream, &work) : record_captured(event, stream);
  unlock();
  return done(captured ? error : record(event, stream));
}
API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return hipEventRecordWithFlags(event, stream, 0);
}
PER_THREAD(hipEventRecord);

API hipError_t hipEventQuery(hipEvent_t event) {
  hipError_t error = ready();
  if (error) return done(error);
  lock();
  error = !among_events(event) ? hipErrorInvalidHandle
          : event->captured    ? hipErrorCapturedEvent
                               : fault(event->device);
  if (!error) note(HOST_AWAITED_EVENT, NULL, (uint64_t)event);
  unlock();
  return done(error);
}
API hipError_t hipEventSynchronize(hipEvent_t event) { return hipEventQuery(event); }

/* What an event stands behind is done, but where it is only captured. */
API hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  hipError_t error = flags > AS_NODE ? hipErrorInvalidValue : usable(stream);
  if (error) return done(error);
  lock();
  Work work = {WAIT, .event = event};
  if (!among_events(event))
    error = hipErrorInvalidHandle;
  else if (flags && captures(stream))
    error = capture_work(stream, &work);
  else {
    error = wait_captured(stream, event);
    if (!error && !event->captured) note(AWAITED, stream, (uint64_t)event);
  }
  unlock();
  return done(error);
}
PER_THREAD(hipStreamWaitEvent);

API hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t first, hipEvent_t last) {
  hipError_t error = milliseconds ? ready() : hipErrorInvalidValue;
  if (error) return done(error);
  lock();
  bool both = among_events(first) && among_events(last);
  if (!both || !first->recorded || !last->recorded || !first->timed || !last->timed)
    error = hipErrorInvalidHandle;
  else {
    *milliseconds = (float)((double)(int64_t)(last->time - first->time) / 1e6);
    note(HOST_AWAITED_EVENT, NULL, (uint64_t)first); /* which says that both are done */
    note(HOST_AWAITED_EVENT, NULL, (uint64_t)last);
  }
  unlock();
  return done(error);
}
