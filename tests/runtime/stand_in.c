/* Two GPUs of AMD that are this machine's memory, with the calls that were made of them.

   Each function of HIP appends a line to what `stand_in_calls` returns; handles are counted from 1,
   so that the lines are the same each time. `stand_in_fail` lets a function return an error. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char lines[1 << 20];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long handles;
static __thread int current;
static char failing[64];
static int failure;
static int devices = 2;

const char *stand_in_calls(void) { return lines; }
void stand_in_forget(void) { used = 0; lines[0] = 0; handles = 0; }
void stand_in_fail(const char *name, int error) { strncpy(failing, name, 63); failure = error; }
void stand_in_devices(int count) { devices = count; }

static int called(const char *name, const char *format, ...) {
  va_list list;
  va_start(list, format);
  pthread_mutex_lock(&lock);
  used += sprintf(lines + used, "%s", name);
  used += vsprintf(lines + used, format, list);
  used += sprintf(lines + used, "\n");
  int error = strcmp(failing, name) ? 0 : failure;
  pthread_mutex_unlock(&lock);
  va_end(list);
  return error;
}

static void *handle(void) { return (void *)__sync_add_and_fetch(&handles, 1); }
#define H(handle) (long)(handle)

int hipGetDeviceCount(int *count) { *count = devices; return devices ? 0 : 100; }
int hipGetDevice(int *device) { *device = current; return 0; }
int hipSetDevice(int device) {
  if (device < 0 || device >= devices) return 101;
  int error = called(__func__, " %d", device);
  if (!error) current = device;
  return error;
}
int hipDeviceSynchronize(void) { return called(__func__, ""); }
int hipDeviceGetAttribute(int *value, int attribute, int device) {
  *value = 1000 * (device + 1) + attribute;
  return 0;
}
int hipDeviceGetName(char *name, int size, int device) { return snprintf(name, size, "Stand-in %d", device) < 0; }
int hipDeviceTotalMem(size_t *bytes, int device) { *bytes = (size_t)(device + 1) << 37; return 0; }
int hipMemGetInfo(size_t *available, size_t *total) {
  *available = (size_t)(current + 1) << 36;
  *total = (size_t)(current + 1) << 37;
  return 0;
}
int hipGetDevicePropertiesR0600(char *properties, int device) {
  memset(properties, 0x7f, 1472);
  strcpy(properties + 1160, device ? "gfx90a:sramecc+:xnack-" : "gfx942:sramecc+:xnack-");
  return 0;
}
int hipRuntimeGetVersion(int *version) { *version = 60443483; return 0; }
int hipDriverGetVersion(int *version) { *version = 60443484; return 0; }

int hipMalloc(void **data, size_t bytes) {
  int error = called(__func__, " %zu", bytes);
  return error ? error : posix_memalign(data, 256, bytes);
}
int hipFree(void *data) { free(data); return called(__func__, ""); }
int hipHostMalloc(void **data, size_t bytes, unsigned flags) {
  int error = called(__func__, " %zu %u", bytes, flags);
  return error ? error : posix_memalign(data, 256, bytes);
}
int hipHostFree(void *data) { free(data); return called(__func__, ""); }
int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
  memcpy(to, from, bytes);
  return called(__func__, " %zu kind %d", bytes, kind);
}
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
  memcpy(to, from, bytes);
  return called(__func__, " %zu kind %d stream %ld", bytes, kind, H(stream));
}
int hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                       void *stream) {
  memcpy(to, from, bytes);
  return called(__func__, " %zu %d -> %d stream %ld", bytes, from_device, to_device, H(stream));
}

int hipStreamCreate(void **stream) { *stream = handle(); return called(__func__, " %ld", H(*stream)); }
int hipStreamDestroy(void *stream) { return called(__func__, " %ld", H(stream)); }
int hipStreamSynchronize(void *stream) { return called(__func__, " %ld", H(stream)); }
int hipStreamWaitEvent(void *stream, void *event, unsigned flags) {
  return called(__func__, " %ld event %ld flags %u", H(stream), H(event), flags);
}
int hipEventCreate(void **event) { *event = handle(); return called(__func__, " %ld", H(*event)); }
int hipEventCreateWithFlags(void **event, unsigned flags) {
  *event = handle();
  return called(__func__, " %ld flags %u", H(*event), flags);
}
int hipEventDestroy(void *event) { return called(__func__, " %ld", H(event)); }
int hipEventRecord(void *event, void *stream) { return called(__func__, " %ld stream %ld", H(event), H(stream)); }
int hipEventSynchronize(void *event) { return called(__func__, " %ld", H(event)); }
int hipEventElapsedTime(float *milliseconds, void *start, void *stop) {
  *milliseconds = 0.25f;
  return called(__func__, " %ld to %ld", H(start), H(stop));
}

int hipModuleLoadData(void **module, const void *image) {
  if (memcmp(image, "\177ELF", 4)) return 200;
  *module = handle();
  return called(__func__, " %ld", H(*module));
}
int hipModuleUnload(void *module) { return called(__func__, " %ld", H(module)); }
int hipModuleGetFunction(void **function, void *module, const char *name) {
  if (!strcmp(name, "missing")) return 500;
  *function = strdup(name);
  return called(__func__, " %ld %s", H(module), name);
}
int hipModuleLaunchKernel(const char *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned lds, void *stream, void **params,
                          void **extra) {
  const unsigned char *block = extra[1];
  size_t bytes = *(size_t *)extra[3];
  char hex[2 * 256 + 1] = "";
  for (size_t i = 0; i < bytes; ++i) sprintf(hex + 2 * i, "%02x", block[i]);
  int wrong = params || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3;
  int error = called(__func__, " %s grid %u %u %u block %u %u %u lds %u stream %ld on %d: %s",
                     function, gx, gy, gz, bx, by, bz, lds, H(stream), current, hex);
  return wrong ? 1 : error;
}

int hipGetLastError(void) { return called(__func__, ""); }
const char *hipGetErrorName(int error) {
  return error == 2 ? "hipErrorOutOfMemory" : error == 101 ? "hipErrorInvalidDevice" :
         error == 209 ? "hipErrorNoBinaryForGpu" : error == 500 ? "hipErrorNotFound" :
         error == 719 ? "hipErrorLaunchFailure" : "hipErrorOther";
}
const char *hipGetErrorString(int error) { return error == 2 ? "out of memory" : "what it means"; }
