/* Fills: of elements of 1, 2 or 4 bytes, in rows and slices of them. */
#include "stream.h"

#include <string.h>

typedef struct {
  size_t width, slice, span; /* in bytes */
} Shape;

static bool fills_nothing(const Fill *fill) {
  return !fill->rows.width || !fill->rows.height || !fill->depth;
}

static hipError_t shape_of(const Fill *fill, Shape *shape) {
  const FillRows *rows = &fill->rows;
  size_t down, back;
  if (rows->element != 1 && rows->element != 2 && rows->element != 4) return hipErrorInvalidValue;
  if (fills_nothing(fill)) return hipSuccess;
  if (__builtin_mul_overflow(rows->width, (size_t)rows->element, &shape->width))
    return hipErrorInvalidValue;
  if (rows->height > 1 && shape->width > rows->pitch) return hipErrorInvalidPitchValue;
  if (!rows->to || __builtin_mul_overflow(rows->pitch, rows->height - 1, &down) ||
      __builtin_mul_overflow(fill->slice, fill->depth - 1, &back) ||
      __builtin_add_overflow(down, back, &shape->span) ||
      __builtin_add_overflow(shape->span, shape->width, &shape->span))
    return hipErrorInvalidValue;
  return hipSuccess;
}

hipError_t check_fill(const Fill *fill) {
  Shape shape;
  return shape_of(fill, &shape);
}

hipError_t perform_fill(const Fill *fill, hipStream_t stream) {
  const FillRows *rows = &fill->rows;
  Shape shape;
  hipError_t error = shape_of(fill, &shape);
  if (error || fills_nothing(fill)) return error;
  lock();
  bool there = holding(rows->to, shape.span) || is_registered(rows->to, shape.span, NULL);
  error = there ? fault(device_of(stream)) : hipErrorInvalidValue;
  if (error == hipErrorInvalidValue)
    explain("%zu bytes at %p, the destination of a fill, are not within one allocation",
            shape.span, rows->to);
  unlock();
  if (!error) {
    Region to = {(uint64_t)rows->to, shape.width, rows->height,
                 rows->pitch,        fill->depth, fill->slice};
    note_memory(FILLED, stream, standard(stream), to, (Region){0});
  }
  host_access_begins();
  for (size_t z = 0; z < fill->depth && !error; z++)
    for (size_t y = 0; y < rows->height; y++) {
      char *row = (char *)rows->to + z * fill->slice + y * rows->pitch;
      if (rows->element == 1)
        memset(row, (int)rows->value, rows->width);
      else
        for (size_t x = 0; x < rows->width; x++)
          memcpy(row + x * rows->element, &rows->value, rows->element);
    }
  host_access_ends();
  guard();
  return error;
}

static hipError_t fill(Fill what, hipStream_t stream) {
  Work work = {FILL, .fill = what};
  hipError_t error = usable(stream);
  if (!error) error = check_fill(&what);
  return error ? error : submit(&work, stream);
}
static hipError_t fill_row(void *to, uint32_t value, uint32_t element, size_t times,
                           hipStream_t stream) {
  return fill((Fill){{to, element, 1, 0, value, times}, 0, 1}, stream);
}
static hipError_t fill_rows(void *to, size_t pitch, uint32_t value, uint32_t element, size_t width,
                            size_t height, hipStream_t stream) {
  if (width && height && width > pitch / element) {
    hipError_t error = usable(stream);
    return error ? error : hipErrorInvalidPitchValue;
  }
  return fill((Fill){{to, element, height, pitch, value, width}, 0, 1}, stream);
}

API hipError_t hipMemset(void *to, int value, size_t size) {
  return done(fill_row(to, value, 1, size, NULL));
}
PER_THREAD(hipMemset);
API hipError_t hipMemsetAsync(void *to, int value, size_t size, hipStream_t stream) {
  return done(fill_row(to, value, 1, size, stream));
}
PER_THREAD(hipMemsetAsync);
API hipError_t hipMemsetD8(void *to, unsigned char value, size_t times) {
  return done(fill_row(to, value, 1, times, NULL));
}
API hipError_t hipMemsetD8Async(void *to, unsigned char value, size_t times, hipStream_t stream) {
  return done(fill_row(to, value, 1, times, stream));
}
API hipError_t hipMemsetD16(void *to, unsigned short value, size_t times) {
  return done(fill_row(to, value, 2, times, NULL));
}
API hipError_t hipMemsetD16Async(void *to, unsigned short value, size_t times, hipStream_t stream) {
  return done(fill_row(to, value, 2, times, stream));
}
API hipError_t hipMemsetD32(void *to, int value, size_t times) {
  return done(fill_row(to, value, 4, times, NULL));
}
API hipError_t hipMemsetD32Async(void *to, int value, size_t times, hipStream_t stream) {
  return done(fill_row(to, value, 4, times, stream));
}

API hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                hipStream_t stream) {
  return done(fill_rows(to, pitch, value, 1, width, height, stream));
}
PER_THREAD(hipMemset2DAsync);
API hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  return hipMemset2DAsync(to, pitch, value, width, height, NULL);
}
PER_THREAD(hipMemset2D);
API hipError_t hipMemsetD2D8Async(void *to, size_t pitch, unsigned char value, size_t width,
                                  size_t height, hipStream_t stream) {
  return done(fill_rows(to, pitch, value, 1, width, height, stream));
}
API hipError_t hipMemsetD2D8(void *to, size_t pitch, unsigned char value, size_t width,
                             size_t height) {
  return hipMemsetD2D8Async(to, pitch, value, width, height, NULL);
}
API hipError_t hipMemsetD2D16Async(void *to, size_t pitch, unsigned short value, size_t width,
                                   size_t height, hipStream_t stream) {
  return done(fill_rows(to, pitch, value, 2, width, height, stream));
}
API hipError_t hipMemsetD2D16(void *to, size_t pitch, unsigned short value, size_t width,
                              size_t height) {
  return hipMemsetD2D16Async(to, pitch, value, width, height, NULL);
}
API hipError_t hipMemsetD2D32Async(void *to, size_t pitch, unsigned value, size_t width,
                                   size_t height, hipStream_t stream) {
  return done(fill_rows(to, pitch, value, 4, width, height, stream));
}
API hipError_t hipMemsetD2D32(void *to, size_t pitch, unsigned value, size_t width,
                              size_t height) {
  return hipMemsetD2D32Async(to, pitch, value, width, height, NULL);
}

API hipError_t hipMemset3DAsync(Pitched place, int value, Extent extent, hipStream_t stream) {
  size_t slice = 0;
  bool fits = extent.width <= place.pitch && extent.height <= place.height &&
              !__builtin_mul_overflow(place.pitch, place.height, &slice);
  if (extent.width && extent.height && extent.depth && !fits) return done(hipErrorInvalidValue);
  Fill what = {{place.pointer, 1, extent.height, place.pitch, value, extent.width},
               slice,
               extent.depth};
  return done(fill(what, stream));
}
PER_THREAD(hipMemset3DAsync);
API hipError_t hipMemset3D(Pitched place, int value, Extent extent) {
  return hipMemset3DAsync(place, value, extent, NULL);
}
PER_THREAD(hipMemset3D);
