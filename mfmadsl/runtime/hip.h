// What is used of HIP: its constants, and its functions, each found when it is first called.
//
// HIP's headers are not needed, so that the library compiles where no ROCm is. Values are those of
// hip/hip_runtime_api.h of ROCm 6 and 7.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

#include "text.h"

namespace mfmadsl {

// As std::mutex, of which libc++ has no more than a declaration in its headers.
class Mutex {
 public:
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

namespace hip {

constexpr int kSuccess = 0;

enum CopyKind { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };

enum Attribute {
  kClockRate = 5,
  kL2CacheSize = 19,
  kMaxBlockDimX = 26,
  kMaxBlockDimY = 27,
  kMaxBlockDimZ = 28,
  kMaxThreadsPerBlock = 56,
  kMultiprocessorCount = 63,
  kMaxRegistersPerBlock = 71,
  kMaxSharedMemoryPerBlock = 74,
  kWarpSize = 87,
};

constexpr unsigned kEventDisableTiming = 2;

// hipDeviceProp_tR0600, of which only the name of the chip is read.
constexpr size_t kPropertiesBytes = 1472;
constexpr size_t kGcnArchNameOffset = 1160;
constexpr size_t kGcnArchNameBytes = 256;

// Keys of the last argument of hipModuleLaunchKernel.
inline void* const kBufferPointer = reinterpret_cast<void*>(1);
inline void* const kBufferSize = reinterpret_cast<void*>(2);
inline void* const kEnd = reinterpret_cast<void*>(3);

// libamdhip64.so, opened when it is first wanted. Where it is not found it is looked for again the
// next time: another package may have brought it meanwhile.
class Library {
 public:
  static Library& instance() {
    static Library* library = new Library();  // never destroyed: tensors may outlive statics
    return *library;
  }

  // `names` is what dlopen is asked for, in this order, with a ':' between them.
  void look_for(const std::string& names) {
    std::lock_guard<Mutex> lock(mutex_);
    names_ = names;
  }

  bool found() {
    std::string reasons;
    return handle(&reasons) != nullptr;
  }

  // Throws where there is no library, or it has no such function.
  void* function(const char* name) {
    std::string reasons;
    void* library = handle(&reasons);
    if (library == nullptr) {
      fail(text("no GPU of AMD can be used: libamdhip64.so was ",
                reasons.empty() ? "not found" : text("not loaded (", reasons, ")"),
                ". Install ROCm 6 or newer, and set ROCM_PATH if it does not lie in /opt/rocm; or "
                "run the program on an emulated GPU: mfmadsl device -- COMMAND"));
    }
    void* found = dlsym(library, name);
    if (found == nullptr) {
      fail(text("libamdhip64.so has no function ", name, ": it is not of ROCm 6 or newer"));
    }
    return found;
  }

 private:
  // `reasons` is why those that are there are not loaded.
  void* handle(std::string* reasons) {
    std::lock_guard<Mutex> lock(mutex_);
    for (size_t begin = 0; handle_ == nullptr && begin < names_.size();) {
      size_t end = std::min(names_.find(':', begin), names_.size());
      std::string name = names_.substr(begin, end - begin);
      begin = end + 1;
      handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) break;
      std::string reason = dlerror();
      if (reason.rfind(name + ": cannot open", 0) == 0) continue;
      *reasons += text(reasons->empty() ? "" : "; ", reason);
    }
    return handle_;
  }

  Mutex mutex_;
  std::string names_ = "libamdhip64.so";
  void* handle_ = nullptr;
};

// A function of HIP.
template <typename... Parameters>
class Function {
 public:
  explicit constexpr Function(const char* name) : name_(name) {}

  // What HIP returns. Throws only where there is no HIP.
  int status(Parameters... arguments) {
    void* address = address_.load(std::memory_order_acquire);
    if (address == nullptr) {
      address = Library::instance().function(name_);
      address_.store(address, std::memory_order_release);
    }
    return reinterpret_cast<int (*)(Parameters...)>(address)(arguments...);
  }

  // Throws if it is not done.
  void operator()(Parameters... arguments) { check(status(arguments...)); }

  // `what` says of what, and is empty or begins with a blank.
  void check(int status, const std::string& what = "") {
    if (status != kSuccess) fail(described(status, what));
  }

  std::string described(int status, const std::string& what = "") const;

 private:
  const char* name_;
  std::atomic<void*> address_{nullptr};
};

inline Function<int*> get_device_count{"hipGetDeviceCount"};
inline Function<int*> get_device{"hipGetDevice"};
inline Function<int> set_device{"hipSetDevice"};
inline Function<> device_synchronize{"hipDeviceSynchronize"};
inline Function<int*, int, int> device_get_attribute{"hipDeviceGetAttribute"};
inline Function<char*, int, int> device_get_name{"hipDeviceGetName"};
inline Function<size_t*, int> device_total_mem{"hipDeviceTotalMem"};
inline Function<void*, int> get_device_properties{"hipGetDevicePropertiesR0600"};
inline Function<int*> runtime_get_version{"hipRuntimeGetVersion"};
inline Function<int*> driver_get_version{"hipDriverGetVersion"};

inline Function<void**, size_t> malloc{"hipMalloc"};
inline Function<void*> free{"hipFree"};
inline Function<void**, size_t, unsigned> host_malloc{"hipHostMalloc"};
inline Function<void*> host_free{"hipHostFree"};
inline Function<size_t*, size_t*> mem_get_info{"hipMemGetInfo"};
inline Function<void*, const void*, size_t, int> memcpy{"hipMemcpy"};
inline Function<void*, const void*, size_t, int, void*> memcpy_async{"hipMemcpyAsync"};
inline Function<void*, int, const void*, int, size_t, void*> memcpy_peer_async{
    "hipMemcpyPeerAsync"};

inline Function<void**> stream_create{"hipStreamCreate"};
inline Function<void*> stream_destroy{"hipStreamDestroy"};
inline Function<void*> stream_synchronize{"hipStreamSynchronize"};
inline Function<void*, void*, unsigned> stream_wait_event{"hipStreamWaitEvent"};
inline Function<void**> event_create{"hipEventCreate"};
inline Function<void**, unsigned> event_create_with_flags{"hipEventCreateWithFlags"};
inline Function<void*> event_destroy{"hipEventDestroy"};
inline Function<void*, void*> event_record{"hipEventRecord"};
inline Function<void*> event_synchronize{"hipEventSynchronize"};
inline Function<float*, void*, void*> event_elapsed_time{"hipEventElapsedTime"};

inline Function<void**, const void*> module_load_data{"hipModuleLoadData"};
inline Function<void*> module_unload{"hipModuleUnload"};
inline Function<void**, void*, const char*> module_get_function{"hipModuleGetFunction"};
inline Function<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**>
    module_launch_kernel{"hipModuleLaunchKernel"};

template <typename... Parameters>
std::string Function<Parameters...>::described(int status, const std::string& what) const {
  auto told = [status](const char* name) {
    return reinterpret_cast<const char* (*)(int)>(Library::instance().function(name))(status);
  };
  std::string message =
      text(name_, what, ": ", told("hipGetErrorName"), " (", told("hipGetErrorString"), ")");
  // HIP remembers its last error, and would tell it to others.
  reinterpret_cast<int (*)()>(Library::instance().function("hipGetLastError"))();
  return message;
}

}  // namespace hip

// Makes a device the current one of this thread.
inline void set_current(int device) {
  hip::set_device.check(hip::set_device.status(device), text(" of rocm:", device));
}

// Makes a device the current one of this thread, for as long as it lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    hip::get_device(&before_);
    if (before_ == device) return;
    set_current(device);
    changed_ = true;
  }
  ~OnDevice() {
    if (changed_) hip::set_device.status(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace mfmadsl
