// What the typed half of compile hands to the runtime: requests to compile, and launches as spans of raw buffers.
#pragma once
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tigon/detail/signature.hpp"
#include "tigon/device.hpp"

namespace tigon::dsl {
struct Graph;
}

namespace tigon {

// A kernel that has become ready, of those that a compile needs.
struct CompileProgress {
  std::size_t done = 0, total = 0;
  std::string_view kernel;
};

struct CompileOptions {
  Device device = Device::cpu();
  std::size_t memory_budget = 0;  // bytes of workspace; 0: no limit
  bool exact = false;             // no operand and no result of a large contraction is rounded to 16 bits
  bool unfused = false;           // one kernel per node, every value stored: for comparison
  // Called once for each kernel, one call at a time, from whichever thread made it ready; what it throws ends the
  // compile. For the progress bar of a program that compiles its functions before it starts.
  std::function<void(const CompileProgress&)> progress{};
};

// Since the function was compiled.
struct Counters {
  std::int64_t launches = 0;      // of kernels and matmuls
  std::int64_t binds = 0;         // extents met for the first time
  std::int64_t compilations = 0;  // of kernels, 0 when all came from the cache
};

namespace detail {

struct RawBuffer {
  void* pointer = nullptr;  // null: absent
  DType dtype = DType::f32;
  std::uint8_t rank = 0;
  Device device = Device::cpu();
  std::array<std::int64_t, max_rank> extents{};  // outermost first
  std::array<std::int64_t, max_rank> strides{};  // in elements
};

// A number of the host: the bits of its own dtype, lowest first, as a cell of a kernel's parameters holds them.
struct RawScalar {
  std::uint64_t bits = 0;
};
template <class D>
RawScalar raw_scalar(D value) {
  static_assert(is_dtype<D>, "tigon: unknown dtype: use one of bool, i32, i64, f16, bf16, f32, f64.");
  RawScalar raw;
  std::memcpy(&raw.bits, &value, sizeof value);
  return raw;
}

// An axis' extent: one value, or a range of values that binds may bring.
struct GivenExtent {
  AxisRef axis;
  std::int64_t low = 0, high = 0;
};

// Paths stand in the order in which launches pass them. One that the graph lacks (an absent optional slot, a gradient
// that was not asked for, an input that nothing reads) keeps its place and is ignored.
struct CompileRequest {
  std::shared_ptr<const dsl::Graph> graph;
  std::vector<std::string> inputs;
  std::vector<std::string> scalars;
  std::vector<std::string> outputs;
  std::vector<GivenExtent> extents;
  CompileOptions options;
  std::vector<std::size_t> absent{};  // inputs by number: optional arguments that the function was traced without
};

// A compiled function. Shared by threads; its launches lock nothing once extents are bound.
class CompiledCore {
 public:
  virtual ~CompiledCore() = default;
  [[nodiscard]] const CompileRequest& request() const { return request_; }

  // The hot path: allocates nothing, never synchronises. Throws Error naming the path of a null or unfit argument.
  // An output that shares an input's buffer may be null: the input's is meant.
  virtual void launch(const Stream& stream, std::span<const RawBuffer> inputs, std::span<const RawScalar> scalars,
                      std::span<const RawBuffer> outputs, void* workspace, std::size_t workspace_bytes) = 0;
  // Sugar: outputs and workspace come from a pool; fills `outputs`, which live as long as what is returned.
  virtual std::shared_ptr<void> launch_pooled(const Stream& stream, std::span<const RawBuffer> inputs,
                                              std::span<const RawScalar> scalars, std::span<RawBuffer> outputs) = 0;
  // For the largest extents given to compile, and for those of the arguments at hand.
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  [[nodiscard]] virtual std::size_t workspace_bytes(std::span<const RawBuffer> inputs) = 0;
  [[nodiscard]] virtual Counters counters() const = 0;

 protected:
  explicit CompiledCore(CompileRequest request) : request_(std::move(request)) {}

 private:
  CompileRequest request_;
};

// Defined in runtime/.
std::shared_ptr<CompiledCore> compile_core(CompileRequest request);

// Defined in dsl/trace_launch.cpp.
// Throws Error naming an axis that the function does not have, or that is given twice.
void check_extents(const dsl::Graph& graph, std::span<const GivenExtent> extents);
[[noreturn]] void refuse_scalar(const CompiledCore& core, std::size_t number);
[[noreturn]] void refuse_count(const CompiledCore& core, std::string_view what, std::size_t found,
                               std::size_t expected);
void check_gradient(const RawBuffer& gradient, DType wanted);
// Places for `count` buffers of this thread beyond the few that fit on the stack; grows, never shrinks.
std::span<RawBuffer> spare_buffers(int which, std::size_t count);
std::span<RawScalar> spare_scalars(std::size_t count);

}  // namespace detail
}  // namespace tigon
