/* Graphs that run: clones, whose nodes are named by those that they were cloned from. */
#include "stream.h"

#include <stdlib.h>

struct Exec {
  hipGraph_t graph;
  uint64_t flags;
  hipGraphExec_t next;
};

static hipGraphExec_t execs;

static bool is_exec(hipGraphExec_t exec) {
  for (hipGraphExec_t each = execs; each; each = each->next)
    if (each == exec) return true;
  return false;
}

hipGraphNode_t node_of(hipGraphExec_t exec, hipGraphNode_t copied) {
  if (!is_exec(exec) || !copied) return NULL;
  for (size_t i = 0; i < exec->graph->nodes.count; i++)
    if (exec->graph->nodes.node[i]->copied == copied) return exec->graph->nodes.node[i];
  return NULL;
}

static hipError_t instantiate(hipGraphExec_t *exec, hipGraph_t graph, uint64_t flags) {
  enum { KNOWN = 1 | 2 | 8 }; /* all but launches by the device itself */
  if (!exec || flags & ~(uint64_t)(KNOWN | 4)) return hipErrorInvalidValue;
  *exec = NULL;
  if (flags & 4) {
    explain("a graph that kernels launch is not emulated");
    return hipErrorNotSupported;
  }
  lock();
  hipError_t error = is_graph(graph) ? hipSuccess : hipErrorInvalidValue;
  Nodes order = {0};
  if (!error && !in_order(graph, &order)) error = hipErrorInvalidValue;
  free(order.node);
  hipGraphExec_t made = error ? NULL : calloc(1, sizeof *made);
  if (!error && !made) error = hipErrorOutOfMemory;
  if (!error) error = copy_graph(&made->graph, graph);
  if (error)
    free(made);
  else
    made->flags = flags, made->next = execs, *exec = execs = made;
  unlock();
  return error;
}

API hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *node,
                                   char *log, size_t log_bytes) {
  if (node) *node = NULL;
  if (log && log_bytes) *log = 0;
  return done(instantiate(exec, graph, 0));
}
API hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *exec, hipGraph_t graph,
                                            unsigned long long flags) {
  return done(instantiate(exec, graph, flags));
}
typedef struct {
  hipGraphNode_t node;
  unsigned long long flags;
  int result;
  hipStream_t stream;
} InstantiateParams;
API hipError_t hipGraphInstantiateWithParams(hipGraphExec_t *exec, hipGraph_t graph,
                                             InstantiateParams *params) {
  if (!params) return done(hipErrorInvalidValue);
  hipError_t error = instantiate(exec, graph, params->flags);
  params->node = NULL;
  params->result = !error ? 0 : error == hipErrorNotSupported ? 3 : 1;
  return done(error);
}

/* The graph of one that runs, for as long as it takes. */
static hipError_t graph_of(hipGraph_t *graph, hipGraphExec_t exec) {
  lock();
  hipError_t error = is_exec(exec) ? hipSuccess : hipErrorInvalidValue;
  if (!error) *graph = exec->graph;
  unlock();
  return error;
}

API hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  Work work = {CHILD};
  hipError_t error = usable(stream);
  if (!error) error = graph_of(&work.child, exec);
  return done(error ? error : submit(&work, stream));
}
PER_THREAD(hipGraphLaunch);
API hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  hipGraph_t graph;
  hipError_t error = usable(stream);
  return done(error ? error : graph_of(&graph, exec));
}

API hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  hipError_t error = hipErrorInvalidValue;
  lock();
  for (hipGraphExec_t *place = &execs; *place; place = &(*place)->next)
    if (*place == exec) {
      *place = exec->next;
      free_graph(exec->graph);
      free(exec);
      error = hipSuccess;
      break;
    }
  unlock();
  return done(error);
}
API hipError_t hipGraphExecGetFlags(hipGraphExec_t exec, unsigned long long *flags) {
  lock();
  hipError_t error = flags && is_exec(exec) ? hipSuccess : hipErrorInvalidValue;
  if (!error) *flags = exec->flags;
  unlock();
  return done(error);
}

/* hipGraphExecUpdateResult */
enum { UPDATED = 0, FAILED = 1, OTHER_TOPOLOGY = 2, OTHER_KIND = 3 };

static size_t place_of(const Nodes *nodes, hipGraphNode_t node) {
  size_t i = 0;
  while (i < nodes->count && nodes->node[i] != node) i++;
  return i;
}

/* What keeps a graph from taking the work of another one, and at which of its nodes. */
static int compared(const Nodes *own, const Nodes *other, hipGraphNode_t *at) {
  *at = NULL;
  if (own->count != other->count) return OTHER_TOPOLOGY;
  for (size_t i = 0; i < own->count; i++) {
    const Nodes *mine = &own->node[i]->after, *its = &other->node[i]->after;
    *at = other->node[i];
    if (own->node[i]->work.kind != other->node[i]->work.kind) return OTHER_KIND;
    if (mine->count != its->count) return OTHER_TOPOLOGY;
    for (size_t j = 0; j < mine->count; j++)
      if (!among(mine, own->node[place_of(other, its->node[j])])) return OTHER_TOPOLOGY;
  }
  *at = NULL;
  return UPDATED;
}

API hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *node,
                                  int *result) {
  hipGraphNode_t at = NULL;
  lock();
  int found = FAILED;
  hipError_t error = is_exec(exec) && is_graph(graph) ? hipSuccess : hipErrorInvalidValue;
  if (!error) {
    found = compared(&exec->graph->nodes, &graph->nodes, &at);
    if (found) error = hipErrorGraphExecUpdateFailure;
    for (size_t i = 0; !error && i < graph->nodes.count; i++) {
      hipGraphNode_t own = exec->graph->nodes.node[i];
      error = change_work(own, &graph->nodes.node[i]->work);
      own->copied = graph->nodes.node[i];
    }
  }
  if (node) *node = at;
  if (result) *result = found;
  unlock();
  return done(error);
}

API hipError_t hipGraphNodeSetEnabled(hipGraphExec_t exec, hipGraphNode_t node, unsigned enabled) {
  lock();
  hipGraphNode_t own = node_of(exec, node);
  hipError_t error = own && own->work.kind <= FILL ? hipSuccess : hipErrorInvalidValue;
  if (!error) own->disabled = !enabled;
  unlock();
  return done(error);
}
API hipError_t hipGraphNodeGetEnabled(hipGraphExec_t exec, hipGraphNode_t node,
                                      unsigned *enabled) {
  lock();
  hipGraphNode_t own = enabled ? node_of(exec, node) : NULL;
  hipError_t error = own && own->work.kind <= FILL ? hipSuccess : hipErrorInvalidValue;
  if (!error) *enabled = !own->disabled;
  unlock();
  return done(error);
}
