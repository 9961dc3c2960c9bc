/* What the lanes of a wave tell each other. */

__HIP_INLINE unsigned int __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
__HIP_INLINE unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_ballot_w64(predicate != 0);
}
__HIP_INLINE unsigned long long __activemask() { return __builtin_amdgcn_ballot_w64(true); }
__HIP_INLINE int __any(int predicate) { return __ballot(predicate) != 0; }
__HIP_INLINE int __all(int predicate) { return __ballot(predicate) == __activemask(); }

__HIP_INLINE int __hip_read_lane(int value, int lane) {
  return __builtin_amdgcn_ds_bpermute(lane << 2, value);
}

/* The value of another lane, word by word; `lane` is none of 0 to 63 where there is no such. */
template <typename T> __HIP_INLINE T __hip_of_lane(T value, int lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take values of four and eight bytes");
  if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, __hip_read_lane(__builtin_bit_cast(int, value), lane));
  } else {
    int2 words = __builtin_bit_cast(int2, value);
    return __builtin_bit_cast(
        T, int2{__hip_read_lane(words.x, lane), __hip_read_lane(words.y, lane)});
  }
}
template <typename T> __HIP_INLINE T __shfl(T value, int lane, int width = 64) {
  int first = __lane_id() & ~(width - 1);
  return __hip_of_lane(value, first + (lane & (width - 1)));
}
template <typename T> __HIP_INLINE T __shfl_up(T value, unsigned int delta, int width = 64) {
  int own = __lane_id(), other = own - (int)delta;
  return __hip_of_lane(value, other < (own & ~(width - 1)) ? own : other);
}
template <typename T> __HIP_INLINE T __shfl_down(T value, unsigned int delta, int width = 64) {
  int own = __lane_id(), other = own + (int)delta;
  return __hip_of_lane(value, other > (own | (width - 1)) ? own : other);
}
template <typename T> __HIP_INLINE T __shfl_xor(T value, int mask, int width = 64) {
  int own = __lane_id(), other = own ^ mask;
  return __hip_of_lane(value, other > (own | (width - 1)) ? own : other);
}
