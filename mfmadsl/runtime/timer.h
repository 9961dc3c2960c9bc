// TVM's timer on HIP's events: what time_evaluator takes.
#pragma once

#include <tvm/ffi/object.h>

#include "device.h"

namespace mfmadsl {

// The interface of TVM's timers, with the layout and the type key of tvm/runtime/timer.h, which
// needs a header that the wheel lacks.
class TimerNode : public tvm::ffi::Object {
 public:
  virtual void Start() = 0;
  virtual void Stop() = 0;
  virtual int64_t SyncAndGetElapsedNanos() = 0;
  virtual ~TimerNode() {}

  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO("runtime.TimerNode", TimerNode, tvm::ffi::Object);
};

// Times what the current stream of its device does between Start and Stop.
class RocmTimer final : public TimerNode {
 public:
  explicit RocmTimer(Device device) : device_(device) {
    OnDevice current(device_.device_id);
    hip::event_create(&start_);
    int created = hip::event_create.status(&stop_);
    if (created != hip::kSuccess) {
      hip::event_destroy.status(start_);
      hip::event_create.check(created);
    }
  }
  ~RocmTimer() override {
    hip::event_destroy.status(start_);
    hip::event_destroy.status(stop_);
  }

  void Start() final { record(start_); }
  void Stop() final { record(stop_); }

  int64_t SyncAndGetElapsedNanos() final {
    float milliseconds = 0;
    OnDevice current(device_.device_id);
    hip::event_synchronize(stop_);
    hip::event_elapsed_time(&milliseconds, start_, stop_);
    return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("mfmadsl.RocmTimer", RocmTimer, TimerNode);

 private:
  void record(void* event) {
    OnDevice current(device_.device_id);
    hip::event_record(event, TVMFFIEnvGetStream(kDLROCM, device_.device_id));
  }

  Device device_;
  void* start_ = nullptr;
  void* stop_ = nullptr;
};

}  // namespace mfmadsl
