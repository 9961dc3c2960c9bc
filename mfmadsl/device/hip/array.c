/* Arrays: memory in rows, of elements with up to four channels. Copies reach them; textures, which
   kernels would read them by, are not emulated. */
#include "stream.h"

#include <stdlib.h>

/* hipChannelFormatDesc: bits of each channel, and whether they are signed, unsigned or floats. */
typedef struct {
  int x, y, z, w, kind;
} Channels;

struct Array {
  Channels channels;
  Extent extent; /* a height or depth of 0 is none, as the caller says it */
  unsigned flags;
  size_t element;
  Pitched place;
  struct Array *next;
};

static struct Array *arrays;

enum { PITCH = 256 }; /* bytes that rows are a multiple of */

static size_t at_least_one(size_t size) { return size ? size : 1; }

static bool is_array(hipArray_t array) {
  for (struct Array *each = arrays; each; each = each->next)
    if (each == array) return true;
  return false;
}

hipError_t array_place(hipArray_t array, Position at, Extent extent, Pitched *place,
                       size_t *element) {
  lock();
  hipError_t error = is_array(array) ? hipSuccess : hipErrorInvalidHandle;
  if (!error) {
    Extent size = {array->extent.width, at_least_one(array->extent.height),
                   at_least_one(array->extent.depth)};
    bool inside = at.x <= size.width && extent.width <= size.width - at.x &&
                  at.y <= size.height && extent.height <= size.height - at.y &&
                  at.z <= size.depth && extent.depth <= size.depth - at.z;
    if (!inside) error = hipErrorInvalidValue;
    *place = array->place;
    place->pointer = (char *)array->place.pointer + at.x * array->element +
                     (at.z * size.height + at.y) * array->place.pitch;
    if (element) *element = array->element;
  }
  unlock();
  return error;
}

/* Bytes of an element, whose channels have the same bits each; 0 of none that there is. */
static size_t element_bytes(const Channels *c) {
  int bits[] = {c->x, c->y, c->z, c->w}, used = 0;
  while (used < 4 && bits[used]) used++;
  for (int i = 0; i < 4; i++)
    if (bits[i] != (i < used ? c->x : 0)) return 0;
  bool known = (c->x == 8 || c->x == 16 || c->x == 32) && used != 3 && c->kind >= 0 && c->kind <= 2;
  return known && !(c->kind == 2 && c->x == 8) ? (size_t)used * c->x / 8 : 0;
}

static hipError_t make(hipArray_t *made, Channels channels, Extent extent, unsigned flags) {
  size_t element = element_bytes(&channels), row, rows, size;
  if (!made || !element || !extent.width || (extent.depth && !extent.height))
    return hipErrorInvalidValue;
  *made = NULL;
  if (flags & ~0x7u) return hipErrorInvalidValue;
  if (__builtin_mul_overflow(extent.width, element, &row) ||
      __builtin_add_overflow(row, PITCH - 1, &row) ||
      __builtin_mul_overflow(at_least_one(extent.height), at_least_one(extent.depth), &rows) ||
      __builtin_mul_overflow(row / PITCH * PITCH, rows, &size))
    return hipErrorInvalidValue;
  struct Array *array = malloc(sizeof *array);
  if (!array) return hipErrorOutOfMemory;
  void *memory;
  hipError_t error = allocate(&memory, size, 0, false, NULL);
  if (error) {
    free(array);
    return error;
  }
  row = row / PITCH * PITCH;
  lock();
  *array = (struct Array){channels, extent, flags, element,
                          {memory, row, extent.width * element, at_least_one(extent.height)},
                          arrays};
  *made = arrays = array;
  unlock();
  return hipSuccess;
}

static hipError_t destroy(hipArray_t array) {
  if (!array) return hipErrorInvalidValue;
  hipError_t error = hipErrorInvalidHandle;
  lock();
  for (struct Array **place = &arrays; *place; place = &(*place)->next)
    if (*place == array) {
      *place = array->next;
      release(array->place.pointer, false);
      free(array);
      error = hipSuccess;
      break;
    }
  unlock();
  return error;
}

API Channels hipCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return (Channels){x, y, z, w, kind};
}
API hipError_t hipMallocArray(hipArray_t *array, const Channels *channels, size_t width,
                              size_t height, unsigned flags) {
  if (!channels) return done(hipErrorInvalidValue);
  return done(make(array, *channels, (Extent){width, height, 0}, flags));
}
API hipError_t hipMalloc3DArray(hipArray_t *array, const Channels *channels, Extent extent,
                                unsigned flags) {
  return done(channels ? make(array, *channels, extent, flags) : hipErrorInvalidValue);
}
API hipError_t hipFreeArray(hipArray_t array) { return done(destroy(array)); }
API hipError_t hipArrayDestroy(hipArray_t array) { return done(destroy(array)); }

/* HIP_ARRAY3D_DESCRIPTOR, and without depth and flags HIP_ARRAY_DESCRIPTOR. */
typedef struct {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
} Descriptor;
typedef struct {
  size_t width, height;
  int format;
  unsigned channels;
} FlatDescriptor;

/* hipArray_Format */
static const struct {
  int format, bits, kind;
} FORMATS[] = {{1, 8, 1},  {2, 16, 1}, {3, 32, 1},  {8, 8, 0},
               {9, 16, 0}, {10, 32, 0}, {16, 16, 2}, {32, 32, 2}};
enum { FORMATS_KNOWN = sizeof FORMATS / sizeof *FORMATS };

API hipError_t hipArray3DCreate(hipArray_t *array, const Descriptor *wanted) {
  if (!wanted || wanted->channels < 1 || wanted->channels > 4) return done(hipErrorInvalidValue);
  for (int i = 0; i < FORMATS_KNOWN; i++)
    if (FORMATS[i].format == wanted->format) {
      int bits = FORMATS[i].bits;
      unsigned n = wanted->channels;
      Channels channels = {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,
                           FORMATS[i].kind};
      Extent extent = {wanted->width, wanted->height, wanted->depth};
      return done(make(array, channels, extent, wanted->flags));
    }
  return done(hipErrorInvalidValue);
}
API hipError_t hipArrayCreate(hipArray_t *array, const FlatDescriptor *wanted) {
  if (!wanted) return done(hipErrorInvalidValue);
  Descriptor whole = {wanted->width, wanted->height, 0, wanted->format, wanted->channels, 0};
  return hipArray3DCreate(array, &whole);
}

static hipError_t look(hipArray_t array, struct Array *found) {
  lock();
  hipError_t error = is_array(array) ? hipSuccess : hipErrorInvalidHandle;
  if (!error) *found = *array;
  unlock();
  return error;
}
API hipError_t hipArrayGetInfo(Channels *channels, Extent *extent, unsigned *flags,
                               hipArray_t array) {
  struct Array found;
  hipError_t error = look(array, &found);
  if (!error && channels) *channels = found.channels;
  if (!error && extent) *extent = found.extent;
  if (!error && flags) *flags = found.flags;
  return done(error);
}
API hipError_t hipGetChannelDesc(Channels *channels, hipArray_t array) {
  struct Array found;
  hipError_t error = channels ? look(array, &found) : hipErrorInvalidValue;
  if (!error) *channels = found.channels;
  return done(error);
}
static hipError_t described(Descriptor *told, hipArray_t array) {
  struct Array found;
  hipError_t error = look(array, &found);
  if (error) return error;
  const Channels *c = &found.channels;
  *told = (Descriptor){found.extent.width, found.extent.height, found.extent.depth, 0,
                       1u + !!c->y + !!c->z + !!c->w, found.flags};
  for (int i = 0; i < FORMATS_KNOWN; i++)
    if (FORMATS[i].bits == c->x && FORMATS[i].kind == c->kind) told->format = FORMATS[i].format;
  return hipSuccess;
}
API hipError_t hipArray3DGetDescriptor(Descriptor *told, hipArray_t array) {
  return done(told ? described(told, array) : hipErrorInvalidValue);
}
API hipError_t hipArrayGetDescriptor(FlatDescriptor *told, hipArray_t array) {
  Descriptor whole;
  hipError_t error = told ? described(&whole, array) : hipErrorInvalidValue;
  if (!error)
    *told = (FlatDescriptor){whole.width, whole.height, whole.format, whole.channels};
  return done(error);
}

API hipError_t hipMalloc3D(Pitched *place, Extent extent) {
  size_t row = (extent.width + PITCH - 1) / PITCH * PITCH, rows, size;
  if (!place || row < extent.width || __builtin_mul_overflow(extent.height, extent.depth, &rows) ||
      __builtin_mul_overflow(row, rows, &size))
    return done(hipErrorInvalidValue);
  *place = (Pitched){NULL, row, extent.width, extent.height};
  return done(allocate(&place->pointer, size, 0, false, NULL));
}
