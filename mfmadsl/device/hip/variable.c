/* Variables of the device that a program names by those of the host that stand for them, and copies
   from and to them, now or as nodes of a graph. */
#include "stream.h"

API hipError_t hipGetSymbolAddress(void **address, const void *symbol) {
  return done(address ? find_symbol(address, NULL, symbol) : hipErrorInvalidValue);
}
API hipError_t hipGetSymbolSize(size_t *size, const void *symbol) {
  void *address;
  return done(size ? find_symbol(&address, size, symbol) : hipErrorInvalidValue);
}

/* Some bytes of a variable. */
static hipError_t part_of(void **place, const void *symbol, size_t size, size_t offset) {
  size_t whole;
  void *start;
  hipError_t error = find_symbol(&start, &whole, symbol);
  if (!error && (offset > whole || size > whole - offset)) error = hipErrorInvalidValue;
  if (!error) *place = (char *)start + offset;
  return error;
}

static hipError_t copy_to(Copy *copy, const void *symbol, const void *from, size_t size,
                          size_t offset, int kind) {
  void *place;
  hipError_t error = part_of(&place, symbol, size, offset);
  if (!error) *copy = plain_copy(place, from, size, kind);
  return error;
}
static hipError_t copy_from(Copy *copy, void *to, const void *symbol, size_t size, size_t offset,
                            int kind) {
  void *place;
  hipError_t error = part_of(&place, symbol, size, offset);
  if (!error) *copy = plain_copy(to, place, size, kind);
  return error;
}

hipError_t hipMemcpy3DAsync(const Copy *given, hipStream_t stream);

API hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size,
                                      size_t offset, int kind, hipStream_t stream) {
  Copy copy;
  hipError_t error = copy_to(&copy, symbol, from, size, offset, kind);
  return error ? done(error) : hipMemcpy3DAsync(&copy, stream);
}
PER_THREAD(hipMemcpyToSymbolAsync);
API hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
                                 int kind) {
  return hipMemcpyToSymbolAsync(symbol, from, size, offset, kind, NULL);
}
PER_THREAD(hipMemcpyToSymbol);
API hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset,
                                        int kind, hipStream_t stream) {
  Copy copy;
  hipError_t error = copy_from(&copy, to, symbol, size, offset, kind);
  return error ? done(error) : hipMemcpy3DAsync(&copy, stream);
}
PER_THREAD(hipMemcpyFromSymbolAsync);
API hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset,
                                   int kind) {
  return hipMemcpyFromSymbolAsync(to, symbol, size, offset, kind, NULL);
}
PER_THREAD(hipMemcpyFromSymbol);

API hipError_t hipGraphAddMemcpyNodeToSymbol(hipGraphNode_t *node, hipGraph_t graph,
                                             const hipGraphNode_t *after, size_t count,
                                             const void *symbol, const void *from, size_t size,
                                             size_t offset, int kind) {
  Copy copy;
  hipError_t error = copy_to(&copy, symbol, from, size, offset, kind);
  return error ? done(error) : hipGraphAddMemcpyNode(node, graph, after, count, &copy);
}
API hipError_t hipGraphAddMemcpyNodeFromSymbol(hipGraphNode_t *node, hipGraph_t graph,
                                               const hipGraphNode_t *after, size_t count, void *to,
                                               const void *symbol, size_t size, size_t offset,
                                               int kind) {
  Copy copy;
  hipError_t error = copy_from(&copy, to, symbol, size, offset, kind);
  return error ? done(error) : hipGraphAddMemcpyNode(node, graph, after, count, &copy);
}
API hipError_t hipGraphMemcpyNodeSetParamsToSymbol(hipGraphNode_t node, const void *symbol,
                                                   const void *from, size_t size, size_t offset,
                                                   int kind) {
  Copy copy;
  hipError_t error = copy_to(&copy, symbol, from, size, offset, kind);
  return error ? done(error) : hipGraphMemcpyNodeSetParams(node, &copy);
}
API hipError_t hipGraphMemcpyNodeSetParamsFromSymbol(hipGraphNode_t node, void *to,
                                                     const void *symbol, size_t size,
                                                     size_t offset, int kind) {
  Copy copy;
  hipError_t error = copy_from(&copy, to, symbol, size, offset, kind);
  return error ? done(error) : hipGraphMemcpyNodeSetParams(node, &copy);
}
API hipError_t hipGraphExecMemcpyNodeSetParamsToSymbol(hipGraphExec_t exec, hipGraphNode_t node,
                                                       const void *symbol, const void *from,
                                                       size_t size, size_t offset, int kind) {
  Copy copy;
  hipError_t error = copy_to(&copy, symbol, from, size, offset, kind);
  return error ? done(error) : hipGraphExecMemcpyNodeSetParams(exec, node, &copy);
}
API hipError_t hipGraphExecMemcpyNodeSetParamsFromSymbol(hipGraphExec_t exec, hipGraphNode_t node,
                                                         void *to, const void *symbol, size_t size,
                                                         size_t offset, int kind) {
  Copy copy;
  hipError_t error = copy_from(&copy, to, symbol, size, offset, kind);
  return error ? done(error) : hipGraphExecMemcpyNodeSetParams(exec, node, &copy);
}
