// What the code generator says of a kernel, and a call's arguments as the kernel wants them.
#pragma once

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/string.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "hip.h"

namespace mfmadsl {

// TVM's own object of that key, whose header the wheel lacks; the same fields in the same order.
class FunctionInfoObj : public tvm::ffi::Object {
 public:
  tvm::ffi::String name;
  tvm::ffi::Array<DLDataType> arg_types;
  tvm::ffi::Array<tvm::ffi::String> launch_param_tags;
  tvm::ffi::Array<int64_t> arg_extra_tags;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("runtime.FunctionInfo", FunctionInfoObj, tvm::ffi::Object);
};

class FunctionInfo : public tvm::ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(FunctionInfo, tvm::ffi::ObjectRef, FunctionInfoObj);
};

// One kernel of a code object: the types of its arguments, and what each value after them means,
// such as "blockIdx.x".
struct Kernel {
  std::string name;
  std::vector<DLDataType> types;
  std::vector<std::string> tags;
  std::vector<int32_t> extra;  // kept for those who save the module again
};

inline Kernel kernel_of(const FunctionInfo& info) {
  Kernel kernel;
  kernel.name = info->name;
  for (DLDataType type : info->arg_types) kernel.types.push_back(type);
  for (const tvm::ffi::String& tag : info->launch_param_tags) kernel.tags.push_back(tag);
  for (int64_t tag : info->arg_extra_tags) kernel.extra.push_back(static_cast<int32_t>(tag));
  return kernel;
}

// The numbers of a launch.
struct Launch {
  std::array<unsigned, 3> grid{1, 1, 1};
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned lds_bytes = 0;
  bool empty = false;  // an extent is 0: there is nothing to do

  std::string described() const {
    auto three = [](const std::array<unsigned, 3>& extents) {
      return text(extents[0], " x ", extents[1], " x ", extents[2]);
    };
    return text("grid ", three(grid), ", block ", three(block), ", ", lds_bytes,
                " bytes of LDS besides");
  }
};

// How a kernel is called: made once, when its function is taken from the module.
class Signature {
 public:
  // Throws for what no kernel can be given.
  explicit Signature(const Kernel& kernel) : name_(kernel.name) {
    for (DLDataType type : kernel.types) parameters_.push_back(parameter(type));
    for (const std::string& tag : kernel.tags) places_.push_back(place(tag));
  }

  // The block of arguments, each aligned to its size as in C, and the device that tensors lie on,
  // or -1. Throws unless each argument is what the kernel takes.
  std::vector<char> packed(tvm::ffi::PackedArgs arguments, int* device) const {
    size_t wanted = parameters_.size() + places_.size();
    if (static_cast<size_t>(arguments.size()) != wanted) {
      refuse(text(name_, " takes ", wanted, " arguments (", parameters_.size(),
                  " of its own, then grid and block), not ", arguments.size()));
    }
    std::vector<char> block;
    block.reserve(8 * parameters_.size());
    *device = -1;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      uint64_t bits = value(static_cast<int>(i), arguments, device);
      size_t bytes = parameters_[i].bytes;
      block.resize((block.size() + bytes - 1) / bytes * bytes + bytes);
      std::memcpy(block.data() + block.size() - bytes, &bits, bytes);
    }
    return block;
  }

  Launch launch(tvm::ffi::PackedArgs arguments) const {
    Launch launch;
    for (size_t i = 0; i < places_.size(); ++i) {
      int index = static_cast<int>(parameters_.size() + i);
      TVMFFIAny raw = arguments[index].CopyToTVMFFIAny();
      if (raw.type_index != kTVMFFIInt || raw.v_int64 < 0 || raw.v_int64 > UINT32_MAX) {
        refuse(text(argument(index), ", of the launch, is a number from 0 to 2^32 - 1"));
      }
      unsigned extent = static_cast<unsigned>(raw.v_int64);
      int place = places_[i];
      if (place == kLds) {
        launch.lds_bytes = extent;
        continue;
      }
      launch.empty |= extent == 0;
      (place < 3 ? launch.grid[place] : launch.block[place - 3]) = extent;
    }
    return launch;
  }

 private:
  enum class Kind { kPointer, kInteger, kFloat };
  struct Parameter {
    Kind kind;
    size_t bytes;
  };
  static constexpr int kLds = 6;  // places of grid and block are 0 to 5

  Parameter parameter(DLDataType type) const {
    if (type.lanes == 1) {
      size_t bytes = type.bits / 8;
      switch (type.code) {
        case kDLOpaqueHandle: return {Kind::kPointer, sizeof(void*)};
        case kDLBool: return {Kind::kInteger, 1};
        case kDLInt:
        case kDLUInt:
          if (type.bits == 1) return {Kind::kInteger, 1};
          if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) return {Kind::kInteger, bytes};
          break;
        case kDLFloat:
          if (bytes == 4 || bytes == 8) return {Kind::kFloat, bytes};
          break;
        default: break;
      }
    }
    std::string type_name = tvm::ffi::DLDataTypeToString(type);
    refuse(text(name_, ": an argument of type ", type_name, " cannot be given to a kernel; pass ",
                "integers, float32, float64 or arrays"));
  }

  int place(const std::string& tag) const {
    static const char* const known[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                        "threadIdx.x", "threadIdx.y", "threadIdx.z",
                                        "tirx.use_dyn_shared_memory"};
    for (int i = 0; i <= kLds; ++i) {
      if (tag == known[i]) return i;
    }
    refuse(text(name_, ": a launch with ", tag, " is not known on GPUs of AMD"));
  }

  std::string argument(int index) const {
    return text("argument ", index + 1, " of ", name_);
  }

  // The bits of an argument, of which the first `bytes` are the kernel's.
  uint64_t value(int index, tvm::ffi::PackedArgs arguments, int* device) const {
    TVMFFIAny raw = arguments[index].CopyToTVMFFIAny();
    const Parameter& parameter = parameters_[index];
    if (parameter.kind == Kind::kPointer) return pointer(index, raw, device);
    bool integer = raw.type_index == kTVMFFIInt || raw.type_index == kTVMFFIBool;
    if (parameter.kind == Kind::kInteger) {
      if (!integer) refuse(text(argument(index), " is an integer"));
      if (!fits(raw.v_int64, parameter.bytes)) {
        refuse(text(argument(index), " has ", 8 * parameter.bytes, " bits, too few for ",
                    raw.v_int64));
      }
      return static_cast<uint64_t>(raw.v_int64);
    }
    if (!integer && raw.type_index != kTVMFFIFloat) refuse(text(argument(index), " is a number"));
    double number = integer ? static_cast<double>(raw.v_int64) : raw.v_float64;
    uint64_t bits = 0;
    if (parameter.bytes == 4) {
      float single = static_cast<float>(number);
      std::memcpy(&bits, &single, sizeof(single));
    } else {
      std::memcpy(&bits, &number, sizeof(number));
    }
    return bits;
  }

  // With a sign or without.
  static bool fits(int64_t number, size_t bytes) {
    if (bytes == sizeof(number)) return true;
    int64_t bound = int64_t{1} << (8 * bytes);
    return -bound / 2 <= number && number < bound;
  }

  static bool contiguous(const DLTensor& tensor) {
    int64_t step = 1;
    for (int i = tensor.ndim - 1; tensor.strides != nullptr && i >= 0; --i) {
      if (tensor.shape[i] != 1 && tensor.strides[i] != step) return false;
      step *= tensor.shape[i];
    }
    return true;
  }

  uint64_t pointer(int index, const TVMFFIAny& raw, int* device) const {
    const DLTensor* tensor = nullptr;
    if (raw.type_index == kTVMFFIOpaquePtr) return reinterpret_cast<uint64_t>(raw.v_ptr);
    if (raw.type_index == kTVMFFINone) return 0;
    if (raw.type_index == kTVMFFIDLTensorPtr) tensor = static_cast<const DLTensor*>(raw.v_ptr);
    if (raw.type_index == kTVMFFITensor) tensor = TVMFFITensorGetDLTensorPtr(raw.v_obj);
    if (tensor == nullptr || tensor->device.device_type != kDLROCM) {
      refuse(text(argument(index), " is an array on a GPU of AMD, such as one of tvm.rocm(0)"));
    }
    if (*device >= 0 && *device != tensor->device.device_id) {
      refuse(text(argument(index), " lies on another GPU than those before it"));
    }
    if (!contiguous(*tensor)) {
      refuse(text(argument(index), " is strided: a kernel takes elements that lie row by row"));
    }
    *device = tensor->device.device_id;
    return reinterpret_cast<uint64_t>(tensor->data) + tensor->byte_offset;
  }

  std::string name_;
  std::vector<Parameter> parameters_;
  std::vector<int> places_;
};

}  // namespace mfmadsl
