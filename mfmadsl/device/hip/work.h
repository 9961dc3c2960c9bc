/* What a stream is asked to do, and what a node of a graph does: the same, now or later. */
#pragma once
#include "runtime.h"

/* HIP's numbers of the kinds of nodes. */
typedef enum {
  KERNEL,
  COPY,
  FILL,
  HOST_CALL,
  CHILD,
  NOTHING,
  WAIT,
  RECORD,
  ALLOCATE = 10,
  FREE,
} WorkKind;

typedef struct {
  size_t width, height, depth;
} Extent;
typedef struct {
  size_t x, y, z;
} Position;
typedef struct {
  void *pointer;
  size_t pitch, width, height;
} Pitched;
typedef struct Array *hipArray_t;

/* hipMemcpy3DParms: where an array takes part, widths and positions count its elements. */
typedef struct {
  hipArray_t from_array;
  Position from_position;
  Pitched from;
  hipArray_t to_array;
  Position to_position;
  Pitched to;
  Extent extent;
  int kind;
} Copy;

/* hipMemsetParams: `width` elements in each of `height` rows, and of these as many slices. */
typedef struct {
  void *to;
  uint32_t element;
  size_t height, pitch;
  uint32_t value;
  size_t width;
} FillRows;
typedef struct {
  FillRows rows;
  size_t slice, depth;
} Fill;

/* `values` point into the kernel argument segment, which follows them in memory. */
typedef struct {
  hipFunction_t function;
  dim3 grid, block;
  uint32_t lds_bytes;
  void **values;
  char *segment;
} KernelCall;

typedef struct {
  void (*function)(void *);
  void *data;
} HostCall;

typedef struct Graph *hipGraph_t;
/* Memory of a graph, and how many nodes name it. */
typedef struct {
  void *address;
  size_t size, users;
} Block;

typedef struct {
  WorkKind kind;
  union {
    KernelCall kernel;
    Copy copy;
    Fill fill;
    HostCall host;
    hipGraph_t child;
    hipEvent_t event;
    Block *block; /* of ALLOCATE */
    void *freed;  /* of FREE */
  };
} Work;

/* Do it now. */
hipError_t perform(const Work *work, hipStream_t stream);
/* Do it, or remember it where the stream captures. */
hipError_t submit(const Work *work, hipStream_t stream);
/* Another one with memory of its own; `lock` is held. */
hipError_t clone_work(Work *made, const Work *work);
void free_work(Work *work);

/* copy.c, fill.c and kernel.c */
hipError_t perform_copy(const Copy *copy, hipStream_t stream);
hipError_t check_copy(const Copy *copy);
hipError_t perform_fill(const Fill *fill, hipStream_t stream);
hipError_t check_fill(const Fill *fill);
hipError_t run_kernel(const KernelCall *call, hipStream_t stream);
/* A call with its arguments gathered; `free_work` frees them. */
hipError_t kernel_work(Work *work, hipFunction_t function, dim3 grid, dim3 block,
                       uint32_t lds_bytes, void **values, void **extra);
hipError_t clone_call(KernelCall *made, const KernelCall *call);
/* As many bytes, one after another. */
Copy plain_copy(void *to, const void *from, size_t size, int kind);

/* array.c: the bytes of an element, and where one lies. */
hipError_t array_place(hipArray_t array, Position at, Extent extent, Pitched *place,
                       size_t *element);

/* graph.c */
hipError_t run_graph(hipGraph_t graph, hipStream_t stream);
hipError_t copy_graph(hipGraph_t *made, hipGraph_t graph); /* `lock` is held */
void free_graph(hipGraph_t graph);        /* `lock` is held */

/* HIP_MEMCPY3D, the driver's words for a copy. */
typedef struct {
  size_t x, y, z, level;
  int type;
  const void *host;
  void *device;
  hipArray_t array;
  size_t pitch, height;
} DriverSide;
typedef struct {
  DriverSide from, to;
  size_t width, height, depth;
} DriverCopy;
hipError_t driver_copy(const DriverCopy *given, Copy *copy);
DriverCopy as_driver_copy(const Copy *copy);

/* graph_other.c: memory of a graph, in some work that `free_work` frees. */
hipError_t block_work(size_t size, Work *work);
