/* Capturing: what a stream is asked to do becomes nodes of a graph. Other streams join by waiting for
   an event of it, and have to be waited for before the end. */
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>

static Capture *all;
static uint64_t last_number;
static _Thread_local int thread_mode = CAPTURE_OF_ALL;

bool captures(hipStream_t stream) { return !standard(stream) && stream->capture; }

static bool copy_nodes(Nodes *to, const Nodes *from) {
  to->count = 0;
  for (size_t i = 0; i < from->count; i++)
    if (!append(to, from->node[i])) return false;
  return true;
}

static hipError_t invalidate(Capture *capture, hipError_t error) {
  capture->status = INVALIDATED;
  return error;
}

hipError_t capture_work(hipStream_t stream, const Work *work) {
  Capture *capture = stream->capture;
  if (capture->status == INVALIDATED) return hipErrorStreamCaptureInvalidated;
  hipGraphNode_t node;
  Nodes *last = &stream->last;
  hipError_t error = add_node(&node, capture->graph, last->node, last->count, work);
  last->count = error ? last->count : 0;
  if (!error && !append(last, node)) error = hipErrorOutOfMemory;
  return error ? invalidate(capture, error) : hipSuccess;
}

hipError_t check_not_implicit(hipStream_t stream) {
  if (!standard(stream)) return hipSuccess;
  for (Capture *each = all; each; each = each->next)
    if (each->mode != CAPTURE_RELAXED && !(each->origin->flags & WITHOUT_OTHERS)) {
      explain("the stream of all would wait for one that captures");
      return invalidate(each, hipErrorStreamCaptureImplicit);
    }
  return hipSuccess;
}

hipError_t check_safe(void) {
  if (thread_mode == CAPTURE_RELAXED) return hipSuccess;
  for (Capture *each = all; each; each = each->next) {
    bool own = each->thread == pthread_self();
    if ((each->mode == CAPTURE_OF_ALL && thread_mode == CAPTURE_OF_ALL) ||
        (each->mode == CAPTURE_OF_THREAD && own)) {
      explain("a call that may wait, or be waited for, while a stream captures");
      return invalidate(each, hipErrorStreamCaptureUnsupported);
    }
  }
  return hipSuccess;
}

hipError_t check_not_captured(hipStream_t stream) {
  if (captures(stream)) return invalidate(stream->capture, hipErrorStreamCaptureUnsupported);
  return check_not_implicit(stream);
}

hipError_t record_captured(hipEvent_t event, hipStream_t stream) {
  if (stream->capture->status == INVALIDATED) return hipErrorStreamCaptureInvalidated;
  event->captured = stream->capture->number;
  return copy_nodes(&event->after, &stream->last) ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t wait_captured(hipStream_t stream, hipEvent_t event) {
  Capture *own = captures(stream) ? stream->capture : NULL, *its = all;
  while (its && its->number != event->captured) its = its->next;
  if (own && own->status == INVALIDATED) return hipErrorStreamCaptureInvalidated;
  if (own && !event->captured) return invalidate(own, hipErrorStreamCaptureIsolation);
  if (!event->captured) return hipSuccess;
  if (!its) return own ? invalidate(own, hipErrorCapturedEvent) : hipErrorCapturedEvent;
  if (own && own != its) {
    invalidate(its, hipErrorStreamCaptureMerge);
    return invalidate(own, hipErrorStreamCaptureMerge);
  }
  if (standard(stream)) return invalidate(its, hipErrorStreamCaptureImplicit);
  if (!own) stream->capture = its, stream->last.count = 0;
  for (size_t i = 0; i < event->after.count; i++)
    if (!append(&stream->last, event->after.node[i])) return hipErrorOutOfMemory;
  return hipSuccess;
}

/* Every stream that has joined leaves; the graph is the caller's to keep. */
static void end(Capture *capture) {
  for (struct Stream *each = all_streams(); each; each = each->next)
    if (each->capture == capture) each->capture = NULL, each->last.count = 0;
  for (Capture **place = &all; *place; place = &(*place)->next)
    if (*place == capture) {
      *place = capture->next;
      break;
    }
  free(capture);
}

void forget_stream(hipStream_t stream) {
  Capture *capture = stream->capture;
  stream->capture = NULL;
  if (capture && capture->origin == stream) {
    if (!capture->kept) free_graph(capture->graph);
    end(capture);
  } else if (capture)
    capture->status = INVALIDATED;
  free(stream->last.node);
}

static hipError_t begin(hipStream_t stream, hipGraph_t graph, const hipGraphNode_t *after,
                        size_t count, int mode) {
  if (mode < CAPTURE_OF_ALL || mode > CAPTURE_RELAXED || (count && !after))
    return hipErrorInvalidValue;
  if (standard(stream)) return hipErrorStreamCaptureUnsupported;
  if (stream->capture) return hipErrorIllegalState;
  if (graph && !is_graph(graph)) return hipErrorInvalidValue;
  for (size_t i = 0; i < count; i++)
    if (!among(&graph->nodes, after[i])) return hipErrorInvalidValue;
  Capture *made = calloc(1, sizeof *made);
  hipGraph_t taken = graph || !made ? graph : make_graph(true);
  if (!made || !taken) {
    free(made);
    return hipErrorOutOfMemory;
  }
  *made = (Capture){taken, stream, ++last_number, mode, CAPTURED, graph != NULL, pthread_self(),
                    all};
  stream->capture = all = made, stream->last.count = 0;
  for (size_t i = 0; i < count; i++)
    if (!append(&stream->last, after[i])) return invalidate(made, hipErrorOutOfMemory);
  return hipSuccess;
}
API hipError_t hipStreamBeginCapture(hipStream_t stream, int mode) {
  hipError_t error = usable(stream);
  lock();
  if (!error) error = begin(stream, NULL, NULL, 0, mode);
  unlock();
  return done(error);
}
PER_THREAD(hipStreamBeginCapture);
API hipError_t hipStreamBeginCaptureToGraph(hipStream_t stream, hipGraph_t graph,
                                            const hipGraphNode_t *after, const void *edges,
                                            size_t count, int mode) {
  (void)edges; /* ports, which no kind of node has */
  hipError_t error = graph ? usable(stream) : hipErrorInvalidValue;
  lock();
  if (!error) error = begin(stream, graph, after, count, mode);
  unlock();
  return done(error);
}

/* Whether what all streams have captured last comes before what the first one captures next. */
static bool all_joined(const Capture *capture) {
  Nodes awaited = {0};
  bool joined = copy_nodes(&awaited, &capture->origin->last);
  for (size_t i = 0; i < awaited.count && joined; i++)
    for (size_t j = 0; j < awaited.node[i]->after.count && joined; j++)
      joined = append(&awaited, awaited.node[i]->after.node[j]);
  for (struct Stream *each = all_streams(); each && joined; each = each->next)
    for (size_t i = 0; each->capture == capture && i < each->last.count; i++)
      joined = joined && among(&awaited, each->last.node[i]);
  free(awaited.node);
  return joined;
}

API hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph) {
  hipError_t error = graph ? usable(stream) : hipErrorInvalidValue;
  if (error) return done(error);
  *graph = NULL;
  lock();
  Capture *capture = captures(stream) ? stream->capture : NULL;
  if (!capture)
    error = hipErrorIllegalState;
  else if (capture->origin != stream)
    error = invalidate(capture, hipErrorStreamCaptureUnmatched);
  else if (capture->mode != CAPTURE_RELAXED && capture->thread != pthread_self())
    error = invalidate(capture, hipErrorStreamCaptureWrongThread);
  else {
    if (capture->status == INVALIDATED)
      error = hipErrorStreamCaptureInvalidated;
    else if (!all_joined(capture))
      error = hipErrorStreamCaptureUnjoined;
    if (error && !capture->kept)
      free_graph(capture->graph);
    else if (!error) {
      if (!capture->kept) capture->graph->inner = false;
      *graph = capture->graph;
    }
    end(capture);
  }
  unlock();
  return done(error);
}
PER_THREAD(hipStreamEndCapture);

API hipError_t hipStreamIsCapturing(hipStream_t stream, int *status) {
  hipError_t error = status ? usable(stream) : hipErrorInvalidValue;
  lock();
  if (!error) *status = captures(stream) ? stream->capture->status : NOT_CAPTURED;
  unlock();
  return done(error);
}
PER_THREAD(hipStreamIsCapturing);
API hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, int *status,
                                          unsigned long long *number, hipGraph_t *graph,
                                          const hipGraphNode_t **last, size_t *count) {
  hipError_t error = status ? usable(stream) : hipErrorInvalidValue;
  lock();
  if (!error) {
    const Capture *capture = captures(stream) ? stream->capture : NULL;
    *status = capture ? capture->status : NOT_CAPTURED;
    if (*status == CAPTURED) {
      if (number) *number = capture->number;
      if (graph) *graph = capture->graph;
      if (last) *last = stream->last.node;
      if (count) *count = stream->last.count;
    }
  }
  unlock();
  return done(error);
}
PER_THREAD(hipStreamGetCaptureInfo_v2);
API hipError_t hipStreamGetCaptureInfo(hipStream_t stream, int *status,
                                       unsigned long long *number) {
  return hipStreamGetCaptureInfo_v2(stream, status, number, NULL, NULL, NULL);
}
PER_THREAD(hipStreamGetCaptureInfo);
API hipError_t hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t *nodes,
                                                  size_t count, unsigned flags) {
  enum { ADD = 0, SET = 1 };
  hipError_t error = flags > SET || (count && !nodes) ? hipErrorInvalidValue : usable(stream);
  if (error) return done(error);
  lock();
  if (!captures(stream) || stream->capture->status != CAPTURED) error = hipErrorIllegalState;
  for (size_t i = 0; i < count && !error; i++)
    if (!among(&stream->capture->graph->nodes, nodes[i])) error = hipErrorInvalidValue;
  if (!error && flags == SET) stream->last.count = 0;
  for (size_t i = 0; i < count && !error; i++)
    if (!append(&stream->last, nodes[i])) error = hipErrorOutOfMemory;
  unlock();
  return done(error);
}
API hipError_t hipThreadExchangeStreamCaptureMode(int *mode) {
  if (!mode || *mode < CAPTURE_OF_ALL || *mode > CAPTURE_RELAXED) return done(hipErrorInvalidValue);
  int before = thread_mode;
  thread_mode = *mode, *mode = before;
  return hipSuccess;
}
