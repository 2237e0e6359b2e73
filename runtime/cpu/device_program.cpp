// Runs at once on the caller's threads; memory is the host's.
#include "runtime/cpu/device_program.hpp"

#include "runtime/bound.hpp"
#include "runtime/dump.hpp"
#include "runtime/llvm/compiler.hpp"
#include "tigon/buffer.hpp"

namespace tigon::runtime {
namespace {

class CpuBound final : public DeviceBound {
 public:
  CpuBound(std::shared_ptr<const Program> program, dsl::Extents extents, const std::vector<Strides>& input_strides,
           const std::vector<Strides>& output_strides)
      : bound_(std::move(program), std::move(extents), input_strides, output_strides) {}
  [[nodiscard]] std::int64_t workspace_bytes() const override { return bound_.workspace_bytes(); }
  [[nodiscard]] std::int64_t launches() const override { return bound_.launches() + bound_.matmuls(); }
  [[nodiscard]] bool try_run(const Stream&, const LaunchArguments& arguments) const override {
    return bound_.try_run(arguments);
  }

 private:
  Bound bound_;
};

class CpuProgram final : public DeviceProgram {
 public:
  explicit CpuProgram(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  [[nodiscard]] const plan::Plan& plan() const override { return program_->plan; }
  [[nodiscard]] Device device() const override { return Device::cpu(); }
  [[nodiscard]] std::unique_ptr<const DeviceBound> bind(dsl::Extents extents, const std::vector<Strides>& input_strides,
                                                        const std::vector<Strides>& output_strides) const override {
    return std::make_unique<CpuBound>(program_, std::move(extents), input_strides, output_strides);
  }
  [[nodiscard]] std::shared_ptr<void> allocate(const Stream&, std::size_t bytes) const override {
    auto storage = std::make_shared<Storage>(bytes);
    void* data = storage->data();
    return {std::move(storage), data};
  }
  void dump(const std::string& folder) const override {
    const int width = vector_bytes(host_target());
    dump_plan(program_->plan, folder, "ll",
              [width](const plan::Kernel& kernel) { return llvm_text(kernel.scheduled.nest, width).text; });
  }

 private:
  std::shared_ptr<const Program> program_;
};

}  // namespace

std::shared_ptr<const DeviceProgram> cpu_program(std::shared_ptr<const Program> program) {
  return std::make_shared<CpuProgram>(std::move(program));
}

}  // namespace tigon::runtime
