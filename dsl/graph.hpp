// The graph: a value, immutable once built; nodes in one arena, operands before their users.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dsl/monoid.hpp"
#include "tigon/dtype.hpp"
#include "tigon/scalar_op.hpp"

namespace tigon::dsl {

using NodeId = std::uint32_t;
using AxisId = std::uint8_t;
inline constexpr NodeId no_node = 0xffffffffu;
inline constexpr AxisId no_axis = 0xff;
inline constexpr int max_axes = 64;  // of one graph

// A set of a graph's axes. Iterates in order of AxisId, which is the order of first use.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  // no_axis stands for none: its set is empty, and no set contains it.
  static constexpr AxisSet of(AxisId axis) { return AxisSet(axis < max_axes ? std::uint64_t{1} << axis : 0); }
  static constexpr AxisSet from_bits(std::uint64_t bits) { return AxisSet(bits); }
  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool contains(AxisId axis) const { return axis < max_axes && ((bits_ >> axis) & 1u) != 0; }
  [[nodiscard]] constexpr bool contains(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr int size() const { return std::popcount(bits_); }
  constexpr AxisSet operator|(AxisSet other) const { return AxisSet(bits_ | other.bits_); }
  constexpr AxisSet operator&(AxisSet other) const { return AxisSet(bits_ & other.bits_); }
  constexpr AxisSet operator-(AxisSet other) const { return AxisSet(bits_ & ~other.bits_); }
  constexpr AxisSet& operator|=(AxisSet other) {
    bits_ |= other.bits_;
    return *this;
  }
  constexpr AxisSet& operator-=(AxisSet other) {
    bits_ &= ~other.bits_;
    return *this;
  }
  constexpr bool operator==(const AxisSet&) const = default;
  class Iterator {
   public:
    constexpr explicit Iterator(std::uint64_t bits) : bits_(bits) {}
    constexpr AxisId operator*() const { return static_cast<AxisId>(std::countr_zero(bits_)); }
    constexpr Iterator& operator++() {
      bits_ &= bits_ - 1;
      return *this;
    }
    constexpr bool operator!=(const Iterator& other) const { return bits_ != other.bits_; }

   private:
    std::uint64_t bits_;
  };
  [[nodiscard]] constexpr Iterator begin() const { return Iterator(bits_); }
  [[nodiscard]] constexpr Iterator end() const { return Iterator(0); }

 private:
  constexpr explicit AxisSet(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

enum class NodeKind : std::uint8_t {
  input,     // payload: Graph::inputs. A tensor (or, in a kernel's graph, a state) handed in
  scalar,    // payload: Graph::scalars. A host number
  constant,  // payload: Graph::constants
  iota,      // payload: AxisId. The global index along the axis; dtype i64
  extent,    // payload: AxisId. The axis' global extent; dtype i64
  map,       // payload: ScalarOp. Operands broadcast by axis name
  cast,      // rounds to the node's dtype
  view,      // payload: Graph::views. Same elements under other axes: split, merge, rename
  fold,      // payload: Graph::folds. Its value is the monoid's state
  finish,    // payload: finish number of the operand's monoid (operand: fold, or an input that is a state)
  scan,      // reserved: payload: Graph::folds, with `exclusive` and `reverse`
  gather,    // payload: Graph::gathers. Operands: table, index. Axes: (table's - axis) | index's
  scatter,   // payload: Graph::scatters. Operands: values, index. Adds values to where index points along a new axis
  random,    // reserved
  loop,      // reserved
  attach,    // operands: value, surrogate or nothing. Erased after differentiation
};
inline constexpr int node_kind_count = 16;

struct Node {
  NodeKind kind = NodeKind::constant;
  DType dtype = DType::f32;  // of the value; for a fold (or a state input): of the state's `element` slots
  std::uint32_t payload = 0;
  std::uint32_t first_operand = 0;  // into Graph::operand_ids
  std::uint16_t operand_count = 0;
  std::uint16_t location = 0;  // into Graph::locations; 0 is unknown
  AxisSet axes;                // that the value varies over; a set: the layout of stored values is the plan's affair
};

struct SourceLocation {
  std::string file;
  int line = 0;
  bool operator==(const SourceLocation&) const = default;
};

// Extents: `fixed` >= 0 is known from the type or from a split; otherwise the extent is a symbol given at compile or
// bind.
struct AxisInfo {
  std::string name;           // as printed, unique in the graph ("hidden'2" on a clash)
  const void* tag = nullptr;  // identity of the C++ axis type while tracing; never ordered by, never printed
  std::int64_t fixed = -1;
};
// What views demand of extents: extent(whole) == extent(outer) * extent(inner), and extent(a) == extent(b).
struct SplitRelation {
  AxisId whole, outer, inner;
  bool operator==(const SplitRelation&) const = default;
};
struct EqualRelation {
  AxisId a, b;
  bool operator==(const EqualRelation&) const = default;
};

struct InputInfo {
  std::string name;  // the field's path, "layers[3].up"
  DType dtype = DType::f32;
  std::vector<AxisId> axes;  // declared order = layout, outermost first
  int monoid = -1;           // >= 0: the input is a state of this monoid (Graph::monoids); only in kernels' graphs
  NodeId node = no_node;
};
struct ScalarInfo {
  std::string name;
  DType dtype = DType::f32;
  NodeId node = no_node;
};
struct Constant {
  double number = 0;         // for float dtypes and booleans
  std::int64_t integer = 0;  // for integer dtypes
};

// index(operand axis) as a function of the result's axes; one term for each axis of the operand that changes.
// rename: index = a. split: index = a * extent(b) + b. merge_outer: a / n; merge_inner: a % n (n = extent of the inner
// operand axis).
enum class ViewKind : std::uint8_t { rename, split, merge_outer, merge_inner };
struct ViewTerm {
  AxisId operand_axis = no_axis;
  ViewKind kind = ViewKind::rename;
  AxisId a = no_axis;
  AxisId b = no_axis;      // split: the inner axis of the result
  AxisId inner = no_axis;  // merge_*: the operand's inner axis, whose extent divides
  bool operator==(const ViewTerm&) const = default;
};
struct ViewInfo {
  std::vector<ViewTerm> terms;  // axes of the operand without a term pass through under their name
  AxisSet added;                // broadcast: axes of the result that no element depends on
  bool operator==(const ViewInfo&) const = default;
};

struct FoldInfo {
  std::uint16_t monoid = 0;  // Graph::monoids
  bool of_states = false;    // the operand is a state: merge without lifting (second stages, chunks, ranks)
  std::vector<AxisId> axes;  // folded, in declared order
  bool operator==(const FoldInfo&) const = default;
};
enum class IndexPolicy : std::uint8_t { checked, fill, clamp };
struct GatherInfo {
  AxisId axis = no_axis;  // of the table
  IndexPolicy policy = IndexPolicy::checked;
  double fill = 0;
  bool operator==(const GatherInfo& other) const {  // bitwise: a NaN fill equals itself
    return axis == other.axis && policy == other.policy &&
           std::bit_cast<std::uint64_t>(fill) == std::bit_cast<std::uint64_t>(other.fill);
  }
};
struct ScatterInfo {
  AxisId axis = no_axis;       // of the result, indexed by the index operand
  std::vector<AxisId> folded;  // axes of values | index that are summed away; an index outside the axis adds nothing
  bool operator==(const ScatterInfo&) const = default;
};

enum class OutputMode : std::uint8_t { write, accumulate, alias };
struct OutputInfo {
  std::string name;
  NodeId node = no_node;     // in a kernel's graph it may be a fold: the state is stored
  DType dtype = DType::f32;  // equals the node's
  std::vector<AxisId> axes;  // layout
  // Where a pass has replaced an axis of the layout by its parts (the same memory): the caller's axes; else empty.
  std::vector<AxisId> declared{};
  OutputMode mode = OutputMode::write;
  int alias_input = -1;  // mode alias: shares this input's buffer
};

struct NamedNode {
  NodeId node;
  std::string name;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<NodeId> operand_ids;
  std::vector<AxisInfo> axes;
  std::vector<SplitRelation> splits;
  std::vector<EqualRelation> equals;
  std::vector<InputInfo> inputs;
  std::vector<ScalarInfo> scalars;
  std::vector<OutputInfo> outputs;
  std::vector<Constant> constants;
  std::vector<ViewInfo> views;
  std::vector<FoldInfo> folds;
  std::vector<GatherInfo> gathers;
  std::vector<ScatterInfo> scatters;
  std::vector<Monoid> monoids;
  std::vector<SourceLocation> locations;  // [0] is "unknown"
  std::vector<NamedNode> names;           // the user's names for values, sorted by node

  [[nodiscard]] const Node& node(NodeId id) const { return nodes[id]; }
  [[nodiscard]] std::span<const NodeId> operands(NodeId id) const {
    return std::span(operand_ids).subspan(nodes[id].first_operand, nodes[id].operand_count);
  }
  [[nodiscard]] ScalarOp op(NodeId id) const { return static_cast<ScalarOp>(nodes[id].payload); }
  [[nodiscard]] const FoldInfo& fold(NodeId id) const { return folds[nodes[id].payload]; }
  [[nodiscard]] AxisSet folded_axes(NodeId fold_or_scatter) const;
  // The monoid of a fold, or of an input that is a state.
  [[nodiscard]] const Monoid& monoid_of(NodeId state) const;
  [[nodiscard]] bool is_state(NodeId id) const {
    const Node& n = nodes[id];
    return n.kind == NodeKind::fold || (n.kind == NodeKind::input && inputs[n.payload].monoid >= 0);
  }
  [[nodiscard]] std::string name_of(NodeId id) const;  // the user's name or "%7"
};

// Extents of a graph's axes by AxisId.
using Extents = std::vector<std::int64_t>;
// Completes given extents (-1: not given) by fixed axes and relations; throws Error naming axis and both values.
Extents resolve_extents(const Graph& graph, Extents given);

}  // namespace tigon::dsl
