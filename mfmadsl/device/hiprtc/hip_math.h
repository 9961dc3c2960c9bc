/* Functions of one and several numbers: those that LLVM has instructions or expansions for, and of
   math_functions.ll. */

#define __HIP_ONE(type, name, builtin)                                                             \
  __HIP_INLINE type name(type x) { return builtin(x); }
#define __HIP_TWO(type, name, builtin)                                                             \
  __HIP_INLINE type name(type x, type y) { return builtin(x, y); }
#define __HIP_BOTH(kind, name)                                                                     \
  kind(float, name##f, __builtin_##name##f) kind(double, name, __builtin_##name)                   \
      kind(float, name, __builtin_##name##f)

__HIP_BOTH(__HIP_ONE, fabs)
__HIP_BOTH(__HIP_ONE, sqrt)
__HIP_BOTH(__HIP_ONE, floor)
__HIP_BOTH(__HIP_ONE, ceil)
__HIP_BOTH(__HIP_ONE, trunc)
__HIP_BOTH(__HIP_ONE, rint)
__HIP_BOTH(__HIP_ONE, round)
__HIP_BOTH(__HIP_ONE, nearbyint)
__HIP_BOTH(__HIP_TWO, fmin)
__HIP_BOTH(__HIP_TWO, fmax)
__HIP_BOTH(__HIP_TWO, copysign)
__HIP_ONE(float, expf, __builtin_expf)
__HIP_ONE(float, exp, __builtin_expf)
__HIP_ONE(float, exp2f, __builtin_exp2f)
__HIP_ONE(float, exp2, __builtin_exp2f)
__HIP_ONE(float, exp10f, __builtin_exp10f)
__HIP_ONE(float, logf, __builtin_logf)
__HIP_ONE(float, log, __builtin_logf)
__HIP_ONE(float, log2f, __builtin_log2f)
__HIP_ONE(float, log2, __builtin_log2f)
__HIP_ONE(float, log10f, __builtin_log10f)
__HIP_ONE(float, log10, __builtin_log10f)
__HIP_TWO(float, fmodf, __builtin_fmodf)
__HIP_ONE(float, __expf, __builtin_expf)
__HIP_ONE(float, __logf, __builtin_logf)
__HIP_ONE(float, __sinf, __builtin_sinf)
__HIP_ONE(float, __cosf, __builtin_cosf)

__HIP_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__HIP_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__HIP_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
__HIP_INLINE float ldexpf(float x, int exponent) { return __builtin_ldexpf(x, exponent); }
__HIP_INLINE double ldexp(double x, int exponent) { return __builtin_ldexp(x, exponent); }
__HIP_INLINE float __fdividef(float x, float y) { return x / y; }

extern "C" __device__ float rsqrtf(float x) __asm__("mfmadsl.rsqrt");
extern "C" __device__ float tanhf(float x) __asm__("mfmadsl.tanh");
extern "C" __device__ float erff(float x) __asm__("mfmadsl.erf");
extern "C" __device__ float powf(float x, float y) __asm__("mfmadsl.pow");
extern "C" __device__ float sinf(float x) __asm__("mfmadsl.sin");
extern "C" __device__ float cosf(float x) __asm__("mfmadsl.cos");

template <typename T> __HIP_INLINE bool isnan(T x) { return __builtin_isnan(x); }
template <typename T> __HIP_INLINE bool isinf(T x) { return __builtin_isinf(x); }
template <typename T> __HIP_INLINE bool isfinite(T x) { return __builtin_isfinite(x); }

#define __HIP_EXTREMES(type)                                                                       \
  __HIP_INLINE type min(type x, type y) { return y < x ? y : x; }                                  \
  __HIP_INLINE type max(type x, type y) { return x < y ? y : x; }
__HIP_EXTREMES(int)
__HIP_EXTREMES(unsigned int)
__HIP_EXTREMES(long)
__HIP_EXTREMES(unsigned long)
__HIP_EXTREMES(long long)
__HIP_EXTREMES(unsigned long long)
__HIP_TWO(float, min, __builtin_fminf)
__HIP_TWO(float, max, __builtin_fmaxf)
__HIP_TWO(double, min, __builtin_fmin)
__HIP_TWO(double, max, __builtin_fmax)
__HIP_INLINE int abs(int x) { return x < 0 ? -x : x; }
__HIP_INLINE long abs(long x) { return x < 0 ? -x : x; }
__HIP_ONE(float, abs, __builtin_fabsf)
__HIP_ONE(double, abs, __builtin_fabs)

__HIP_INLINE int __popc(unsigned int x) { return __builtin_popcount(x); }
__HIP_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__HIP_INLINE int __clz(int x) { return x ? __builtin_clz(x) : 32; }
__HIP_INLINE int __ffs(int x) { return __builtin_ffs(x); }
__HIP_INLINE unsigned int __brev(unsigned int x) { return __builtin_bitreverse32(x); }

__HIP_INLINE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__HIP_INLINE float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
__HIP_INLINE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__HIP_INLINE unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
