// Evaluates index expressions element by element, in f64, from the buffers of a launch.
#include "runtime/index_report.hpp"

#include <cmath>
#include <cstring>
#include <optional>

#include "dsl/rebuild.hpp"
#include "dsl/scalar_table.hpp"
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

double read_element(DType dtype, const std::byte* address) {
  switch (dtype) {
    case DType::boolean:
      return read_as<std::uint8_t>(address) != 0 ? 1 : 0;
    case DType::i32:
      return read_as<std::int32_t>(address);
    case DType::i64:
      return static_cast<double>(read_as<std::int64_t>(address));
    case DType::f16:
      return to_f32(read_as<f16>(address));
    case DType::bf16:
      return to_f32(read_as<bf16>(address));
    case DType::f32:
      return read_as<float>(address);
    case DType::f64:
      return read_as<double>(address);
  }
  return 0;
}

double rounded(DType dtype, double value) {
  switch (dtype) {
    case DType::boolean:
      return value != 0 ? 1 : 0;
    case DType::i32:
    case DType::i64:
      return std::trunc(value);
    case DType::f16:
      return to_f32(to_f16(static_cast<float>(value)));
    case DType::bf16:
      return to_f32(to_bf16(static_cast<float>(value)));
    case DType::f32:
      return static_cast<float>(value);
    case DType::f64:
      return value;
  }
  return value;
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
      const std::optional<double> found = value(index, point);
      if (!found) return;
      if (!(*found >= 0 && *found < static_cast<double>(extent(gather.axis))))
        report(gather_node, gather, point, *found);
      std::size_t d = axes.size();
      while (d > 0 && ++point[axes[d - 1]] == extent(axes[d - 1])) point[axes[--d]] = 0;
      if (d == 0) return;
    }
  }

  [[noreturn]] void report(NodeId gather_node, const dsl::GatherInfo& gather, const Point& point, double found) const {
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
                 .found = fmt::format("{:.0f}{}{}", found, place, computed),
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

  // Nothing where the value rests on a reduction, a scatter or a buffer that is not at hand.
  std::optional<double> value(NodeId id, const Point& point) {
    const dsl::Node& n = graph_.node(id);
    const auto operands = graph_.operands(id);
    switch (n.kind) {
      case NodeKind::input:
        return element(graph_.inputs[n.payload], arguments_.inputs[n.payload], point);
      case NodeKind::scalar:
        return read_element(n.dtype, reinterpret_cast<const std::byte*>(&arguments_.scalars[n.payload].bits));
      case NodeKind::constant: {
        const dsl::Constant& constant = graph_.constants[n.payload];
        const bool whole = n.dtype == DType::i32 || n.dtype == DType::i64;
        return whole ? static_cast<double>(constant.integer) : constant.number;
      }
      case NodeKind::iota:
        return static_cast<double>(point[n.payload]);
      case NodeKind::extent:
        return static_cast<double>(extent(static_cast<AxisId>(n.payload)));
      case NodeKind::map: {
        std::array<double, 3> args{};
        for (std::size_t k = 0; k < operands.size(); ++k) {
          const std::optional<double> arg = value(operands[k], point);
          if (!arg) return std::nullopt;
          args[k] = *arg;
        }
        return rounded(n.dtype, dsl::info(graph_.op(id)).reference(args[0], args[1], args[2]));
      }
      case NodeKind::cast: {
        const std::optional<double> from = value(operands[0], point);
        return from ? std::optional(rounded(n.dtype, *from)) : std::nullopt;
      }
      case NodeKind::attach:
        return value(operands[0], point);
      case NodeKind::view:
        return value(operands[0], through(graph_.views[n.payload], point));
      case NodeKind::gather:
        return looked_up(graph_.gathers[n.payload], operands[0], operands[1], point);
      default:
        return std::nullopt;
    }
  }

  static std::optional<double> element(const dsl::InputInfo& info, const detail::RawBuffer* raw, const Point& point) {
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

  std::optional<double> looked_up(const dsl::GatherInfo& gather, NodeId table, NodeId index, Point point) {
    const std::optional<double> at = value(index, point);
    if (!at) return std::nullopt;
    const std::int64_t last = extent(gather.axis) - 1;
    const bool inside = *at >= 0 && *at <= static_cast<double>(last);
    if (!inside && gather.policy != dsl::IndexPolicy::clamp) {
      return gather.policy == dsl::IndexPolicy::fill ? std::optional(gather.fill) : std::nullopt;
    }
    if (last < 0) return std::nullopt;
    point[gather.axis] = inside ? static_cast<std::int64_t>(*at) : (*at > 0 ? last : 0);
    return value(table, point);
  }

  const dsl::Graph& graph_;
  const IndexArguments& arguments_;
};

}  // namespace

void refuse_index(const dsl::Graph& graph, const IndexArguments& arguments) { IndexSearch(graph, arguments).refuse(); }

}  // namespace tigon::runtime
