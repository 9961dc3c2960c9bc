/* What a stream is, and the graph that it captures. */
#pragma once
#include "graph.h"

enum { CAPTURE_OF_ALL, CAPTURE_OF_THREAD, CAPTURE_RELAXED }; /* hipStreamCaptureMode */
enum { NOT_CAPTURED, CAPTURED, INVALIDATED };                /* hipStreamCaptureStatus */

/* A capture, which streams join by waiting for events of it. */
typedef struct Capture {
  hipGraph_t graph;
  hipStream_t origin;
  uint64_t number;
  int mode, status;
  bool kept; /* the graph is the caller's own */
  unsigned long thread;
  struct Capture *next;
} Capture;

struct Stream {
  unsigned flags;
  int priority, device;
  uint64_t number;
  Capture *capture;
  Nodes last; /* nodes that the next one of this stream comes after */
  uint32_t *units;
  size_t unit_words;
  struct Stream *next;
};

struct Event {
  bool recorded, timed;
  int device; /* of the stream that it was recorded on */
  uint64_t time;
  uint64_t captured; /* the capture that it was recorded in, and 0 of none */
  Nodes after;       /* what it stands behind in that one */
  struct Event *next;
};

enum { WITHOUT_OTHERS = 1 }; /* hipStreamNonBlocking */

bool standard(hipStream_t stream); /* NULL, legacy, that of the thread */
struct Stream *all_streams(void);
struct Event *all_events(void);

/* capture.c; all of these want `lock` held. */
bool captures(hipStream_t stream);
hipError_t capture_work(hipStream_t stream, const Work *work);
/* An error where the stream of all would wait for one that captures. */
hipError_t check_not_implicit(hipStream_t stream);
/* An error where something is captured that this call would disturb. */
hipError_t check_safe(void);
/* As what waits for a stream, or an event, does. */
hipError_t check_not_captured(hipStream_t stream);
hipError_t record_captured(hipEvent_t event, hipStream_t stream);
hipError_t wait_captured(hipStream_t stream, hipEvent_t event);
void forget_stream(hipStream_t stream);
