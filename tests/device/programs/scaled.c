/* y[i] = a * x[i] + i on the device, as a C program against HIP's interface does it: synchronous
   and asynchronous copies, two streams, events, arguments by pointers and in a buffer of one's own.
   Prints what it found, and ends with 0 if all was right.

   What it declares is what hip/hip_runtime_api.h declares. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int hipError_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef enum { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2 } hipMemcpyKind;

hipError_t hipInit(unsigned flags);
hipError_t hipGetDeviceCount(int *count);
hipError_t hipDeviceGetAttribute(int *value, int attribute, int device);
hipError_t hipMalloc(void **pointer, size_t size);
hipError_t hipFree(void *pointer);
hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags);
hipError_t hipHostFree(void *pointer);
hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind,
                          hipStream_t stream);
hipError_t hipMemsetD32(void *to, int value, size_t count);
hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t first, hipEvent_t last);
hipError_t hipModuleLoad(hipModule_t *module, const char *path);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz,
                                 unsigned bx, unsigned by, unsigned bz, unsigned lds_bytes,
                                 hipStream_t stream, void **values, void **extra);
hipError_t hipDeviceSynchronize(void);
const char *hipGetErrorString(hipError_t error);

#define CHECK(call)                                                                                \
  do {                                                                                             \
    hipError_t error = (call);                                                                     \
    if (error) {                                                                                   \
      printf("line %d: %s: %s\n", __LINE__, #call, hipGetErrorString(error));                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

enum { N = 1000, BLOCKS = (N + 63) / 64, WARP_SIZE = 87 };

static int differing(const float *y, const float *x, float a) {
  int count = 0;
  for (int i = 0; i < N; i++) count += y[i] != a * x[i] + (float)i;
  return count;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  int devices, lanes;
  CHECK(hipInit(0));
  CHECK(hipGetDeviceCount(&devices));
  CHECK(hipDeviceGetAttribute(&lanes, WARP_SIZE, 0));
  printf("%d device, waves of %d\n", devices, lanes);

  hipModule_t module;
  hipFunction_t scaled;
  CHECK(hipModuleLoad(&module, argv[1]));
  CHECK(hipModuleGetFunction(&scaled, module, "scaled"));

  static float x[N], y[N + 1];
  for (int i = 0; i < N; i++) x[i] = (float)(3 * i % 101);
  void *dx, *dy;
  CHECK(hipMalloc(&dx, sizeof x));
  CHECK(hipMalloc(&dy, sizeof y));
  CHECK(hipMemcpy(dx, x, sizeof x, hipMemcpyHostToDevice));
  CHECK(hipMemsetD32(dy, 0x7F800000, N + 1)); /* infinity, where the kernel must not write */

  float a = 0.5f;
  int n = N;
  void *values[] = {&dx, &dy, &a, &n};
  CHECK(hipModuleLaunchKernel(scaled, BLOCKS, 1, 1, 64, 1, 1, 0, NULL, values, NULL));
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(y, dy, sizeof y, hipMemcpyDeviceToHost));
  int wrong = differing(y, x, a) + (y[N] < 1e30f);
  printf("arguments by pointers: %d differ\n", wrong);

  /* Two streams, the second of which waits for the first; memory of the host that the device may
   * reach. */
  hipStream_t first, second;
  hipEvent_t begin, end;
  CHECK(hipStreamCreate(&first));
  CHECK(hipStreamCreate(&second));
  CHECK(hipEventCreate(&begin));
  CHECK(hipEventCreate(&end));
  float *pinned;
  CHECK(hipHostMalloc((void **)&pinned, sizeof x, 0));
  for (int i = 0; i < N; i++) pinned[i] = (float)(7 * i % 97);
  memcpy(x, pinned, sizeof x);
  struct {
    void *x, *y;
    float a;
    int n;
  } block = {dx, dy, -2.0f, N};
  size_t size = sizeof block;
  void *extra[] = {(void *)1, &block, (void *)2, &size, (void *)3};
  CHECK(hipEventRecord(begin, first));
  CHECK(hipMemcpyAsync(dx, pinned, sizeof x, hipMemcpyHostToDevice, first));
  CHECK(hipModuleLaunchKernel(scaled, BLOCKS, 1, 1, 64, 1, 1, 0, first, NULL, extra));
  CHECK(hipEventRecord(end, first));
  CHECK(hipStreamWaitEvent(second, end, 0));
  CHECK(hipMemcpyAsync(pinned, dy, sizeof x, hipMemcpyDeviceToHost, second));
  CHECK(hipStreamSynchronize(second));
  CHECK(hipEventSynchronize(end));
  float milliseconds = -1;
  CHECK(hipEventElapsedTime(&milliseconds, begin, end));
  int others = differing(pinned, x, block.a);
  printf("arguments in a buffer: %d differ\n", others);
  printf("time went on: %s\n", milliseconds > 0 ? "yes" : "no");

  CHECK(hipEventDestroy(begin));
  CHECK(hipEventDestroy(end));
  CHECK(hipStreamDestroy(first));
  CHECK(hipStreamDestroy(second));
  CHECK(hipHostFree(pinned));
  CHECK(hipFree(dx));
  CHECK(hipFree(dy));
  CHECK(hipModuleUnload(module));
  return wrong || others;
}
