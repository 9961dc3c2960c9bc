// TVM's device interface on HIP: memory, copies, streams, and what a chip is like.
#pragma once

#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/runtime/device_api.h>

#include <cstring>
#include <string>

#include "hip.h"

namespace mfmadsl {

using tvm::Device;
using tvm::runtime::DeviceAttrKind;

// As HIP calls the chip, such as gfx942:sramecc+:xnack-.
inline std::string chip_name(int device) {
  char properties[hip::kPropertiesBytes] = {};
  hip::get_device_properties(properties, device);
  const char* name = properties + hip::kGcnArchNameOffset;
  return std::string(name, strnlen(name, hip::kGcnArchNameBytes));
}

// What a compiler calls it: gfx942.
inline std::string chip(int device) {
  std::string name = chip_name(device);
  return name.substr(0, name.find(':'));
}

class RocmDevice final : public tvm::runtime::DeviceAPI {
 public:
  static RocmDevice* instance() {
    static RocmDevice* device = new RocmDevice();  // never destroyed: tensors may outlive statics
    return device;
  }

  // Whether this thread's TVM is to hear that there is no device: if it is above 0.
  static int& hidden() {
    static thread_local int depth = 0;
    return depth;
  }

  void SetDevice(Device device) final { set_current(device.device_id); }

  void GetAttr(Device device, DeviceAttrKind kind, tvm::ffi::Any* value) final {
    int id = device.device_id;
    using namespace tvm::runtime;
    switch (kind) {
      case kExist: *value = exists(id); return;
      case kMaxThreadsPerBlock: *value = attribute(hip::kMaxThreadsPerBlock, id); return;
      case kWarpSize: *value = attribute(hip::kWarpSize, id); return;
      case kMaxSharedMemoryPerBlock: *value = attribute(hip::kMaxSharedMemoryPerBlock, id); return;
      case kComputeVersion: *value = tvm::ffi::String(chip(id)); return;
      case kDeviceName: *value = tvm::ffi::String(name(id)); return;
      case kMaxClockRate: *value = attribute(hip::kClockRate, id); return;
      case kMultiProcessorCount: *value = attribute(hip::kMultiprocessorCount, id); return;
      case kMaxThreadDimensions: *value = tvm::ffi::String(block_limits(id)); return;
      case kMaxRegistersPerBlock: *value = attribute(hip::kMaxRegistersPerBlock, id); return;
      case kGcnArch: *value = tvm::ffi::String(chip_name(id)); return;
      case kApiVersion: *value = version(&hip::runtime_get_version); return;
      case kDriverVersion:
        *value = tvm::ffi::String(text(version(&hip::driver_get_version)));
        return;
      case kL2CacheSizeBytes: *value = attribute(hip::kL2CacheSize, id); return;
      case kTotalGlobalMemory: *value = total_memory(id); return;
      case kAvailableGlobalMemory: *value = free_memory(id); return;
      case kImagePitchAlignment: break;
    }
    *value = nullptr;  // None: the device does not have it
  }

  void* AllocDataSpace(Device device, size_t bytes, size_t alignment, DLDataType) final {
    if (bytes == 0) return nullptr;  // HIP's own answer
    void* data = nullptr;
    std::string what = text(" of ", bytes, " bytes");
    if (device.device_type == kDLROCMHost) {
      hip::host_malloc.check(hip::host_malloc.status(&data, bytes, 0), what);
    } else {
      OnDevice current(device.device_id);
      hip::malloc.check(hip::malloc.status(&data, bytes),
                        text(what, " on rocm:", device.device_id));
    }
    if (alignment != 0 && reinterpret_cast<uintptr_t>(data) % alignment != 0) {
      FreeDataSpace(device, data);
      fail(text("memory aligned to ", alignment, " bytes was asked for, and HIP has given other"));
    }
    return data;
  }

  // Where TVM frees an array nothing may be thrown: of a broken device the next use tells.
  void FreeDataSpace(Device device, void* data) final {
    if (data == nullptr) return;
    if (device.device_type == kDLROCMHost) {
      hip::host_free.status(data);
      return;
    }
    try {
      OnDevice current(device.device_id);
      hip::free.status(data);
    } catch (const tvm::ffi::Error&) {
    }
  }

  // A part of an array is the address of its first element.
  bool SupportsDevicePointerArithmeticsOnHost() final { return true; }

  TVMStreamHandle CreateStream(Device device) final {
    OnDevice current(device.device_id);
    void* stream = nullptr;
    hip::stream_create(&stream);
    return stream;
  }

  void FreeStream(Device device, TVMStreamHandle stream) final {
    OnDevice current(device.device_id);
    hip::stream_destroy(stream);
  }

  // Without a stream: of all streams, whoever made them.
  void StreamSync(Device device, TVMStreamHandle stream) final {
    OnDevice current(device.device_id);
    if (stream == nullptr) {
      hip::device_synchronize();
    } else {
      hip::stream_synchronize(stream);
    }
  }

  void SyncStreamFromTo(Device device, TVMStreamHandle from, TVMStreamHandle to) final {
    OnDevice current(device.device_id);
    void* event = nullptr;
    hip::event_create_with_flags(&event, hip::kEventDisableTiming);
    int recorded = hip::event_record.status(event, from);
    int waits = recorded == hip::kSuccess ? hip::stream_wait_event.status(to, event, 0) : 0;
    hip::event_destroy.status(event);  // HIP keeps it until the streams have passed it
    hip::event_record.check(recorded);
    hip::stream_wait_event.check(waits);
  }

 protected:
  // A copy that is given no stream goes behind what this thread's current stream does.
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset,
                      size_t bytes, Device from_device, Device to_device, DLDataType,
                      TVMStreamHandle stream) final {
    if (bytes == 0) return;
    const char* source = static_cast<const char*>(from) + from_offset;
    char* target = static_cast<char*>(to) + to_offset;
    bool from_gpu = on_gpu(from_device), to_gpu = on_gpu(to_device);
    if (!from_gpu && !to_gpu) {
      std::memcpy(target, source, bytes);
      return;
    }
    Device gpu = from_gpu ? from_device : to_device;
    OnDevice current(gpu.device_id);
    bool waits = stream == nullptr && !(from_gpu && to_gpu);
    if (stream == nullptr) stream = TVMFFIEnvGetStream(kDLROCM, gpu.device_id);
    if (from_gpu && to_gpu && from_device.device_id != to_device.device_id) {
      hip::memcpy_peer_async(target, to_device.device_id, source, from_device.device_id, bytes,
                             stream);
      return;
    }
    int kind = !from_gpu ? hip::kHostToDevice
               : to_gpu  ? hip::kDeviceToDevice
                         : hip::kDeviceToHost;
    if (stream == nullptr) {
      hip::memcpy(target, source, bytes, kind);
    } else {
      hip::memcpy_async(target, source, bytes, kind, stream);
      if (waits) hip::stream_synchronize(stream);
    }
  }

 private:
  static bool on_gpu(Device device) {
    switch (device.device_type) {
      case kDLROCM: return true;
      case kDLROCMHost:
      case kDLCPU: return false;
      default: break;
    }
    refuse(text("memory is copied between a GPU of AMD and the host, not to or from a device of ",
                "type ", tvm::runtime::DLDeviceType2Str(device.device_type)));
  }

  static bool exists(int device) {
    int count = 0;
    if (hidden() > 0 || !hip::Library::instance().found()) return false;
    return hip::get_device_count.status(&count) == hip::kSuccess && 0 <= device && device < count;
  }

  static int attribute(hip::Attribute attribute, int device) {
    int value = 0;
    hip::device_get_attribute(&value, attribute, device);
    return value;
  }

  static int version(hip::Function<int*>* ask) {
    int value = 0;
    (*ask)(&value);
    return value;
  }

  static std::string name(int device) {
    char text[256] = {};
    hip::device_get_name(text, sizeof(text) - 1, device);
    return text;
  }

  static std::string block_limits(int device) {
    return text("[", attribute(hip::kMaxBlockDimX, device), ", ",
                attribute(hip::kMaxBlockDimY, device), ", ",
                attribute(hip::kMaxBlockDimZ, device), "]");
  }

  static int64_t total_memory(int device) {
    size_t bytes = 0;
    hip::device_total_mem(&bytes, device);
    return static_cast<int64_t>(bytes);
  }

  static int64_t free_memory(int device) {
    OnDevice current(device);
    size_t available = 0, total = 0;
    hip::mem_get_info(&available, &total);
    return static_cast<int64_t>(available);
  }
};

}  // namespace mfmadsl
