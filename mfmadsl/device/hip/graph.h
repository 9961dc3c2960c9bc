/* Graphs: nodes that do some work after others have done theirs. */
#pragma once
#include "work.h"

typedef struct Node *hipGraphNode_t;
typedef struct Exec *hipGraphExec_t;

/* Nodes without doubles, in the order in which they came. */
typedef struct {
  hipGraphNode_t *node;
  size_t count, room;
} Nodes;

struct Node {
  Work work;
  hipGraph_t graph;
  Nodes after;              /* those whose work comes first */
  hipGraphNode_t copied;    /* the node that this one is a clone of; it may be gone */
  bool disabled;            /* of a graph that runs */
};

struct Graph {
  Nodes nodes;
  struct Kept *kept; /* objects of the program that go with it */
  hipGraph_t copied; /* the graph that this one is a clone of; it may be gone */
  hipGraph_t next;   /* of all that there are */
  bool inner;        /* that of a node, or of a graph that runs: nobody else destroys it */
};

/* graph_exec.c */
void release_kept(hipGraph_t graph);

/* All of these want `lock` held. */
bool is_graph(hipGraph_t graph);
bool is_node(hipGraphNode_t node);
hipGraph_t make_graph(bool inner);
bool among(const Nodes *nodes, hipGraphNode_t node);
bool append(Nodes *nodes, hipGraphNode_t node); /* false where there is no memory */
/* A node that does a clone of some work. */
hipError_t add_node(hipGraphNode_t *made, hipGraph_t graph, const hipGraphNode_t *after,
                    size_t count, const Work *work);
/* The nodes, each behind those whose work comes first; false where they wait in a circle. */
bool in_order(hipGraph_t graph, Nodes *order);
/* Up to `*count` of the nodes, or where there is no room for any, how many there are. */
hipError_t hand_out(const Nodes *nodes, hipGraphNode_t *room, size_t *count);
/* Put a clone of some work in the place of a node's. */
hipError_t change_work(hipGraphNode_t node, const Work *work);
/* A node of a graph that runs, by the node that it is a clone of; NULL if there is none. */
hipGraphNode_t node_of(hipGraphExec_t exec, hipGraphNode_t copied);

/* graph_node.c; these take `lock` by themselves. */
hipError_t put_node(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                    size_t count, const Work *work);
/* The work of a node of some kind. */
hipError_t look_at(hipGraphNode_t node, WorkKind kind, Work *work);
/* Change a node of a graph, or where there is an `exec`, the clone of it that runs. */
hipError_t change_node(hipGraphExec_t exec, hipGraphNode_t node, const Work *work);
/* As that, where there has to be one. */
hipError_t change_clone(hipGraphExec_t exec, hipGraphNode_t node, const Work *work);

/* hipKernelNodeParams; the function is a kernel's handle or its stub. */
typedef struct {
  dim3 block;
  void **extra;
  void *function;
  dim3 grid;
  void **values;
  unsigned lds_bytes;
} KernelParams;

/* What `hipGraphAddNode` and its like choose from, beside those of their own file. */
hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph,
                                 const hipGraphNode_t *after, size_t count,
                                 const KernelParams *params);
hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph,
                                 const hipGraphNode_t *after, size_t count, const Copy *params);
hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                 const hipGraphNode_t *after, size_t count, const FillRows *rows);
hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                               size_t count, const HostCall *params);
hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const KernelParams *params);
hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const Copy *params);
hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const FillRows *rows);
hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const HostCall *params);
hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const KernelParams *params);
hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const Copy *params);
hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const FillRows *rows);
hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                         const HostCall *params);
