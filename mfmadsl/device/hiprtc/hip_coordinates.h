/* Where a thread stands: threadIdx, blockIdx, blockDim, gridDim, and barriers of its block. */

#define __HIP_COORDINATES(type, name, X, Y, Z)                                                     \
  struct type {                                                                                    \
    __HIP_INLINE unsigned int of_x() { return X; }                                                 \
    __HIP_INLINE unsigned int of_y() { return Y; }                                                 \
    __HIP_INLINE unsigned int of_z() { return Z; }                                                 \
    __declspec(property(get = of_x)) unsigned int x;                                               \
    __declspec(property(get = of_y)) unsigned int y;                                               \
    __declspec(property(get = of_z)) unsigned int z;                                               \
  };                                                                                               \
  static constexpr __device__ type name = {};

/* The first three words of a kernel's hidden arguments, in code objects of version 5 and later. */
#define __HIP_BLOCKS(axis)                                                                         \
  (((const __attribute__((address_space(4))) unsigned int *)__builtin_amdgcn_implicitarg_ptr())[axis])

__HIP_COORDINATES(__hip_thread, threadIdx, __builtin_amdgcn_workitem_id_x(),
                  __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
__HIP_COORDINATES(__hip_block, blockIdx, __builtin_amdgcn_workgroup_id_x(),
                  __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
__HIP_COORDINATES(__hip_threads, blockDim, __builtin_amdgcn_workgroup_size_x(),
                  __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
__HIP_COORDINATES(__hip_blocks, gridDim, __HIP_BLOCKS(0), __HIP_BLOCKS(1), __HIP_BLOCKS(2))

static constexpr __device__ int warpSize = 64;

#define __HIP_FENCE(name, scope)                                                                   \
  __HIP_INLINE void name() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, scope); }
__HIP_FENCE(__threadfence, "agent")
__HIP_FENCE(__threadfence_block, "workgroup")
__HIP_FENCE(__threadfence_system, "")

__HIP_INLINE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
