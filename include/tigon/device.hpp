// Where functions are compiled for and run: devices and streams. Defined in runtime/.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace tigon {

class Device {
 public:
  enum class Kind : std::uint8_t { best, cpu, cuda };

  constexpr Device() = default;  // the best one present, chosen when it is first needed
  static Device best();          // that choice, made now: the first GPU with a driver and an NVRTC, else the CPU
  static constexpr Device cpu() { return Device(Kind::cpu, 0); }
  static constexpr Device cuda(int ordinal = 0) { return Device(Kind::cuda, ordinal); }

  [[nodiscard]] constexpr Kind kind() const { return kind_; }
  [[nodiscard]] constexpr int ordinal() const { return ordinal_; }
  [[nodiscard]] std::string name() const;
  constexpr bool operator==(const Device&) const = default;

 private:
  constexpr Device(Kind kind, int ordinal) : kind_(kind), ordinal_(ordinal) {}
  Kind kind_ = Kind::best;
  int ordinal_ = 0;
};

// An order of execution on a device. On a CPU it is synchronous. Copies share the stream.
class Stream {
 public:
  Stream() : device_(Device::cpu()) {}
  explicit Stream(Device device);                   // makes one
  static Stream wrap(Device device, void* native);  // of the caller's, for example a cudaStream_t
  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] void* native() const { return native_; }
  void synchronize() const;  // also reports what checked indices flagged

 private:
  Device device_;
  void* native_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace tigon
