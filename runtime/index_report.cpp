// Evaluates index expressions element by element from the buffers of a launch: integers exactly, floats in f64.
#include "runtime/index_report.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "dsl/rebuild.hpp"
#include "dsl/scalar_table.hpp"
#include "dsl/whole.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
using dsl::AxisId;
using dsl::NodeId;
using dsl::NodeKind;

namespace {

template <class T>
T read_as(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

// An element: `whole` where the dtype is an integer or boolean, else `number`.
struct Value {
  std::int64_t whole = 0;
  double number = 0;
};

Value read_element(DType dtype, const std::byte* address) {
  switch (dtype) {
    case DType::boolean:
      return {.whole = read_as<std::uint8_t>(address) != 0 ? 1 : 0};
    case DType::i32:
      return {.whole = read_as<std::int32_t>(address)};
    case DType::i64:
      return {.whole = read_as<std::int64_t>(address)};
    case DType::f16:
      return {.number = to_f32(read_as<f16>(address))};
    case DType::bf16:
      return {.number = to_f32(read_as<bf16>(address))};
    case DType::f32:
      return {.number = read_as<float>(address)};
    case DType::f64:
      return {.number = read_as<double>(address)};
  }
  return {};
}

double rounded(DType dtype, double value) {
  if (dtype == DType::f16) return to_f32(to_f16(static_cast<float>(value)));
  if (dtype == DType::bf16) return to_f32(to_bf16(static_cast<float>(value)));
  return dtype == DType::f32 ? static_cast<float>(value) : value;
}

double as_number(DType dtype, Value value) {
  return is_floating(dtype) ? value.number : static_cast<double>(value.whole);
}

Value from_number(DType dtype, double value) {
  if (dtype == DType::boolean) return {.whole = value != 0 ? 1 : 0};
  if (dsl::is_whole(dtype)) return {.whole = dsl::nearest_integer(dtype, value)};
  return {.number = rounded(dtype, value)};
}

Value cast(DType from, DType to, Value value) {
  if (is_floating(from) || is_floating(to)) return from_number(to, as_number(from, value));
  return {.whole = to == DType::boolean ? value.whole != 0 : dsl::wrap(to, value.whole)};
}

using Point = std::array<std::int64_t, dsl::max_axes>;  // index by AxisId

class IndexSearch {
 public:
  IndexSearch(const dsl::Graph& graph, const IndexArguments& arguments) : graph_(graph), arguments_(arguments) {}

  [[noreturn]] void refuse() {
    const std::vector<bool> live = dsl::live_nodes(graph_);
    std::string lookups;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!live[id] || graph_.node(id).kind != NodeKind::gather) continue;
      const dsl::GatherInfo& gather = graph_.gathers[graph_.node(id).payload];
      if (gather.policy != dsl::IndexPolicy::checked) continue;
      search(id, gather);
      lookups += fmt::format("{}`{}` of extent {} by {}{}", lookups.empty() ? "" : "; ", graph_.axes[gather.axis].name,
                             extent(gather.axis), sources(graph_.operands(id)[1]), place_in_source(id));
    }
    throw Error({.kind = ErrorKind::usage, .function = graph_.name, .cure = cure},
                "an index of a checked lookup is out of range; the function looks up axis " + lookups);
  }

 private:
  static constexpr const char* cure =
      "Check the index against the axis' extent, or give the lookup a rule: fill(value) or clamped";

  std::int64_t extent(AxisId axis) const { return arguments_.extents[axis]; }

  // Throws for the first element whose index is known and out of range.
  void search(NodeId gather_node, const dsl::GatherInfo& gather) {
    const NodeId index = graph_.operands(gather_node)[1];
    std::vector<AxisId> axes;
    for (const AxisId axis : graph_.node(index).axes) {
      if (extent(axis) == 0) return;
      axes.push_back(axis);
    }
    Point point{};
    while (true) {
      const std::optional<Value> found = value(index, point);
      if (!found) return;
      const std::int64_t at = cast(graph_.node(index).dtype, DType::i64, *found).whole;
      if (at < 0 || at >= extent(gather.axis)) report(gather_node, gather, point, at);
      std::size_t d = axes.size();
      while (d > 0 && ++point[axes[d - 1]] == extent(axes[d - 1])) point[axes[--d]] = 0;
      if (d == 0) return;
    }
  }

  [[noreturn]] void report(NodeId gather_node, const dsl::GatherInfo& gather, const Point& point,
                           std::int64_t found) const {
    const NodeId index = graph_.operands(gather_node)[1];
    std::vector<std::string> names;
    collect_sources(index, names);
    std::string place;
    for (const AxisId axis : graph_.node(index).axes) {
      place += fmt::format("{}{} = {}", place.empty() ? " at " : ", ", graph_.axes[axis].name, point[axis]);
    }
    const std::string computed = names.size() > 1 ? ", computed from " + sources(index) : "";
    throw Error({.kind = ErrorKind::usage,
                 .function = graph_.name,
                 .argument = names.empty() ? "" : names.front(),
                 .axis = graph_.axes[gather.axis].name,
                 .found = fmt::format("{}{}{}", found, place, computed),
                 .expected = extent(gather.axis) == 0 ? "none, for the axis is empty"
                                                      : fmt::format("0 to {}", extent(gather.axis) - 1),
                 .cure = cure},
                "an index of a checked lookup is out of range" + place_in_source(gather_node));
  }

  std::string place_in_source(NodeId node) const {
    const dsl::SourceLocation& location = graph_.locations[graph_.node(node).location];
    if (location.line <= 0) return "";
    return fmt::format(" ({}:{})", location.file.substr(location.file.rfind('/') + 1), location.line);
  }

  // The arguments that a value is computed from, in order of first use; integers first, for they are the indices.
  void collect_sources(NodeId id, std::vector<std::string>& names) const {
    std::vector<bool> reached(graph_.nodes.size(), false);
    std::vector<std::string> others;
    reached[id] = true;
    for (NodeId at = id + 1; at-- > 0;) {
      if (!reached[at]) continue;
      for (const NodeId operand : graph_.operands(at)) reached[operand] = true;
    }
    for (NodeId at = 0; at <= id; ++at) {
      if (!reached[at]) continue;
      const dsl::Node& n = graph_.node(at);
      const bool whole = n.dtype == DType::i32 || n.dtype == DType::i64;
      if (n.kind == NodeKind::input) (whole ? names : others).push_back(graph_.inputs[n.payload].name);
      if (n.kind == NodeKind::scalar) (whole ? names : others).push_back(graph_.scalars[n.payload].name);
    }
    names.insert(names.end(), others.begin(), others.end());
  }
  std::string sources(NodeId id) const {
    std::vector<std::string> names;
    collect_sources(id, names);
    std::string text;
    for (const std::string& name : names) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
    return text.empty() ? "no argument" : text;
  }

  using PointId = std::size_t;
  using Asked = std::pair<NodeId, PointId>;

  // Nothing where the value rests on a reduction, a scatter or a buffer that is not at hand. Each node is evaluated
  // once for each point at which it is read; what it lacks is evaluated first.
  std::optional<Value> value(NodeId root, const Point& point) {
    known_.clear();
    points_.clear();
    numbers_.clear();
    std::vector<Asked> stack{{root, number_of(point)}};
    while (true) {
      const Asked at = stack.back();
      missing_.clear();
      const std::optional<Value> found = compute(at.first, at.second);
      if (!missing_.empty()) {
        stack.insert(stack.end(), missing_.begin(), missing_.end());
        continue;
      }
      stack.pop_back();
      if (stack.empty()) return found;
      known_[at] = found;
    }
  }

  PointId number_of(const Point& point) {
    const auto [known, added] = numbers_.insert({point, points_.size()});
    if (added) points_.push_back(point);
    return known->second;
  }

  // An operand's value; noted as missing where it has to be evaluated first.
  std::optional<Value> ask(NodeId id, PointId at) {
    if (const auto found = known_.find({id, at}); found != known_.end()) return found->second;
    missing_.push_back({id, at});
    return std::nullopt;
  }

  std::optional<Value> compute(NodeId id, PointId at) {
    const dsl::Node& n = graph_.node(id);
    const auto operands = graph_.operands(id);
    switch (n.kind) {
      case NodeKind::input:
        return element(graph_.inputs[n.payload], arguments_.inputs[n.payload], points_[at]);
      case NodeKind::scalar:
        return read_element(n.dtype, reinterpret_cast<const std::byte*>(&arguments_.scalars[n.payload].bits));
      case NodeKind::constant: {
        const dsl::Constant& constant = graph_.constants[n.payload];
        return dsl::is_whole(n.dtype) ? Value{.whole = constant.integer} : from_number(n.dtype, constant.number);
      }
      case NodeKind::iota:
        return Value{.whole = points_[at][n.payload]};
      case NodeKind::extent:
        return Value{.whole = extent(static_cast<AxisId>(n.payload))};
      case NodeKind::map:
        return mapped(id, at);
      case NodeKind::cast: {
        const std::optional<Value> from = ask(operands[0], at);
        return from ? std::optional(cast(graph_.node(operands[0]).dtype, n.dtype, *from)) : std::nullopt;
      }
      case NodeKind::attach:
        return ask(operands[0], at);
      case NodeKind::view:
        return ask(operands[0], number_of(through(graph_.views[n.payload], points_[at])));
      case NodeKind::gather:
        return looked_up(id, at);
      default:
        return std::nullopt;
    }
  }

  std::optional<Value> mapped(NodeId id, PointId at) {
    const auto operands = graph_.operands(id);
    std::vector<Value> values;
    std::vector<DType> dtypes;
    for (const NodeId operand : operands) {
      if (const std::optional<Value> found = ask(operand, at)) values.push_back(*found);
      dtypes.push_back(graph_.node(operand).dtype);
    }
    if (values.size() < operands.size()) return std::nullopt;
    const ScalarOp op = graph_.op(id);
    const DType dtype = graph_.node(id).dtype;
    const DType computed = dsl::operand_dtype(op, dtypes, static_cast<int>(operands.size()) - 1);
    std::array<std::int64_t, 3> whole{};
    std::array<double, 3> numbers{};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const DType wanted = dsl::operand_dtype(op, dtypes, static_cast<int>(k));
      const Value operand = cast(dtypes[k], wanted, values[k]);
      whole[k] = operand.whole;
      numbers[k] = as_number(wanted, operand);
    }
    if (dsl::is_whole(computed)) {
      if (const auto exact = dsl::whole_result(op, computed, std::span(whole.data(), operands.size())))
        return Value{.whole = *exact};
    }
    return from_number(dtype, dsl::info(op).reference(numbers[0], numbers[1], numbers[2]));
  }

  static std::optional<Value> element(const dsl::InputInfo& info, const detail::RawBuffer* raw, const Point& point) {
    if (raw == nullptr || raw->pointer == nullptr || info.monoid >= 0) return std::nullopt;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < info.axes.size(); ++d) {
      if (raw->extents[d] > 1) offset += point[info.axes[d]] * raw->strides[d];
    }
    return read_element(info.dtype, static_cast<const std::byte*>(raw->pointer) + offset * size_of(info.dtype));
  }

  Point through(const dsl::ViewInfo& view, const Point& point) const {
    Point inner = point;
    for (const dsl::ViewTerm& term : view.terms) {
      std::int64_t& index = inner[term.operand_axis];
      switch (term.kind) {
        case dsl::ViewKind::rename:
          index = point[term.a];
          break;
        case dsl::ViewKind::split:
          index = point[term.a] * extent(term.b) + point[term.b];
          break;
        case dsl::ViewKind::merge_outer:
          index = point[term.a] / extent(term.inner);
          break;
        case dsl::ViewKind::merge_inner:
          index = point[term.a] % extent(term.inner);
          break;
      }
    }
    return inner;
  }

  std::optional<Value> looked_up(NodeId id, PointId at) {
    const auto operands = graph_.operands(id);
    const dsl::GatherInfo& gather = graph_.gathers[graph_.node(id).payload];
    const std::optional<Value> found = ask(operands[1], at);
    if (!found) return std::nullopt;
    const std::int64_t index = cast(graph_.node(operands[1]).dtype, DType::i64, *found).whole;
    const std::int64_t last = extent(gather.axis) - 1;
    const bool inside = index >= 0 && index <= last;
    if (!inside && gather.policy != dsl::IndexPolicy::clamp) {
      if (gather.policy != dsl::IndexPolicy::fill) return std::nullopt;
      return from_number(graph_.node(id).dtype, gather.fill);
    }
    if (last < 0) return std::nullopt;
    Point point = points_[at];
    point[gather.axis] = inside ? index : (index > 0 ? last : 0);
    return ask(operands[0], number_of(point));
  }

  const dsl::Graph& graph_;
  const IndexArguments& arguments_;
  std::map<Asked, std::optional<Value>> known_;  // at the point being looked at
  std::vector<Asked> missing_;
  std::vector<Point> points_;
  std::map<Point, PointId> numbers_;
};

}  // namespace

void refuse_index(const dsl::Graph& graph, const IndexArguments& arguments) { IndexSearch(graph, arguments).refuse(); }

}  // namespace tigon::runtime
