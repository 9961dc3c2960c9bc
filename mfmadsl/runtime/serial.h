// The bytes of a module in an exported library, as TVM writes them: its format, its kernels, its
// code object. Numbers are little-endian; lists and texts begin with their length in 64 bits.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "kernel.h"

namespace mfmadsl {

struct Content {
  std::string format;                                   // "hsaco"
  std::vector<std::pair<std::string, Kernel>> kernels;  // in the order of the code generator
  std::string code;
};

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(const std::string& value) {
    number<uint64_t>(value.size());
    bytes_ += value;
  }
  template <typename Element, typename Put>
  void list(const std::vector<Element>& elements, Put put) {
    number<uint64_t>(elements.size());
    for (const Element& element : elements) put(element);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

[[noreturn]] inline void not_a_module(const std::string& why) {
  refuse(text("this is no module for GPUs of AMD as TVM 0.27 exports them: ", why));
}

// Throws where the bytes end before what they promise.
class Reader {
 public:
  Reader(const char* data, size_t size) : next_(data), left_(size) {}

  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(value)), sizeof(value));
    return value;
  }
  std::string text() {
    uint64_t size = number<uint64_t>();
    return std::string(take(size), size);
  }
  template <typename Get>
  void list(Get get) {
    for (uint64_t count = number<uint64_t>(); count > 0; --count) get();
  }
  bool done() const { return left_ == 0; }

 private:
  const char* take(uint64_t size) {
    if (size > left_) not_a_module("it is cut off");
    const char* taken = next_;
    next_ += size;
    left_ -= size;
    return taken;
  }

  const char* next_;
  uint64_t left_;
};

inline std::string saved(const Content& content) {
  Writer writer;
  writer.text(content.format);
  writer.list(content.kernels, [&](const std::pair<std::string, Kernel>& named) {
    const Kernel& kernel = named.second;
    writer.text(named.first);
    writer.text(kernel.name);
    writer.list(kernel.types, [&](DLDataType type) {
      writer.number(type.code);
      writer.number(type.bits);
      writer.number(type.lanes);
    });
    writer.list(kernel.tags, [&](const std::string& tag) { writer.text(tag); });
    writer.list(kernel.extra, [&](int32_t tag) { writer.number(tag); });
  });
  writer.text(content.code);
  return writer.take();
}

inline Content loaded(const char* data, size_t size) {
  Reader reader(data, size);
  Content content;
  content.format = reader.text();
  reader.list([&] {
    std::string name = reader.text();
    Kernel kernel;
    kernel.name = reader.text();
    reader.list([&] {
      DLDataType type;
      type.code = reader.number<uint8_t>();
      type.bits = reader.number<uint8_t>();
      type.lanes = reader.number<uint16_t>();
      kernel.types.push_back(type);
    });
    reader.list([&] { kernel.tags.push_back(reader.text()); });
    reader.list([&] { kernel.extra.push_back(reader.number<int32_t>()); });
    content.kernels.emplace_back(name, kernel);
  });
  content.code = reader.text();
  if (!reader.done()) not_a_module("it goes on behind its end");
  return content;
}

}  // namespace mfmadsl
