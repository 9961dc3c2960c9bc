/* The nodes of graphs by their kinds: added, looked at, and changed, in a graph or in one that
   runs. */
#include "graph.h"

#include <stdlib.h>

hipError_t put_node(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                      size_t count, const Work *work) {
  if (!node) return hipErrorInvalidValue;
  *node = NULL;
  lock();
  hipError_t error = add_node(node, graph, after, count, work);
  unlock();
  return error;
}

/* The work of a node of some kind. */
hipError_t look_at(hipGraphNode_t node, WorkKind kind, Work *work) {
  lock();
  hipError_t error = is_node(node) && node->work.kind == kind ? hipSuccess : hipErrorInvalidValue;
  if (!error) *work = node->work;
  unlock();
  return error;
}

/* Change a node of a graph, or where there is an `exec`, the clone of it that runs. */
hipError_t change_node(hipGraphExec_t exec, hipGraphNode_t node, const Work *work) {
  lock();
  hipGraphNode_t own = exec ? node_of(exec, node) : is_node(node) ? node : NULL;
  hipError_t error = own ? change_work(own, work) : hipErrorInvalidValue;
  unlock();
  return error;
}
hipError_t change_clone(hipGraphExec_t exec, hipGraphNode_t node, const Work *work) {
  return exec ? change_node(exec, node, work) : hipErrorInvalidValue;
}

/* Kernels. */
static hipError_t kernel_of(const KernelParams *params, Work *work) {
  hipFunction_t function;
  hipError_t error = params ? any_function(&function, params->function) : hipErrorInvalidValue;
  if (error) return error;
  return kernel_work(work, function, params->grid, params->block, params->lds_bytes,
                     params->values, params->extra);
}
API hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const KernelParams *params) {
  Work work = {NOTHING};
  hipError_t error = kernel_of(params, &work);
  if (!error) error = put_node(node, graph, after, count, &work);
  free_work(&work);
  return done(error);
}
API hipError_t hipGraphKernelNodeGetParams(hipGraphNode_t node, KernelParams *params) {
  Work work;
  hipError_t error = params ? look_at(node, KERNEL, &work) : hipErrorInvalidValue;
  if (!error) {
    const KernelCall *call = &work.kernel;
    *params = (KernelParams){call->block, NULL, call->function, call->grid, call->values,
                             call->lds_bytes};
  }
  return done(error);
}
static hipError_t change_kernel(hipGraphExec_t exec, hipGraphNode_t node,
                                const KernelParams *params) {
  Work work = {NOTHING};
  hipError_t error = kernel_of(params, &work);
  if (!error) error = change_node(exec, node, &work);
  free_work(&work);
  return error;
}
API hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const KernelParams *params) {
  return done(change_kernel(NULL, node, params));
}
API hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                               const KernelParams *params) {
  return done(exec ? change_kernel(exec, node, params) : hipErrorInvalidValue);
}

/* Copies. */
static hipError_t copy_of(const Copy *params, Work *work) {
  if (!params) return hipErrorInvalidValue;
  *work = (Work){COPY, .copy = *params};
  return check_copy(params);
}
API hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const Copy *params) {
  Work work;
  hipError_t error = copy_of(params, &work);
  return done(error ? error : put_node(node, graph, after, count, &work));
}
API hipError_t hipGraphMemcpyNodeGetParams(hipGraphNode_t node, Copy *params) {
  Work work;
  hipError_t error = params ? look_at(node, COPY, &work) : hipErrorInvalidValue;
  if (!error) *params = work.copy;
  return done(error);
}
API hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const Copy *params) {
  Work work;
  hipError_t error = copy_of(params, &work);
  return done(error ? error : change_node(NULL, node, &work));
}
API hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                               const Copy *params) {
  Work work;
  hipError_t error = copy_of(params, &work);
  return done(error ? error : change_clone(exec, node, &work));
}
API hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph,
                                       const hipGraphNode_t *after, size_t count, void *to,
                                       const void *from, size_t size, int kind) {
  Copy copy = plain_copy(to, from, size, kind);
  return hipGraphAddMemcpyNode(node, graph, after, count, &copy);
}
API hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void *to, const void *from,
                                             size_t size, int kind) {
  Copy copy = plain_copy(to, from, size, kind);
  return hipGraphMemcpyNodeSetParams(node, &copy);
}
API hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec, hipGraphNode_t node,
                                                 void *to, const void *from, size_t size,
                                                 int kind) {
  Copy copy = plain_copy(to, from, size, kind);
  return hipGraphExecMemcpyNodeSetParams(exec, node, &copy);
}

/* Copies as the driver's interface writes them: its structure has the same in other words. */
API hipError_t hipDrvGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph,
                                        const hipGraphNode_t *after, size_t count,
                                        const DriverCopy *params, void *context) {
  (void)context;
  Copy copy;
  hipError_t error = params ? driver_copy(params, &copy) : hipErrorInvalidValue;
  return error ? done(error) : hipGraphAddMemcpyNode(node, graph, after, count, &copy);
}
API hipError_t hipDrvGraphMemcpyNodeGetParams(hipGraphNode_t node, DriverCopy *params) {
  Work work;
  hipError_t error = params ? look_at(node, COPY, &work) : hipErrorInvalidValue;
  if (!error) *params = as_driver_copy(&work.copy);
  return done(error);
}
API hipError_t hipDrvGraphMemcpyNodeSetParams(hipGraphNode_t node, const DriverCopy *params) {
  Copy copy;
  hipError_t error = params ? driver_copy(params, &copy) : hipErrorInvalidValue;
  return error ? done(error) : hipGraphMemcpyNodeSetParams(node, &copy);
}
API hipError_t hipDrvGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                  const DriverCopy *params, void *context) {
  (void)context;
  Copy copy;
  hipError_t error = params ? driver_copy(params, &copy) : hipErrorInvalidValue;
  return error ? done(error) : hipGraphExecMemcpyNodeSetParams(exec, node, &copy);
}

/* Fills. */
static hipError_t fill_of(const FillRows *rows, Work *work) {
  if (!rows) return hipErrorInvalidValue;
  *work = (Work){FILL, .fill = {*rows, 0, 1}};
  return check_fill(&work->fill);
}
API hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                     const hipGraphNode_t *after, size_t count,
                                     const FillRows *rows) {
  Work work;
  hipError_t error = fill_of(rows, &work);
  return done(error ? error : put_node(node, graph, after, count, &work));
}
API hipError_t hipDrvGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph,
                                        const hipGraphNode_t *after, size_t count,
                                        const FillRows *rows, void *context) {
  (void)context;
  return hipGraphAddMemsetNode(node, graph, after, count, rows);
}
API hipError_t hipGraphMemsetNodeGetParams(hipGraphNode_t node, FillRows *rows) {
  Work work;
  hipError_t error = rows ? look_at(node, FILL, &work) : hipErrorInvalidValue;
  if (!error) *rows = work.fill.rows;
  return done(error);
}
API hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const FillRows *rows) {
  Work work;
  hipError_t error = fill_of(rows, &work);
  return done(error ? error : change_node(NULL, node, &work));
}
API hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                               const FillRows *rows) {
  Work work;
  hipError_t error = fill_of(rows, &work);
  return done(error ? error : change_clone(exec, node, &work));
}
API hipError_t hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                  const FillRows *rows, void *context) {
  (void)context;
  return hipGraphExecMemsetNodeSetParams(exec, node, rows);
}

/* Calls of the program's own functions. */
static hipError_t call_of(const HostCall *params, Work *work) {
  if (!params || !params->function) return hipErrorInvalidValue;
  *work = (Work){HOST_CALL, .host = *params};
  return hipSuccess;
}
API hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph,
                                   const hipGraphNode_t *after, size_t count,
                                   const HostCall *params) {
  Work work;
  hipError_t error = call_of(params, &work);
  return done(error ? error : put_node(node, graph, after, count, &work));
}
API hipError_t hipGraphHostNodeGetParams(hipGraphNode_t node, HostCall *params) {
  Work work;
  hipError_t error = params ? look_at(node, HOST_CALL, &work) : hipErrorInvalidValue;
  if (!error) *params = work.host;
  return done(error);
}
API hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const HostCall *params) {
  Work work;
  hipError_t error = call_of(params, &work);
  return done(error ? error : change_node(NULL, node, &work));
}
API hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                             const HostCall *params) {
  Work work;
  hipError_t error = call_of(params, &work);
  return done(error ? error : change_clone(exec, node, &work));
}
