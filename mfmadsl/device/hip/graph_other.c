/* The nodes of graphs that neither compute nor move anything: empty ones, graphs, events, memory;
   and nodes of any kind, by one structure. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

API hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph,
                                    const hipGraphNode_t *after, size_t count) {
  Work work = {NOTHING};
  return done(put_node(node, graph, after, count, &work));
}

/* Graphs within a graph. */
static hipError_t child_of(hipGraph_t child, Work *work) {
  *work = (Work){CHILD, .child = child};
  lock();
  bool found = is_graph(child);
  unlock();
  return found ? hipSuccess : hipErrorInvalidValue;
}
API hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t graph,
                                         const hipGraphNode_t *after, size_t count,
                                         hipGraph_t child) {
  Work work;
  hipError_t error = child_of(child, &work);
  return done(error ? error : put_node(node, graph, after, count, &work));
}
API hipError_t hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t *graph) {
  Work work;
  hipError_t error = graph ? look_at(node, CHILD, &work) : hipErrorInvalidValue;
  if (!error) *graph = work.child;
  return done(error);
}
API hipError_t hipGraphExecChildGraphNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   hipGraph_t child) {
  Work work;
  hipError_t error = child_of(child, &work);
  return done(error ? error : change_clone(exec, node, &work));
}

/* Events. */
static hipError_t event_work(WorkKind kind, hipEvent_t event, Work *work) {
  *work = (Work){kind, .event = event};
  return is_event(event) ? hipSuccess : hipErrorInvalidHandle;
}
static hipError_t add_event(WorkKind kind, hipGraphNode_t *node, hipGraph_t graph,
                            const hipGraphNode_t *after, size_t count, hipEvent_t event) {
  Work work;
  hipError_t error = event_work(kind, event, &work);
  return error ? error : put_node(node, graph, after, count, &work);
}
static hipError_t get_event(WorkKind kind, hipGraphNode_t node, hipEvent_t *event) {
  Work work;
  hipError_t error = event ? look_at(node, kind, &work) : hipErrorInvalidValue;
  if (!error) *event = work.event;
  return error;
}
static hipError_t set_event(WorkKind kind, hipGraphNode_t node, hipEvent_t event) {
  Work work;
  hipError_t error = event_work(kind, event, &work);
  return error ? error : change_node(NULL, node, &work);
}
static hipError_t set_clones_event(WorkKind kind, hipGraphExec_t exec, hipGraphNode_t node,
                                   hipEvent_t event) {
  Work work;
  hipError_t error = event_work(kind, event, &work);
  return error ? error : change_clone(exec, node, &work);
}
API hipError_t hipGraphAddEventRecordNode(hipGraphNode_t *node, hipGraph_t graph,
                                          const hipGraphNode_t *after, size_t count,
                                          hipEvent_t event) {
  return done(add_event(RECORD, node, graph, after, count, event));
}
API hipError_t hipGraphAddEventWaitNode(hipGraphNode_t *node, hipGraph_t graph,
                                        const hipGraphNode_t *after, size_t count,
                                        hipEvent_t event) {
  return done(add_event(WAIT, node, graph, after, count, event));
}
API hipError_t hipGraphEventRecordNodeGetEvent(hipGraphNode_t node, hipEvent_t *event) {
  return done(get_event(RECORD, node, event));
}
API hipError_t hipGraphEventWaitNodeGetEvent(hipGraphNode_t node, hipEvent_t *event) {
  return done(get_event(WAIT, node, event));
}
API hipError_t hipGraphEventRecordNodeSetEvent(hipGraphNode_t node, hipEvent_t event) {
  return done(set_event(RECORD, node, event));
}
API hipError_t hipGraphEventWaitNodeSetEvent(hipGraphNode_t node, hipEvent_t event) {
  return done(set_event(WAIT, node, event));
}
API hipError_t hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                                   hipEvent_t event) {
  return done(set_clones_event(RECORD, exec, node, event));
}
API hipError_t hipGraphExecEventWaitNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
                                                 hipEvent_t event) {
  return done(set_clones_event(WAIT, exec, node, event));
}

/* Memory of a graph: at one address, for as long as a node says so. */
hipError_t block_work(size_t size, Work *work) {
  Block *block = calloc(1, sizeof *block);
  *work = (Work){ALLOCATE, .block = block};
  if (!block) return hipErrorOutOfMemory;
  block->size = size, block->users = 1;
  hipError_t error = allocate(&block->address, size, 0, false, NULL);
  if (error)
    free(block), work->kind = NOTHING;
  else
    give_to_graph(block->address);
  return error;
}

/* hipMemPoolProps and hipMemAllocNodeParams */
typedef struct {
  int kind, handles, location_kind, location;
  void *security;
  size_t most;
  unsigned char reserved[56];
} PoolProps;
typedef struct {
  PoolProps pool;
  const void *access;
  size_t access_count, size;
  void *address;
} AllocParams;

API hipError_t hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t graph,
                                       const hipGraphNode_t *after, size_t count,
                                       AllocParams *params) {
  Work work = {NOTHING};
  hipError_t error = params && params->size ? block_work(params->size, &work)
                                            : hipErrorInvalidValue;
  if (!error) error = put_node(node, graph, after, count, &work);
  if (!error) params->address = work.block->address;
  lock();
  free_work(&work);
  unlock();
  return done(error);
}
API hipError_t hipGraphMemAllocNodeGetParams(hipGraphNode_t node, AllocParams *params) {
  Work work;
  hipError_t error = params ? look_at(node, ALLOCATE, &work) : hipErrorInvalidValue;
  if (!error)
    *params = (AllocParams){.size = work.block->size, .address = work.block->address};
  return done(error);
}
API hipError_t hipGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t graph,
                                      const hipGraphNode_t *after, size_t count, void *address) {
  Work work = {FREE, .freed = address};
  Allocation found;
  hipError_t error = find(&found, address);
  return done(error ? error : put_node(node, graph, after, count, &work));
}
API hipError_t hipDrvGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t graph,
                                         const hipGraphNode_t *after, size_t count,
                                         void *address) {
  return hipGraphAddMemFreeNode(node, graph, after, count, address);
}
API hipError_t hipGraphMemFreeNodeGetParams(hipGraphNode_t node, void *address) {
  Work work;
  hipError_t error = address ? look_at(node, FREE, &work) : hipErrorInvalidValue;
  if (!error) memcpy(address, &work.freed, sizeof work.freed);
  return done(error);
}

/* Memory of graphs is counted with all other. */
API hipError_t hipDeviceGetGraphMemAttribute(int number, int attribute, void *value) {
  hipError_t error = value && attribute >= 0 && attribute < 4 ? device_exists(number)
                                                              : hipErrorInvalidValue;
  if (!error) *(uint64_t *)value = 0;
  return done(error);
}
API hipError_t hipDeviceSetGraphMemAttribute(int number, int attribute, void *value) {
  bool settable = value && (attribute == 1 || attribute == 3) && !*(uint64_t *)value;
  return done(settable ? device_exists(number) : hipErrorInvalidValue);
}
API hipError_t hipDeviceGraphMemTrim(int number) { return done(device_exists(number)); }

/* hipGraphNodeParams: a kind, and at byte 16 the structure of that kind. */
typedef struct {
  int kind, reserved[3];
  char params[232];
  long long last;
} AnyParams;
typedef struct {
  int flags, reserved[3];
  Copy copy;
} AnyCopy;

API hipError_t hipGraphAddNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                               size_t count, AnyParams *any) {
  if (!any) return done(hipErrorInvalidValue);
  void *params = any->params, *handle;
  memcpy(&handle, params, sizeof handle);
  switch (any->kind) {
  case KERNEL: return hipGraphAddKernelNode(node, graph, after, count, params);
  case COPY:
    return hipGraphAddMemcpyNode(node, graph, after, count, &((AnyCopy *)params)->copy);
  case FILL: return hipGraphAddMemsetNode(node, graph, after, count, params);
  case HOST_CALL: return hipGraphAddHostNode(node, graph, after, count, params);
  case CHILD: return hipGraphAddChildGraphNode(node, graph, after, count, handle);
  case NOTHING: return hipGraphAddEmptyNode(node, graph, after, count);
  case WAIT: return hipGraphAddEventWaitNode(node, graph, after, count, handle);
  case RECORD: return hipGraphAddEventRecordNode(node, graph, after, count, handle);
  case ALLOCATE: return hipGraphAddMemAllocNode(node, graph, after, count, params);
  case FREE: return hipGraphAddMemFreeNode(node, graph, after, count, handle);
  }
  explain("hipGraphAddNode: nodes of kind %d are not emulated", any->kind);
  return done(hipErrorNotSupported);
}
API hipError_t hipGraphNodeSetParams(hipGraphNode_t node, AnyParams *any) {
  if (!any) return done(hipErrorInvalidValue);
  void *params = any->params, *handle;
  memcpy(&handle, params, sizeof handle);
  switch (any->kind) {
  case KERNEL: return hipGraphKernelNodeSetParams(node, params);
  case COPY: return hipGraphMemcpyNodeSetParams(node, &((AnyCopy *)params)->copy);
  case FILL: return hipGraphMemsetNodeSetParams(node, params);
  case HOST_CALL: return hipGraphHostNodeSetParams(node, params);
  case WAIT: return hipGraphEventWaitNodeSetEvent(node, handle);
  case RECORD: return hipGraphEventRecordNodeSetEvent(node, handle);
  }
  return done(hipErrorInvalidValue);
}
API hipError_t hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                         AnyParams *any) {
  if (!any) return done(hipErrorInvalidValue);
  void *params = any->params, *handle;
  memcpy(&handle, params, sizeof handle);
  switch (any->kind) {
  case KERNEL: return hipGraphExecKernelNodeSetParams(exec, node, params);
  case COPY: return hipGraphExecMemcpyNodeSetParams(exec, node, &((AnyCopy *)params)->copy);
  case FILL: return hipGraphExecMemsetNodeSetParams(exec, node, params);
  case HOST_CALL: return hipGraphExecHostNodeSetParams(exec, node, params);
  case CHILD: return hipGraphExecChildGraphNodeSetParams(exec, node, handle);
  case WAIT: return hipGraphExecEventWaitNodeSetEvent(exec, node, handle);
  case RECORD: return hipGraphExecEventRecordNodeSetEvent(exec, node, handle);
  }
  return done(hipErrorInvalidValue);
}

/* What a launch is told beside its sizes: none of it changes what an emulated kernel does. */
static hipError_t any_kernel(hipGraphNode_t node, const void *value) {
  Work work;
  return value ? look_at(node, KERNEL, &work) : hipErrorInvalidValue;
}
API hipError_t hipGraphKernelNodeSetAttribute(hipGraphNode_t node, int attribute,
                                              const void *value) {
  hipError_t error = any_kernel(node, value);
  return done(error || (attribute >= 1 && attribute <= 10) ? error : hipErrorInvalidValue);
}
API hipError_t hipGraphKernelNodeGetAttribute(hipGraphNode_t node, int attribute, void *value) {
  hipError_t error = any_kernel(node, value);
  if (!error && (attribute < 1 || attribute > 10)) error = hipErrorInvalidValue;
  if (!error) memset(value, 0, 64);
  return done(error);
}
API hipError_t hipGraphKernelNodeCopyAttributes(hipGraphNode_t from, hipGraphNode_t to) {
  hipError_t error = any_kernel(from, from);
  return done(error ? error : any_kernel(to, to));
}
