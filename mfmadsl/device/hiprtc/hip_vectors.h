/* Vectors of two and four elements with their arithmetic, as wide in memory as HIP's, and of three
   and one without. */

#define __HIP_VECTORS(type, name)                                                                  \
  typedef type name##2 __attribute__((ext_vector_type(2)));                                        \
  typedef type name##4 __attribute__((ext_vector_type(4)));                                        \
  struct name##1 {                                                                                 \
    type x;                                                                                        \
  };                                                                                               \
  struct name##3 {                                                                                 \
    type x, y, z;                                                                                  \
  };                                                                                               \
  __HIP_INLINE name##1 make_##name##1(type x) { return name##1{x}; }                               \
  __HIP_INLINE name##2 make_##name##2(type x, type y) { return name##2{x, y}; }                    \
  __HIP_INLINE name##3 make_##name##3(type x, type y, type z) { return name##3{x, y, z}; }         \
  __HIP_INLINE name##4 make_##name##4(type x, type y, type z, type w) { return name##4{x, y, z, w}; }

__HIP_VECTORS(signed char, char)
__HIP_VECTORS(unsigned char, uchar)
__HIP_VECTORS(short, short)
__HIP_VECTORS(unsigned short, ushort)
__HIP_VECTORS(int, int)
__HIP_VECTORS(unsigned int, uint)
__HIP_VECTORS(long, long)
__HIP_VECTORS(unsigned long, ulong)
__HIP_VECTORS(float, float)
__HIP_VECTORS(double, double)

struct dim3 {
  unsigned int x, y, z;
  constexpr __host__ __device__ dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1)
      : x(x), y(y), z(z) {}
};
