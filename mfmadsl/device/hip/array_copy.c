/* Copies from and to arrays. Widths and offsets in rows are in bytes here. */
#include "stream.h"

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3 };

/* An array, from a byte of a row on; or other memory, of rows that lie a pitch apart. */
typedef struct {
  hipArray_t array;
  size_t x, y;
  void *pointer;
  size_t pitch;
} Place;

static hipError_t in_elements(hipArray_t array, size_t *bytes) {
  size_t element;
  Pitched unused;
  hipError_t error = array_place(array, (Position){0}, (Extent){0}, &unused, &element);
  if (!error && *bytes % element) error = hipErrorInvalidValue;
  if (!error) *bytes /= element;
  return error;
}

static hipError_t copy(Place to, Place from, size_t width, size_t height, int kind,
                       hipStream_t stream) {
  hipError_t error = usable(stream);
  if (error) return error;
  if (!to.array && !to.pointer) return hipErrorInvalidValue;
  if (!from.array && !from.pointer) return hipErrorInvalidValue;
  size_t wide = width;
  if (to.array) error = in_elements(to.array, &to.x);
  if (!error && from.array) error = in_elements(from.array, &from.x);
  if (!error) error = in_elements(to.array ? to.array : from.array, &wide);
  if (error) return error;
  Work work = {COPY, .copy = {from.array, {from.x, from.y, 0},
                              {from.pointer, from.pitch, width, height},
                              to.array, {to.x, to.y, 0}, {to.pointer, to.pitch, width, height},
                              {wide, height, 1}, kind}};
  error = check_copy(&work.copy);
  return error ? error : submit(&work, stream);
}

static Place array_at(hipArray_t array, size_t x, size_t y) { return (Place){array, x, y, NULL, 0}; }
static Place memory_at(const void *pointer, size_t pitch) {
  return (Place){NULL, 0, 0, (void *)pointer, pitch};
}

API hipError_t hipMemcpy2DToArrayAsync(hipArray_t to, size_t x, size_t y, const void *from,
                                       size_t pitch, size_t width, size_t height, int kind,
                                       hipStream_t stream) {
  return done(copy(array_at(to, x, y), memory_at(from, pitch), width, height, kind, stream));
}
PER_THREAD(hipMemcpy2DToArrayAsync);
API hipError_t hipMemcpy2DToArray(hipArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                  size_t width, size_t height, int kind) {
  return hipMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, kind, NULL);
}
PER_THREAD(hipMemcpy2DToArray);
API hipError_t hipMemcpy2DFromArrayAsync(void *to, size_t pitch, hipArray_t from, size_t x,
                                         size_t y, size_t width, size_t height, int kind,
                                         hipStream_t stream) {
  return done(copy(memory_at(to, pitch), array_at(from, x, y), width, height, kind, stream));
}
PER_THREAD(hipMemcpy2DFromArrayAsync);
API hipError_t hipMemcpy2DFromArray(void *to, size_t pitch, hipArray_t from, size_t x, size_t y,
                                    size_t width, size_t height, int kind) {
  return hipMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, kind, NULL);
}
PER_THREAD(hipMemcpy2DFromArray);
API hipError_t hipMemcpy2DArrayToArray(hipArray_t to, size_t to_x, size_t to_y, hipArray_t from,
                                       size_t from_x, size_t from_y, size_t width, size_t height,
                                       int kind) {
  return done(copy(array_at(to, to_x, to_y), array_at(from, from_x, from_y), width, height, kind,
                   NULL));
}

API hipError_t hipMemcpyToArray(hipArray_t to, size_t x, size_t y, const void *from, size_t count,
                                int kind) {
  return done(copy(array_at(to, x, y), memory_at(from, count), count, 1, kind, NULL));
}
API hipError_t hipMemcpyFromArray(void *to, hipArray_t from, size_t x, size_t y, size_t count,
                                  int kind) {
  return done(copy(memory_at(to, count), array_at(from, x, y), count, 1, kind, NULL));
}
PER_THREAD(hipMemcpyFromArray);

API hipError_t hipMemcpyAtoHAsync(void *to, hipArray_t from, size_t at, size_t count,
                                  hipStream_t stream) {
  return done(copy(memory_at(to, count), array_at(from, at, 0), count, 1, DEVICE_TO_HOST, stream));
}
API hipError_t hipMemcpyAtoH(void *to, hipArray_t from, size_t at, size_t count) {
  return hipMemcpyAtoHAsync(to, from, at, count, NULL);
}
API hipError_t hipMemcpyHtoAAsync(hipArray_t to, size_t at, const void *from, size_t count,
                                  hipStream_t stream) {
  return done(copy(array_at(to, at, 0), memory_at(from, count), count, 1, HOST_TO_DEVICE, stream));
}
API hipError_t hipMemcpyHtoA(hipArray_t to, size_t at, const void *from, size_t count) {
  return hipMemcpyHtoAAsync(to, at, from, count, NULL);
}
API hipError_t hipMemcpyAtoD(void *to, hipArray_t from, size_t at, size_t count) {
  return done(copy(memory_at(to, count), array_at(from, at, 0), count, 1, DEVICE_TO_DEVICE, NULL));
}
API hipError_t hipMemcpyDtoA(hipArray_t to, size_t at, const void *from, size_t count) {
  return done(copy(array_at(to, at, 0), memory_at(from, count), count, 1, DEVICE_TO_DEVICE, NULL));
}
API hipError_t hipMemcpyAtoA(hipArray_t to, size_t to_at, hipArray_t from, size_t from_at,
                             size_t count) {
  return done(
      copy(array_at(to, to_at, 0), array_at(from, from_at, 0), count, 1, DEVICE_TO_DEVICE, NULL));
}
