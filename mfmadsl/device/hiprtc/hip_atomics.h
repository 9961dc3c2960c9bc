/* Atomics of the device's scope, without an order of other accesses, as HIP's are. */

#define __HIP_SCOPE __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT
#define __HIP_ATOMIC(type, name, builtin)                                                          \
  __HIP_INLINE type name(type *address, type value) {                                              \
    return __hip_atomic_##builtin(address, value, __HIP_SCOPE);                                    \
  }
#define __HIP_ATOMICS(type)                                                                        \
  __HIP_ATOMIC(type, atomicAdd, fetch_add)                                                         \
  __HIP_ATOMIC(type, atomicMin, fetch_min)                                                         \
  __HIP_ATOMIC(type, atomicMax, fetch_max)                                                         \
  __HIP_ATOMIC(type, atomicExch, exchange)
#define __HIP_INTEGER_ATOMICS(type)                                                                \
  __HIP_ATOMICS(type)                                                                              \
  __HIP_ATOMIC(type, atomicAnd, fetch_and)                                                         \
  __HIP_ATOMIC(type, atomicOr, fetch_or)                                                           \
  __HIP_ATOMIC(type, atomicXor, fetch_xor)                                                         \
  __HIP_INLINE type atomicSub(type *address, type value) { return atomicAdd(address, -value); }    \
  __HIP_INLINE type atomicCAS(type *address, type expected, type value) {                          \
    __hip_atomic_compare_exchange_strong(address, &expected, value, __ATOMIC_RELAXED,              \
                                         __HIP_SCOPE);                                             \
    return expected;                                                                               \
  }

__HIP_INTEGER_ATOMICS(int)
__HIP_INTEGER_ATOMICS(unsigned int)
__HIP_INTEGER_ATOMICS(unsigned long)
__HIP_INTEGER_ATOMICS(unsigned long long)
__HIP_ATOMICS(float)
__HIP_ATOMICS(double)
