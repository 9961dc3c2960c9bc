/* What graphs are made of: nodes, and which comes after which. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hipGraph_t graphs;

bool is_graph(hipGraph_t graph) {
  for (hipGraph_t each = graphs; each; each = each->next)
    if (each == graph) return true;
  return false;
}

bool among(const Nodes *nodes, hipGraphNode_t node) {
  for (size_t i = 0; i < nodes->count; i++)
    if (nodes->node[i] == node) return true;
  return false;
}

bool is_node(hipGraphNode_t node) {
  for (hipGraph_t each = graphs; each; each = each->next)
    if (among(&each->nodes, node)) return true;
  return false;
}

bool append(Nodes *nodes, hipGraphNode_t node) {
  if (among(nodes, node)) return true;
  if (nodes->count == nodes->room) {
    size_t room = nodes->room ? 2 * nodes->room : 4;
    hipGraphNode_t *more = realloc(nodes->node, room * sizeof *more);
    if (!more) return false;
    nodes->node = more, nodes->room = room;
  }
  nodes->node[nodes->count++] = node;
  return true;
}

static void leave_out(Nodes *nodes, hipGraphNode_t node) {
  for (size_t i = 0; i < nodes->count; i++)
    if (nodes->node[i] == node) {
      memmove(nodes->node + i, nodes->node + i + 1, (--nodes->count - i) * sizeof node);
      return;
    }
}

hipError_t hand_out(const Nodes *nodes, hipGraphNode_t *room, size_t *count) {
  if (!count) return hipErrorInvalidValue;
  for (size_t i = 0; room && i < *count; i++) room[i] = i < nodes->count ? nodes->node[i] : NULL;
  if (!room || *count > nodes->count) *count = nodes->count;
  return hipSuccess;
}

hipGraph_t make_graph(bool inner) {
  hipGraph_t made = calloc(1, sizeof *made);
  if (made) made->inner = inner, made->next = graphs, graphs = made;
  return made;
}

static void free_node(hipGraphNode_t node) {
  free_work(&node->work);
  free(node->after.node);
  free(node);
}

void free_graph(hipGraph_t graph) {
  for (hipGraph_t *place = &graphs; *place; place = &(*place)->next)
    if (*place == graph) {
      *place = graph->next;
      break;
    }
  for (size_t i = 0; i < graph->nodes.count; i++) free_node(graph->nodes.node[i]);
  release_kept(graph);
  free(graph->nodes.node);
  free(graph);
}

hipError_t add_node(hipGraphNode_t *made, hipGraph_t graph, const hipGraphNode_t *after,
                    size_t count, const Work *work) {
  if (!is_graph(graph) || (count && !after)) return hipErrorInvalidValue;
  for (size_t i = 0; i < count; i++)
    if (!among(&graph->nodes, after[i])) return hipErrorInvalidValue;
  hipGraphNode_t node = calloc(1, sizeof *node);
  if (!node) return hipErrorOutOfMemory;
  node->graph = graph;
  hipError_t error = clone_work(&node->work, work);
  if (error) {
    free(node);
    return error;
  }
  bool room = append(&graph->nodes, node);
  for (size_t i = 0; i < count && room; i++) room = append(&node->after, after[i]);
  if (!room) {
    leave_out(&graph->nodes, node);
    free_node(node);
    return hipErrorOutOfMemory;
  }
  *made = node;
  return hipSuccess;
}

hipError_t change_work(hipGraphNode_t node, const Work *work) {
  Work made;
  if (node->work.kind != work->kind) return hipErrorInvalidValue;
  hipError_t error = clone_work(&made, work);
  if (error) return error;
  free_work(&node->work);
  node->work = made;
  return hipSuccess;
}

bool in_order(hipGraph_t graph, Nodes *order) {
  *order = (Nodes){0};
  for (size_t before = 0; order->count < graph->nodes.count; before = order->count) {
    for (size_t i = 0; i < graph->nodes.count; i++) {
      hipGraphNode_t node = graph->nodes.node[i];
      bool all = true;
      for (size_t j = 0; j < node->after.count && all; j++)
        all = among(order, node->after.node[j]);
      if (all && !append(order, node)) return false;
    }
    if (before == order->count) return false;
  }
  return true;
}

hipError_t copy_graph(hipGraph_t *copied, hipGraph_t graph) {
  hipGraph_t made = make_graph(true);
  hipError_t error = hipErrorOutOfMemory;
  if (!made) return error;
  made->copied = graph;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    hipGraphNode_t node = graph->nodes.node[i], copy;
    if ((error = add_node(&copy, made, NULL, 0, &node->work))) goto fail;
    copy->copied = node, copy->disabled = node->disabled;
  }
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const Nodes *after = &graph->nodes.node[i]->after;
    for (size_t j = 0; j < after->count; j++)
      for (size_t k = 0; k < graph->nodes.count; k++)
        if (graph->nodes.node[k] == after->node[j] &&
            !append(&made->nodes.node[i]->after, made->nodes.node[k])) {
          error = hipErrorOutOfMemory;
          goto fail;
        }
  }
  *copied = made;
  return hipSuccess;
fail:
  free_graph(made);
  return error;
}

hipError_t run_graph(hipGraph_t graph, hipStream_t stream) {
  Nodes order;
  lock();
  hipError_t error = in_order(graph, &order) ? hipSuccess : hipErrorInvalidValue;
  unlock();
  note(GRAPH_BEGINS, stream, 0);
  for (size_t i = 0; i < order.count && !error; i++) {
    hipGraphNode_t node = order.node[i];
    note(NODE_BEGINS, stream, (uint64_t)node);
    for (size_t j = 0; j < node->after.count; j++)
      note(NODE_AFTER, stream, (uint64_t)node->after.node[j]);
    if (!node->disabled) error = perform(&node->work, stream);
  }
  note(GRAPH_ENDS, stream, 0);
  free(order.node);
  return error;
}

API hipError_t hipGraphCreate(hipGraph_t *graph, unsigned flags) {
  hipError_t error = graph && !flags ? ready() : hipErrorInvalidValue;
  if (error) return done(error);
  lock();
  *graph = make_graph(false);
  unlock();
  return done(*graph ? hipSuccess : hipErrorOutOfMemory);
}
API hipError_t hipGraphDestroy(hipGraph_t graph) {
  lock();
  hipError_t error = is_graph(graph) && !graph->inner ? hipSuccess : hipErrorInvalidValue;
  if (!error) free_graph(graph);
  unlock();
  return done(error);
}
API hipError_t hipGraphClone(hipGraph_t *made, hipGraph_t graph) {
  if (!made) return done(hipErrorInvalidValue);
  lock();
  hipError_t error = is_graph(graph) ? hipSuccess : hipErrorInvalidValue;
  if (!error) {
    error = copy_graph(made, graph);
    if (!error) (*made)->inner = false;
  }
  unlock();
  return done(error);
}
API hipError_t hipGraphNodeFindInClone(hipGraphNode_t *found, hipGraphNode_t node,
                                       hipGraph_t clone) {
  if (!found) return done(hipErrorInvalidValue);
  hipError_t error = hipErrorInvalidValue;
  lock();
  for (size_t i = 0; is_graph(clone) && i < clone->nodes.count; i++)
    if (clone->nodes.node[i]->copied == node && node)
      *found = clone->nodes.node[i], error = hipSuccess;
  unlock();
  return done(error);
}

/* Edges, each from the node that comes first. */
static hipError_t change_edges(hipGraph_t graph, const hipGraphNode_t *from,
                               const hipGraphNode_t *to, size_t count, bool add) {
  hipError_t error = is_graph(graph) && (!count || (from && to)) ? hipSuccess
                                                                 : hipErrorInvalidValue;
  for (size_t i = 0; i < count && !error; i++) {
    bool both = among(&graph->nodes, from[i]) && among(&graph->nodes, to[i]) && from[i] != to[i];
    if (!both || among(&to[i]->after, from[i]) == add) error = hipErrorInvalidValue;
  }
  for (size_t i = 0; i < count && !error; i++)
    if (!add)
      leave_out(&to[i]->after, from[i]);
    else if (!append(&to[i]->after, from[i]))
      error = hipErrorOutOfMemory;
  return error;
}
API hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t *from,
                                       const hipGraphNode_t *to, size_t count) {
  lock();
  hipError_t error = change_edges(graph, from, to, count, true);
  unlock();
  return done(error);
}
API hipError_t hipGraphRemoveDependencies(hipGraph_t graph, const hipGraphNode_t *from,
                                          const hipGraphNode_t *to, size_t count) {
  lock();
  hipError_t error = change_edges(graph, from, to, count, false);
  unlock();
  return done(error);
}
API hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t *from, hipGraphNode_t *to,
                                size_t *count) {
  if (!count || !from != !to) return done(hipErrorInvalidValue);
  lock();
  hipError_t error = is_graph(graph) ? hipSuccess : hipErrorInvalidValue;
  size_t found = 0;
  for (size_t i = 0; !error && i < graph->nodes.count; i++) {
    hipGraphNode_t node = graph->nodes.node[i];
    for (size_t j = 0; j < node->after.count; j++, found++)
      if (from && found < *count) from[found] = node->after.node[j], to[found] = node;
  }
  for (size_t i = found; !error && from && i < *count; i++) from[i] = to[i] = NULL;
  if (!error && (!from || *count > found)) *count = found;
  unlock();
  return done(error);
}

API hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
  lock();
  hipError_t error = is_graph(graph) ? hand_out(&graph->nodes, nodes, count)
                                     : hipErrorInvalidValue;
  unlock();
  return done(error);
}
API hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
  Nodes roots = {0};
  lock();
  hipError_t error = is_graph(graph) ? hipSuccess : hipErrorInvalidValue;
  for (size_t i = 0; !error && i < graph->nodes.count; i++)
    if (!graph->nodes.node[i]->after.count && !append(&roots, graph->nodes.node[i]))
      error = hipErrorOutOfMemory;
  if (!error) error = hand_out(&roots, nodes, count);
  unlock();
  free(roots.node);
  return done(error);
}
API hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t *nodes,
                                           size_t *count) {
  lock();
  hipError_t error = is_node(node) ? hand_out(&node->after, nodes, count) : hipErrorInvalidValue;
  unlock();
  return done(error);
}
API hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t *nodes,
                                             size_t *count) {
  Nodes behind = {0};
  lock();
  hipError_t error = is_node(node) ? hipSuccess : hipErrorInvalidValue;
  for (size_t i = 0; !error && i < node->graph->nodes.count; i++) {
    hipGraphNode_t each = node->graph->nodes.node[i];
    if (among(&each->after, node) && !append(&behind, each)) error = hipErrorOutOfMemory;
  }
  if (!error) error = hand_out(&behind, nodes, count);
  unlock();
  free(behind.node);
  return done(error);
}
API hipError_t hipGraphNodeGetType(hipGraphNode_t node, int *type) {
  lock();
  hipError_t error = type && is_node(node) ? hipSuccess : hipErrorInvalidValue;
  if (!error) *type = node->work.kind;
  unlock();
  return done(error);
}
API hipError_t hipGraphDestroyNode(hipGraphNode_t node) {
  lock();
  hipError_t error = is_node(node) && !node->graph->inner ? hipSuccess : hipErrorInvalidValue;
  if (!error) {
    for (size_t i = 0; i < node->graph->nodes.count; i++)
      leave_out(&node->graph->nodes.node[i]->after, node);
    leave_out(&node->graph->nodes, node);
    free_node(node);
  }
  unlock();
  return done(error);
}

static const char *kind_name(WorkKind kind) {
  static const char *const NAMES[] = {"kernel", "memcpy", "memset",       "host",    "graph",
                                      "empty",  "wait",   "event record", [ALLOCATE] = "alloc",
                                      [FREE] = "free"};
  return NAMES[kind];
}
API hipError_t hipGraphDebugDotPrint(hipGraph_t graph, const char *path, unsigned flags) {
  (void)flags;
  if (!path) return done(hipErrorInvalidValue);
  lock();
  hipError_t error = is_graph(graph) ? hipSuccess : hipErrorInvalidValue;
  FILE *file = error ? NULL : fopen(path, "w");
  if (!error && !file) error = hipErrorOperatingSystem;
  if (file) {
    fputs("digraph graph_of_hip {\n", file);
    for (size_t i = 0; i < graph->nodes.count; i++) {
      hipGraphNode_t node = graph->nodes.node[i];
      fprintf(file, "  node_%zu [label=\"%zu: %s\"]\n", i, i, kind_name(node->work.kind));
      for (size_t j = 0; j < graph->nodes.count; j++)
        if (among(&node->after, graph->nodes.node[j]))
          fprintf(file, "  node_%zu -> node_%zu\n", j, i);
    }
    fputs("}\n", file);
    if (fclose(file)) error = hipErrorOperatingSystem;
  }
  unlock();
  return done(error);
}
