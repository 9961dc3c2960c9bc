/* Copies: of bytes, rows and slices of them. What is said to lie on a device must, all of it in one
   allocation. */
#include "stream.h"

#include <string.h>

enum {
  HOST_TO_HOST,
  HOST_TO_DEVICE,
  DEVICE_TO_HOST,
  DEVICE_TO_DEVICE,
  BY_ADDRESS,
  WITHOUT_UNITS = 1024
};

Copy plain_copy(void *to, const void *from, size_t size, int kind) {
  return (Copy){.from = {(void *)from, size, size, 1},
                .to = {to, size, size, 1},
                .extent = {size, 1, 1},
                .kind = kind};
}

/* One side: where its first byte lies, how far rows and slices lie apart, and all that it spans. */
typedef struct {
  char *start;
  size_t pitch, slice, span;
} Side;

static bool product(size_t a, size_t b, size_t *found) {
  return !__builtin_mul_overflow(a, b, found);
}
static bool sum(size_t a, size_t b, size_t *found) { return !__builtin_add_overflow(a, b, found); }

/* `width` is that of a row in bytes. */
static hipError_t side_of(hipArray_t array, Position at, Pitched place, Extent extent,
                          size_t width, Side *side) {
  if (array) {
    hipError_t error = array_place(array, at, extent, &place, NULL);
    if (error) return error;
    at = (Position){0};
  }
  if (!place.pointer) return hipErrorInvalidValue;
  bool one_row = extent.height == 1 && extent.depth == 1;
  if (!one_row && width > place.pitch) return hipErrorInvalidPitchValue;
  size_t height = place.height > extent.height ? place.height : extent.height, rows, slices, down;
  if (extent.depth > 1 && place.height < extent.height) return hipErrorInvalidValue;
  side->pitch = place.pitch;
  if (!product(place.pitch, height, &side->slice) ||
      !product(side->pitch, extent.height - 1, &rows) ||
      !product(side->slice, extent.depth - 1, &slices) || !sum(rows, slices, &side->span) ||
      !sum(side->span, width, &side->span) || !product(at.z, side->slice, &slices) ||
      !product(at.y, side->pitch, &down) || !sum(slices, down, &down) || !sum(down, at.x, &down))
    return hipErrorInvalidValue;
  side->start = (char *)place.pointer + down;
  return hipSuccess;
}

/* Nothing is copied where a width or height is zero, and nobody looks at the places then. */
static bool copies_nothing(const Copy *copy) {
  return !copy->extent.width || !copy->extent.height || !copy->extent.depth;
}

static hipError_t sides_of(const Copy *copy, Side *to, Side *from, size_t *width) {
  size_t element = 1, other = 1;
  Pitched unused;
  hipError_t error = hipSuccess;
  if (copy->from_array)
    error = array_place(copy->from_array, (Position){0}, (Extent){0}, &unused, &element);
  if (!error && copy->to_array)
    error = array_place(copy->to_array, (Position){0}, (Extent){0}, &unused, &other);
  if (error) return error;
  if (copy->from_array && copy->to_array && element != other) return hipErrorInvalidValue;
  if (!product(copy->extent.width, element > other ? element : other, width))
    return hipErrorInvalidValue;
  error = side_of(copy->to_array, copy->to_position, copy->to, copy->extent, *width, to);
  return error ? error
               : side_of(copy->from_array, copy->from_position, copy->from, copy->extent, *width,
                         from);
}

static hipError_t check_kind(int kind) {
  bool known = (kind >= HOST_TO_HOST && kind <= BY_ADDRESS) || kind == WITHOUT_UNITS;
  return known ? hipSuccess : hipErrorInvalidMemcpyDirection;
}

hipError_t check_copy(const Copy *copy) {
  Side to, from;
  size_t width;
  hipError_t error = check_kind(copy->kind);
  if (error || copies_nothing(copy)) return error;
  return sides_of(copy, &to, &from, &width);
}

static bool reachable(const Side *side, bool on_device, const char *what) {
  if (!on_device && !within(side->start)) return true;
  if (holding(side->start, side->span)) return true;
  if (is_registered(side->start, side->span, NULL)) return true;
  explain("%zu bytes at %p, the %s of a copy, are not within one allocation", side->span,
          side->start, what);
  return false;
}

/* Memory that a stream copies from or to while the host goes on; of other one the host waits. */
static bool is_pinned(const Side *side) {
  return within(side->start) || is_registered(side->start, side->span, NULL);
}

static Region region_of(const Side *side, const Copy *copy, size_t width) {
  return (Region){(uint64_t)side->start, width, copy->extent.height, side->pitch,
                  copy->extent.depth, side->slice};
}

hipError_t perform_copy(const Copy *copy, hipStream_t stream) {
  Side to, from;
  size_t width;
  hipError_t error = check_kind(copy->kind);
  if (error || copies_nothing(copy)) return error;
  if ((error = sides_of(copy, &to, &from, &width))) return error;
  bool devices = copy->kind == DEVICE_TO_DEVICE || copy->kind == WITHOUT_UNITS;
  lock();
  bool both = reachable(&to, devices || copy->kind == HOST_TO_DEVICE, "destination") &&
              reachable(&from, devices || copy->kind == DEVICE_TO_HOST, "source");
  error = both ? fault(device_of(stream)) : hipErrorInvalidValue;
  bool waits = standard(stream) || !is_pinned(&to) || !is_pinned(&from);
  unlock();
  if (!error)
    note_memory(COPIED, stream, waits, region_of(&to, copy, width),
                region_of(&from, copy, width));
  host_access_begins();
  for (size_t z = 0; z < copy->extent.depth && !error; z++)
    for (size_t y = 0; y < copy->extent.height; y++)
      memmove(to.start + z * to.slice + y * to.pitch, from.start + z * from.slice + y * from.pitch,
              width);
  host_access_ends();
  guard();
  return error;
}

static hipError_t copy(Copy what, hipStream_t stream) {
  Work work = {COPY, .copy = what};
  hipError_t error = usable(stream);
  if (!error) error = check_copy(&what);
  return error ? error : submit(&work, stream);
}
static hipError_t copy_bytes(void *to, const void *from, size_t size, int kind,
                             hipStream_t stream) {
  return copy(plain_copy(to, from, size, kind), stream);
}

API hipError_t hipMemcpy(void *to, const void *from, size_t size, int kind) {
  return done(copy_bytes(to, from, size, kind, NULL));
}
PER_THREAD(hipMemcpy);
API hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, int kind,
                              hipStream_t stream) {
  return done(copy_bytes(to, from, size, kind, stream));
}
PER_THREAD(hipMemcpyAsync);
API hipError_t hipMemcpyWithStream(void *to, const void *from, size_t size, int kind,
                                   hipStream_t stream) {
  hipError_t error = copy_bytes(to, from, size, kind, stream);
  if (!error) note(HOST_AWAITED_STREAM, stream, 0);
  return done(error);
}
API hipError_t hipMemcpyHtoD(void *to, const void *from, size_t size) {
  return done(copy_bytes(to, from, size, HOST_TO_DEVICE, NULL));
}
API hipError_t hipMemcpyDtoH(void *to, void *from, size_t size) {
  return done(copy_bytes(to, from, size, DEVICE_TO_HOST, NULL));
}
API hipError_t hipMemcpyDtoD(void *to, void *from, size_t size) {
  return done(copy_bytes(to, from, size, DEVICE_TO_DEVICE, NULL));
}
API hipError_t hipMemcpyHtoDAsync(void *to, const void *from, size_t size, hipStream_t stream) {
  return done(copy_bytes(to, from, size, HOST_TO_DEVICE, stream));
}
API hipError_t hipMemcpyDtoHAsync(void *to, void *from, size_t size, hipStream_t stream) {
  return done(copy_bytes(to, from, size, DEVICE_TO_HOST, stream));
}
API hipError_t hipMemcpyDtoDAsync(void *to, void *from, size_t size, hipStream_t stream) {
  return done(copy_bytes(to, from, size, DEVICE_TO_DEVICE, stream));
}

static hipError_t both_exist(int one, int other) {
  hipError_t error = device_exists(one);
  return error ? error : device_exists(other);
}
API hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                  size_t size, hipStream_t stream) {
  hipError_t error = both_exist(to_device, from_device);
  return done(error ? error : copy_bytes(to, from, size, DEVICE_TO_DEVICE, stream));
}
API hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                             size_t size) {
  return hipMemcpyPeerAsync(to, to_device, from, from_device, size, NULL);
}

API hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                size_t width, size_t height, int kind, hipStream_t stream) {
  if (width && height && (width > to_pitch || width > from_pitch)) {
    hipError_t error = usable(stream);
    return done(error ? error : hipErrorInvalidPitchValue);
  }
  Copy rows = {.from = {(void *)from, from_pitch, width, height},
               .to = {to, to_pitch, width, height},
               .extent = {width, height, 1},
               .kind = kind};
  return done(copy(rows, stream));
}
PER_THREAD(hipMemcpy2DAsync);
API hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t height, int kind) {
  return hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}
PER_THREAD(hipMemcpy2D);

API hipError_t hipMemcpy3DAsync(const Copy *given, hipStream_t stream) {
  return done(given ? copy(*given, stream) : hipErrorInvalidValue);
}
PER_THREAD(hipMemcpy3DAsync);
API hipError_t hipMemcpy3D(const Copy *given) { return hipMemcpy3DAsync(given, NULL); }
PER_THREAD(hipMemcpy3D);

/* hipMemcpy3DPeerParms */
typedef struct {
  hipArray_t from_array;
  Position from_position;
  Pitched from;
  int from_device;
  hipArray_t to_array;
  Position to_position;
  Pitched to;
  int to_device;
  Extent extent;
} PeerCopy;
API hipError_t hipMemcpy3DPeerAsync(const PeerCopy *given, hipStream_t stream) {
  hipError_t error = given ? both_exist(given->from_device, given->to_device)
                           : hipErrorInvalidValue;
  if (error) return done(error);
  Copy same = {given->from_array, given->from_position, given->from,   given->to_array,
               given->to_position, given->to,           given->extent, DEVICE_TO_DEVICE};
  return done(copy(same, stream));
}
API hipError_t hipMemcpy3DPeer(const PeerCopy *given) { return hipMemcpy3DPeerAsync(given, NULL); }

/* The driver's words: a side is of the host, of a device, an array, or told by its address. */
enum { OF_HOST = 1, OF_DEVICE = 2, OF_ARRAY = 10, BY_POINTER = 11 };

static hipError_t driver_side(const DriverSide *given, hipArray_t *array, Position *at,
                              Pitched *place, bool *device) {
  if (given->level) return hipErrorInvalidValue;
  *array = NULL, *device = given->type != OF_HOST;
  *at = (Position){given->x, given->y, given->z};
  *place = (Pitched){given->device, given->pitch, given->pitch, given->height};
  switch (given->type) {
  case OF_HOST: place->pointer = (void *)given->host; return hipSuccess;
  case OF_DEVICE:
  case BY_POINTER: return hipSuccess;
  case OF_ARRAY: {
    size_t element;
    Pitched unused;
    *array = given->array;
    hipError_t error = array_place(*array, (Position){0}, (Extent){0}, &unused, &element);
    if (!error && given->x % element) error = hipErrorInvalidValue;
    if (!error) at->x /= element;
    return error;
  }
  }
  return hipErrorInvalidValue;
}

hipError_t driver_copy(const DriverCopy *given, Copy *copy) {
  bool to_device, from_device;
  *copy = (Copy){.extent = {given->width, given->height, given->depth}};
  hipError_t error = driver_side(&given->from, &copy->from_array, &copy->from_position,
                                 &copy->from, &from_device);
  if (!error)
    error = driver_side(&given->to, &copy->to_array, &copy->to_position, &copy->to, &to_device);
  if (error) return error;
  bool by_address = given->from.type == BY_POINTER || given->to.type == BY_POINTER;
  copy->kind = by_address ? BY_ADDRESS : 2 * from_device + to_device;
  hipArray_t array = copy->from_array ? copy->from_array : copy->to_array;
  if (array) { /* whose elements a width counts */
    size_t element;
    Pitched unused;
    error = array_place(array, (Position){0}, (Extent){0}, &unused, &element);
    if (!error && given->width % element) error = hipErrorInvalidValue;
    if (!error) copy->extent.width /= element;
  }
  return error;
}

static DriverSide as_driver_side(hipArray_t array, Position at, Pitched place, bool device) {
  DriverSide side = {.x = at.x, .y = at.y, .z = at.z, .array = array, .pitch = place.pitch,
                     .height = place.height};
  side.type = array ? OF_ARRAY : device ? OF_DEVICE : OF_HOST;
  if (device)
    side.device = place.pointer;
  else
    side.host = place.pointer;
  return side;
}
DriverCopy as_driver_copy(const Copy *copy) {
  bool by_address = copy->kind == BY_ADDRESS || copy->kind == WITHOUT_UNITS;
  bool from = by_address ? within(copy->from.pointer) : copy->kind & 2;
  bool to = by_address ? within(copy->to.pointer) : copy->kind & 1;
  return (DriverCopy){
      as_driver_side(copy->from_array, copy->from_position, copy->from, from),
      as_driver_side(copy->to_array, copy->to_position, copy->to, to),
      copy->extent.width, copy->extent.height, copy->extent.depth};
}

static hipError_t by_driver(const DriverCopy *given, hipStream_t stream) {
  Copy what;
  hipError_t error = given ? driver_copy(given, &what) : hipErrorInvalidValue;
  return error ? error : copy(what, stream);
}
API hipError_t hipDrvMemcpy3D(const DriverCopy *given) { return done(by_driver(given, NULL)); }
API hipError_t hipDrvMemcpy3DAsync(const DriverCopy *given, hipStream_t stream) {
  return done(by_driver(given, stream));
}

/* hip_Memcpy2D */
typedef struct {
  size_t x, y;
  int type;
  const void *host;
  void *device;
  hipArray_t array;
  size_t pitch;
} FlatSide;
typedef struct {
  FlatSide from, to;
  size_t width, height;
} FlatCopy;
static DriverSide flat(const FlatSide *side, size_t height) {
  return (DriverSide){side->x,      side->y,     0,           0,     side->type, side->host,
                      side->device, side->array, side->pitch, height};
}
API hipError_t hipMemcpyParam2DAsync(const FlatCopy *given, hipStream_t stream) {
  if (!given) return done(hipErrorInvalidValue);
  DriverCopy same = {flat(&given->from, given->height), flat(&given->to, given->height),
                     given->width, given->height, 1};
  return done(by_driver(&same, stream));
}
API hipError_t hipMemcpyParam2D(const FlatCopy *given) {
  return hipMemcpyParam2DAsync(given, NULL);
}
API hipError_t hipDrvMemcpy2DUnaligned(const FlatCopy *given) {
  return hipMemcpyParam2DAsync(given, NULL);
}

/* Several copies, one after another. */
API hipError_t hipMemcpyBatchAsync(void **to, void **from, size_t *sizes, size_t count,
                                   const void *attributes, const size_t *indices, size_t kinds,
                                   size_t *failed, hipStream_t stream) {
  (void)attributes, (void)indices, (void)kinds; /* hints of how to do it */
  if (failed) *failed = SIZE_MAX;
  if (!to || !from || !sizes || !count) return done(hipErrorInvalidValue);
  for (size_t i = 0; i < count; i++) {
    hipError_t error = copy_bytes(to[i], from[i], sizes[i], BY_ADDRESS, stream);
    if (!error) continue;
    if (failed) *failed = i;
    return done(error);
  }
  return hipSuccess;
}
