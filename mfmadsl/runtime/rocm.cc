// TVM's runtime for GPUs of AMD, on whatever libamdhip64.so there is. It is one translation unit,
// compiled when it is first needed (mfmadsl/runtime/compile.py).
#include "text.h"  // before other headers of TVM

#include <tvm/ffi/function.h>

#include "device.h"
#include "module.h"
#include "timer.h"

namespace mfmadsl {
namespace {

using tvm::ffi::Any;
using tvm::ffi::Bytes;
using tvm::ffi::PackedArgs;
using tvm::ffi::String;

template <typename Call>
void define(const char* name, Call call) {
  tvm::ffi::Function::SetGlobal(name, tvm::ffi::Function::FromPacked(call), true);
}

// The names under which TVM looks for a device, its timer, and modules that are loaded or built.
void define_all() {
  for (const char* name : {"device_api.rocm", "device_api.rocm_host"}) {
    define(name, [](PackedArgs, Any* result) {
      *result = static_cast<void*>(RocmDevice::instance());
    });
  }
  define("runtime.timer.rocm", [](PackedArgs arguments, Any* result) {
    *result = tvm::ffi::ObjectRef(
        tvm::ffi::make_object<RocmTimer>(arguments[0].cast<DLDevice>()));
  });
  define("runtime.get_rocm_stream", [](PackedArgs, Any* result) {
    int device = 0;
    hip::get_device(&device);
    *result = static_cast<void*>(TVMFFIEnvGetStream(kDLROCM, device));
  });
  for (const char* name : {"ffi.Module.load_from_bytes.hip", "ffi.Module.load_from_bytes.hsaco"}) {
    define(name, [](PackedArgs arguments, Any* result) {
      Bytes bytes = arguments[0].cast<Bytes>();
      *result = made(loaded(bytes.data(), bytes.size()), Sources());
    });
  }
  define("ffi.Module.create.rocm", [](PackedArgs arguments, Any* result) {
    Content content;
    content.code = std::string(arguments[0].cast<Bytes>());
    content.format = std::string(arguments[1].cast<String>());
    for (const auto& [name, info] : arguments[2].cast<tvm::ffi::Map<String, FunctionInfo>>()) {
      content.kernels.emplace_back(std::string(name), kernel_of(info));
    }
    *result = made(std::move(content), arguments[3].cast<Sources>());
  });
}

}  // namespace
}  // namespace mfmadsl

// What Python calls of the library, by TVM's convention for functions of C: 0, or -1 with the error
// kept by TVM.

// register_rocm(names): makes TVM know the device. `names` is what dlopen is asked for, with ':'
// between them.
extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi_register_rocm(void*, const TVMFFIAny* arguments,
                                                          int32_t, TVMFFIAny*) {
  TVM_FFI_SAFE_CALL_BEGIN();
  auto names = tvm::ffi::AnyView::CopyFromTVMFFIAny(arguments[0]).cast<tvm::ffi::String>();
  mfmadsl::hip::Library::instance().look_for(std::string(names));
  mfmadsl::define_all();
  TVM_FFI_SAFE_CALL_END();
}

// hide_devices(more): this thread's TVM hears of no device as long as the sum of all is above 0.
extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi_hide_devices(void*, const TVMFFIAny* arguments,
                                                         int32_t, TVMFFIAny*) {
  TVM_FFI_SAFE_CALL_BEGIN();
  mfmadsl::RocmDevice::hidden() +=
      tvm::ffi::AnyView::CopyFromTVMFFIAny(arguments[0]).cast<int>();
  TVM_FFI_SAFE_CALL_END();
}
