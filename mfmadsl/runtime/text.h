// The words of errors, and TVM's headers without iostreams.
//
// ziglang has the headers of libc++, and TVM's wheel is linked with libstdc++. What is thrown here is
// caught in TVM, so both must throw by the same library: of libc++ only what its headers have can be
// used. That leaves out iostreams, by which TVM's headers word their errors.
#pragma once

#include <tvm/ffi/error.h>

#include <string>
#include <string_view>
#include <type_traits>

#ifdef _LIBCPP_VERSION
#ifndef MFMADSL_ONLY_HEADERS
#error "this compiler has libc++ and TVM has libstdc++: take another, or pip's ziglang without CXX"
#endif
// What is in libc++ unless it is here, and of what libstdc++ has the rest.
template class std::basic_string<char>;
template std::string std::operator+(const char*, const std::string&);
std::bad_alloc::bad_alloc() noexcept {}
std::bad_array_new_length::bad_array_new_length() noexcept {}
#endif

namespace mfmadsl {

template <typename Part>
void append(std::string* all, const Part& part) {
  if constexpr (std::is_convertible_v<Part, std::string_view>) {
    *all += std::string_view(part);
  } else if constexpr (std::is_integral_v<Part>) {
    char digits[24];
    size_t begin = sizeof(digits);
    bool negative = part < 0;
    // Of the most negative number there is no opposite.
    for (auto rest = part; rest != 0 || begin == sizeof(digits); rest /= 10) {
      int digit = static_cast<int>(rest % 10);
      digits[--begin] = static_cast<char>('0' + (digit < 0 ? -digit : digit));
    }
    if (negative) digits[--begin] = '-';
    all->append(digits + begin, sizeof(digits) - begin);
  }
}

// Texts and whole numbers, one behind the other.
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::string all;
  (append(&all, parts), ...);
  return all;
}

// What HIP does not do.
[[noreturn]] inline void fail(const std::string& message) {
  throw tvm::ffi::Error("HipError", message, "");
}

// What is asked of us that cannot be right.
[[noreturn]] inline void refuse(const std::string& message) {
  throw tvm::ffi::Error("ArgumentError", message, "");
}

// In the place of TVM's own, which has a stream: throws at the end of its statement.
class Thrown {
 public:
  explicit Thrown(const char* kind) : kind_(kind) {}
  [[noreturn]] ~Thrown() noexcept(false) { throw tvm::ffi::Error(kind_, message_, ""); }

  template <typename Part>
  Thrown& operator<<(const Part& part) {
    append(&message_, part);
    return *this;
  }

 private:
  const char* kind_;
  std::string message_;
};

}  // namespace mfmadsl

#undef TVM_FFI_THROW
#define TVM_FFI_THROW(ErrorKind) ::mfmadsl::Thrown(#ErrorKind)
#undef TVM_FFI_CHECK_BINARY_OP
#define TVM_FFI_CHECK_BINARY_OP(name, op, x, y, ErrorKind) \
  if (!((x)op(y))) TVM_FFI_THROW(ErrorKind) << "Check failed: " #x " " #op " " #y ": "
