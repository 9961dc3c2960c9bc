/* What the parts of this library share. It stands where libamdhip64.so stands and serves HIP's C
   interface (ROCm 6 and 7) on a machine without a GPU: memory is the host's, and kernels run in the
   emulator, a process of its own that shares it.

   Numbers and structures are those of HIP's public headers (hip/hip_runtime_api.h, ROCm 6 and 7).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef enum {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNotInitialized = 3,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidPitchValue = 12,
  hipErrorInvalidSymbol = 13,
  hipErrorInvalidDevicePointer = 17,
  hipErrorInvalidMemcpyDirection = 21,
  hipErrorMissingConfiguration = 52,
  hipErrorInvalidDeviceFunction = 98,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidImage = 200,
  hipErrorInvalidContext = 201,
  hipErrorMapFailed = 205,
  hipErrorAlreadyMapped = 208,
  hipErrorNoBinaryForGpu = 209,
  hipErrorNotMapped = 211,
  hipErrorUnsupportedLimit = 215,
  hipErrorFileNotFound = 301,
  hipErrorOperatingSystem = 304,
  hipErrorInvalidHandle = 400,
  hipErrorIllegalState = 401,
  hipErrorNotFound = 500,
  hipErrorNotReady = 600,
  hipErrorIllegalAddress = 700,
  hipErrorLaunchOutOfResources = 701,
  hipErrorPeerAccessAlreadyEnabled = 704,
  hipErrorPeerAccessNotEnabled = 705,
  hipErrorHostMemoryAlreadyRegistered = 712,
  hipErrorHostMemoryNotRegistered = 713,
  hipErrorLaunchFailure = 719,
  hipErrorCooperativeLaunchTooLarge = 720,
  hipErrorNotSupported = 801,
  hipErrorStreamCaptureUnsupported = 900,
  hipErrorStreamCaptureInvalidated = 901,
  hipErrorStreamCaptureMerge = 902,
  hipErrorStreamCaptureUnmatched = 903,
  hipErrorStreamCaptureUnjoined = 904,
  hipErrorStreamCaptureIsolation = 905,
  hipErrorStreamCaptureImplicit = 906,
  hipErrorCapturedEvent = 907,
  hipErrorStreamCaptureWrongThread = 908,
  hipErrorGraphExecUpdateFailure = 910,
  hipErrorUnknown = 999,
} hipError_t;

typedef struct {
  uint32_t x, y, z;
} dim3;

/* error.c: each call of the interface ends with `done`, which remembers its error for
 * hipGetLastError. */
hipError_t done_in(const char *call, hipError_t error);
#define done(error) done_in(__func__, error)
/* For who asked to be told (`mfmadsl device --log`): why a call fails. */
void explain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* range.c: the addresses that this process and the emulator share. */
static const uint64_t RANGE = (uint64_t)1 << 40; /* pages that nobody writes take no memory */

/* Map the range; `*file` is its descriptor. */
hipError_t map_memory(int *file);
uint64_t memory_start(void);
bool within(const void *address);
/* Give pages back to the system; a later read of them finds zeros. */
void give_back(uint64_t offset, uint64_t size);

/* connection.c: the emulator. All of these but `ready` want `lock` held. */
typedef enum { HELLO = 1, LOAD, UNLOAD, FUNCTION, LAUNCH, RESIDENT, NAMES, PLACE, VARIABLE, NOTE, GUARD } Operation;

typedef struct {
  int64_t memory_bytes, compute_units, wave_size, max_threads, lds_bytes, registers,
      threads_of_unit, clock_khz, l2_bytes, major, minor, dies, reserved_bytes, models_time, count,
      sanitizes;
  char name[64], arch[64];
} Device;

extern Device device;

void lock(void);
void unlock(void);
/* The emulator is there, and this process may use it; else the error that says why not. */
hipError_t ready(void);
/* One request and its reply, of which up to `room` bytes are kept; `*got` is how many there were.
 */
hipError_t ask(Operation operation, const void *body, size_t size, void *reply, size_t room,
               size_t *got);
/* As `ask`, with the request in two parts. */
hipError_t ask2(Operation operation, const void *head, size_t head_size, const void *body,
                size_t size, void *reply, size_t room, size_t *got);

/* device.c: devices are alike, and count from 0. */
enum { MOST_DEVICES = 16 };
enum { LARGEST_GRID = 2147483647, LARGEST_GRID_YZ = 65535 };
hipError_t device_exists(int number);
/* The one that this thread works with. */
int current_device(void);
/* Whether kernels of one device may reach what lies on another. */
bool reaches(int number, int other);
/* How often that has changed. */
uint64_t peer_changes(void);

/* memory.c */
typedef struct Pool *hipMemPool_t;
typedef struct {
  uint64_t address, size;
  uint32_t flags;
  int device;
  bool host, mapped; /* `mapped` by virtual.c, which knows who may reach it */
  bool of_graph, absent; /* a graph keeps the place of what is freed, for its next run */
  hipMemPool_t pool;
} Allocation;

hipError_t allocate(void **pointer, size_t size, uint32_t flags, bool host, hipMemPool_t pool);
hipError_t release(void *pointer, bool host);
/* Let a graph have memory: who frees it makes it `absent`, until it comes back. */
void give_to_graph(void *pointer);
hipError_t come_back(void *pointer);
/* Free what a graph has, absent or not. */
void release_of_graph(void *pointer);
/* Free what a device has; of several, not what is mapped to virtual addresses. */
void release_those_of(int number);
/* The allocation that holds these bytes, or NULL; `lock` is held. */
const Allocation *holding(const void *address, size_t size);
/* An allocation that is looked at after the lock is given back. */
hipError_t find(Allocation *found, const void *pointer);
/* All of them, in the order of their addresses, and how often that list has changed; `lock` is
 * held. */
const Allocation *allocations(size_t *count, uint64_t *version);
/* Take the place of all that is mapped in a range of addresses; `lock` is held. */
hipError_t replace_mapped(uint64_t start, uint64_t size, const Allocation *mapped, size_t count);
/* Bytes that are taken on a device; `lock` is held. */
uint64_t taken(int number);
/* Take or give back bytes of a device beside its allocations; `lock` is held. */
bool take(int number, int64_t bytes);
/* The first address that no allocation of hipMalloc has: virtual.c has those from there on. */
uint64_t virtual_start(void);
uint64_t whole_pages(uint64_t size);

/* pool.c */
void pool_counts(hipMemPool_t pool, int64_t bytes);
void forget_pools(void);

/* virtual.c */
bool mapped_for(uint64_t address, int number);
void forget_virtual(void);

/* registered.c */
bool is_registered(const void *pointer, uint64_t size, unsigned *flags);

/* managed.c */
void forget_wishes(uint64_t address);

/* stream.c */
typedef struct Stream *hipStream_t;
typedef struct Event *hipEvent_t;
bool is_stream(hipStream_t stream);
/* Ready, and a stream; an error of a launch is told by whoever waits. */
hipError_t usable(hipStream_t stream);
/* The device of a stream. */
int device_of(hipStream_t stream);
bool is_event(hipEvent_t event);
hipError_t record(hipEvent_t event, hipStream_t stream);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
/* What a launch takes in the model of the chip, in nanoseconds; `lock` is held. */
void spend(uint64_t nanoseconds);
/* Whether a launch on a device has failed: then so does all that waits for it. */
hipError_t fault(int number);
void set_fault(int number, hipError_t error);
void forget_fault(int number);

/* note.c: what streams and the host do, told to the emulator where it looks for accesses that
   nothing orders; `session.py` has the other half. These take `lock` by themselves. */
typedef enum {
  STREAM_MADE = 1, /* `other`: its flags */
  STREAM_GONE,
  RECORDED, /* `other`: the event, as in the next three */
  AWAITED,
  EVENT_GONE,
  HOST_AWAITED_EVENT,
  HOST_AWAITED_STREAM,
  HOST_AWAITED_DEVICE,
  EXCHANGED, /* words or calls that host and streams may tell each other things by */
  COPIED,    /* `other`: whether the host may count on it being done */
  FILLED,    /* likewise */
  ALLOCATED, /* by the host; */
  FREED,
  ALLOCATED_ON, /* and in the order of a stream */
  FREED_ON,
  WRITTEN, /* by whom nobody sees */
  GRAPH_BEGINS,
  NODE_BEGINS, /* `other`: the node */
  NODE_AFTER,  /* `other`: one that this node comes after */
  GRAPH_ENDS,
  RESET,
  TOUCHED, /* by the host: the address */
} NoteKind;
/* Bytes, rows of them a pitch apart, and slices of these. */
typedef struct {
  uint64_t start, width, rows, pitch, slices, slice;
} Region;
void note(NoteKind kind, hipStream_t stream, uint64_t other);
void note_memory(NoteKind kind, hipStream_t stream, uint64_t other, Region to, Region from);
Region bytes_at(const void *pointer, size_t size);
void tell_touch(uint64_t address);

/* guard.c: the host's own accesses to memory that it shares with kernels. */
void memory_is_shared(void);
void tell_touches(void);
/* Look out for those that would come too early now. */
void guard(void);
/* Between these, accesses are this library's. */
void host_access_begins(void);
void host_access_ends(void);

/* module.c, kernel.c and program.c */
typedef struct Module *hipModule_t;
typedef struct Function *hipFunction_t;
hipError_t load_image(hipModule_t *module, const void *image);
hipError_t load_file(hipModule_t *module, const char *path);
hipError_t unload(hipModule_t module);
hipError_t find_function(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t launch(hipFunction_t function, dim3 grid, dim3 block, uint32_t lds_bytes,
                  hipStream_t stream, void **values, void **extra);
/* The kernel whose stub a program that hipcc compiled has at an address. */
hipError_t function_of(hipFunction_t *function, const void *stub);
/* Where a variable of a module lies, or of a program that hipcc compiled, by its shadow. */
hipError_t find_variable(void **address, size_t *size, hipModule_t module, const char *name);
hipError_t find_symbol(void **address, size_t *size, const void *shadow);
/* A kernel that is named by either. */
hipError_t any_function(hipFunction_t *function, const void *named);

/* A name that HIP has for what is done by default on a thread's own stream, which here is the same
 * as that of all. */
#define PER_THREAD(name)                                                                           \
  extern __typeof__(name) name##_spt __attribute__((alias(#name), visibility("default")))
