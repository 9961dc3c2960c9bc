/* What HIP's device code has beyond C++, for programs that are compiled while they run.

   It is included ahead of each of them. What is not here, as functions of ROCm's device library that
   LLVM has no instructions for, a program's log names as undeclared. */
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __HIP_LAUNCH_BOUNDS_1(threads)                                                             \
  __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __HIP_LAUNCH_BOUNDS_2(threads, waves)                                                      \
  __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define __HIP_LAUNCH_BOUNDS(threads, waves, name, ...) name
#define __launch_bounds__(...)                                                                     \
  __HIP_LAUNCH_BOUNDS(__VA_ARGS__, __HIP_LAUNCH_BOUNDS_2, __HIP_LAUNCH_BOUNDS_1)(__VA_ARGS__)
#define __HIP_INLINE static __device__ inline __attribute__((always_inline))

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#include "hip_coordinates.h"
#include "hip_vectors.h"
#include "hip_math.h"
#include "hip_waves.h"
#include "hip_atomics.h"
