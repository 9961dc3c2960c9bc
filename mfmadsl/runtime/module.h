// A module of kernels: a code object, loaded on each device when a kernel is first launched there.
#pragma once

#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>

#include <cctype>
#include <map>
#include <mutex>
#include <string>

#include "device.h"
#include "serial.h"

namespace mfmadsl {

using Sources = tvm::ffi::Map<tvm::ffi::String, tvm::ffi::String>;

class RocmModule final : public tvm::ffi::ModuleObj {
 public:
  RocmModule(Content content, Sources sources)
      : content_(std::move(content)), sources_(std::move(sources)) {}

  // Unloads the code object; what goes wrong then, such as after HIP's own end, is nobody's.
  ~RocmModule() {
    for (auto& [device, loaded] : loaded_) {
      int before = 0;
      if (hip::get_device.status(&before) != hip::kSuccess) return;
      if (hip::set_device.status(device) != hip::kSuccess) continue;
      hip::device_synchronize.status();  // its kernels may still run
      hip::module_unload.status(loaded.module);
      hip::set_device.status(before);
    }
  }

  const char* kind() const final { return "hip"; }

  int GetPropertyMask() const final {
    return tvm::ffi::Module::kBinarySerializable | tvm::ffi::Module::kRunnable;
  }

  bool ImplementsFunction(const tvm::ffi::String& name) final {
    return kernel(std::string(name)) != nullptr;
  }

  tvm::ffi::Optional<tvm::ffi::Function> GetFunction(const tvm::ffi::String& name) final;

  tvm::ffi::Bytes SaveToBytes() const final { return tvm::ffi::Bytes(saved(content_)); }

  // "hip" is LLVM IR and "asm" assembly, of a module that has just been built.
  tvm::ffi::String InspectSource(const tvm::ffi::String& format) const final {
    if (format == content_.format) return content_.code;
    std::string asked = format;
    auto found = sources_.find(asked.empty() || asked == "llvm" ? "hip" : format);
    return found == sources_.end() ? tvm::ffi::String() : (*found).second;
  }

  // The kernel on a device; loads the code object there if it is not.
  void* function(int device, const std::string& name) {
    std::lock_guard<Mutex> lock(mutex_);
    Loaded& loaded = loaded_[device];
    if (loaded.module == nullptr) {
      int status = hip::module_load_data.status(&loaded.module, content_.code.data());
      if (status != hip::kSuccess) fail(not_loaded(device, status));
    }
    void*& function = loaded.functions[name];
    if (function == nullptr) {
      int status = hip::module_get_function.status(&function, loaded.module, name.c_str());
      hip::module_get_function.check(status, text(" of ", name));
    }
    return function;
  }

 private:
  struct Loaded {
    void* module = nullptr;
    std::map<std::string, void*> functions;
  };

  const Kernel* kernel(const std::string& name) const {
    for (const auto& [key, kernel] : content_.kernels) {
      if (key == name) return &kernel;
    }
    return nullptr;
  }

  std::string not_loaded(int device, int status) {
    loaded_.erase(device);
    std::string message = hip::module_load_data.described(status);
    std::string made_for = target(), here = chip(device);
    if (!made_for.empty() && made_for != here) {
      message += text(": the code object is made for ", made_for, ", and rocm:", device, " is a ",
                      here, "; build it for that");
    }
    return message;
  }

  // The chip that the code object's metadata name, as in amdgcn-amd-amdhsa--gfx942, or nothing.
  std::string target() const {
    const std::string triple = "amdgcn-amd-amdhsa-";
    size_t at = content_.code.find(triple);
    size_t begin = at == std::string::npos ? at : content_.code.find("gfx", at + triple.size());
    if (begin == std::string::npos || begin - at > 32) return "";
    size_t end = begin;
    while (end < content_.code.size() && std::isalnum(content_.code[end])) ++end;
    return content_.code.substr(begin, end - begin);
  }

  Content content_;
  Sources sources_;
  Mutex mutex_;
  std::map<int, Loaded> loaded_;
};

inline tvm::ffi::Optional<tvm::ffi::Function> RocmModule::GetFunction(
    const tvm::ffi::String& name) {
  const Kernel* found = kernel(std::string(name));
  if (found == nullptr) return std::nullopt;
  // A function keeps its module.
  auto self = tvm::ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<RocmModule>(this);
  return tvm::ffi::Function::FromPacked(
      [self, name = found->name, signature = Signature(*found)](tvm::ffi::PackedArgs arguments,
                                                                tvm::ffi::Any*) {
        int device = -1;
        std::vector<char> block = signature.packed(arguments, &device);
        Launch launch = signature.launch(arguments);
        if (launch.empty) return;
        if (device < 0) hip::get_device(&device);
        OnDevice current(device);
        void* function = self->function(device, name);
        size_t bytes = block.size();
        void* extra[] = {hip::kBufferPointer, block.data(), hip::kBufferSize, &bytes, hip::kEnd};
        void* stream = TVMFFIEnvGetStream(kDLROCM, device);
        int status = hip::module_launch_kernel.status(
            function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
            launch.block[1], launch.block[2], launch.lds_bytes, stream, nullptr, extra);
        if (status != hip::kSuccess) {
          hip::module_launch_kernel.check(status,
                                          text(" of ", name, " (", launch.described(), ")"));
        }
      });
}

inline tvm::ffi::Module made(Content content, Sources sources) {
  if (content.format != "hsaco") {
    refuse(text("a module for GPUs of AMD holds a code object (hsaco), not ", content.format));
  }
  return tvm::ffi::Module(
      tvm::ffi::make_object<RocmModule>(std::move(content), std::move(sources)));
}

}  // namespace mfmadsl
