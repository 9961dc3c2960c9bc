/* Doing what a stream is asked to do: at once, or as a node of the graph that it captures. */
#include "work.h"

#include "graph.h"
#include "stream.h"

#include <stdlib.h>

hipError_t perform(const Work *work, hipStream_t stream) {
  switch (work->kind) {
  case KERNEL: return run_kernel(&work->kernel, stream);
  case COPY: return perform_copy(&work->copy, stream);
  case FILL: return perform_fill(&work->fill, stream);
  case HOST_CALL:
    note(EXCHANGED, stream, 0);
    work->host.function(work->host.data);
    return hipSuccess;
  case CHILD: return run_graph(work->child, stream);
  case RECORD: return record(work->event, stream);
  case WAIT: note(AWAITED, stream, (uint64_t)work->event); break;
  case NOTHING:
  case ALLOCATE: return come_back(work->block->address);
  case FREE: break; /* memory of a graph is there as long as the graph is, unless others free it */
  }
  return hipSuccess;
}

hipError_t submit(const Work *work, hipStream_t stream) {
  hipError_t error = usable(stream);
  if (error) return error;
  lock();
  bool captured = captures(stream);
  error = captured ? capture_work(stream, work) : check_not_implicit(stream);
  unlock();
  return captured || error ? error : perform(work, stream);
}

hipError_t clone_work(Work *made, const Work *work) {
  *made = *work;
  switch (work->kind) {
  case KERNEL: return clone_call(&made->kernel, &work->kernel);
  case CHILD:
    return copy_graph(&made->child, work->child);
  case ALLOCATE: made->block->users++; return hipSuccess;
  default: return hipSuccess;
  }
}

void free_work(Work *work) {
  if (work->kind == KERNEL) free(work->kernel.values);
  if (work->kind == CHILD && work->child) free_graph(work->child);
  if (work->kind == ALLOCATE && !--work->block->users) {
    release_of_graph(work->block->address);
    free(work->block);
  }
  work->kind = NOTHING;
}
