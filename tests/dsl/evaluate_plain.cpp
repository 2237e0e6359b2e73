// The plain evaluator: one loop per node.
#include "evaluate_plain.hpp"

#include <array>
#include <cmath>

#include "dsl/reference/random_source.hpp"
#include "dsl/scalar_table.hpp"

namespace tigon::dsl {
namespace {

double rounded(DType dtype, double x) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(static_cast<float>(x));
    case DType::bf16:
      return static_cast<double>(to_f32(to_bf16(static_cast<float>(x))));
    case DType::f16:
      return static_cast<double>(to_f32(to_f16(static_cast<float>(x))));
    case DType::i32:
      return static_cast<double>(static_cast<std::int32_t>(static_cast<std::int64_t>(x)));
    default:
      return x;
  }
}

using At = std::array<i64, max_axes>;

class Plain {
 public:
  Plain(const Graph& graph, const EvaluateInputs& inputs, PlainOptions options)
      : g_(graph),
        inputs_(inputs),
        options_(options),
        extents_(resolve_extents(graph, inputs.extents)),
        random_(options.seed),
        data_(graph.nodes.size()) {}

  std::vector<std::vector<double>> run() {
    for (NodeId id = 0; id < g_.nodes.size(); ++id) compute(id);
    std::vector<std::vector<double>> results;
    for (const OutputInfo& output : g_.outputs) {
      std::vector<double> values;
      each(output.axes, [&](const At& at) { values.push_back(read(output.node, at)); });
      results.push_back(std::move(values));
    }
    return results;
  }

 private:
  std::vector<AxisId> list(AxisSet set) const {
    std::vector<AxisId> axes;
    for (const AxisId axis : set) axes.push_back(axis);
    return axes;
  }
  template <class Body>
  void each(const std::vector<AxisId>& axes, Body body) const {
    i64 count = 1;
    for (const AxisId axis : axes) count *= extents_[axis];
    for (i64 flat = 0; flat < count; ++flat) {
      At at{};
      i64 rest = flat;
      for (std::size_t d = axes.size(); d-- > 0;) {
        at[axes[d]] = rest % extents_[axes[d]];
        rest /= extents_[axes[d]];
      }
      body(at);
    }
  }
  i64 count_of(AxisSet axes) const {
    i64 count = 1;
    for (const AxisId axis : axes) count *= extents_[axis];
    return count;
  }
  i64 offset(const std::vector<AxisId>& axes, const At& at) const {
    i64 flat = 0;
    for (const AxisId axis : axes) flat = flat * extents_[axis] + at[axis];
    return flat;
  }
  double read(NodeId id, const At& at, int slot = 0) const {
    const AxisSet axes = g_.node(id).axes;
    i64 flat = 0;
    for (const AxisId axis : axes) flat = flat * extents_[axis] + at[axis];
    return data_[id][static_cast<std::size_t>(slot * count_of(axes) + flat)];
  }

  // One operation in its dtype; a function may be off by the units in the last place that the table states.
  double apply(ScalarOp op, const double* x, DType dtype) {
    const double value = rounded(dtype, info(op).reference(x[0], x[1], x[2]));
    if (dtype != DType::f32 || info(op).ulp <= 0.5 || !std::isfinite(value) || value == 0) return value;
    const double off = static_cast<double>(random_.below(3) - 1) * (info(op).ulp - 0.5) * std::abs(value) * 0x1p-24;
    return rounded(dtype, value + off);
  }
  std::vector<double> program(const ScalarProgram& p, const std::vector<double>& inputs, DType element) {
    std::vector<double> values;
    for (const ProgramValue& v : p.values) {
      const DType dtype = dtype_of_class(v.value_class, element);
      if (v.kind == ProgramValue::Kind::input) {
        values.push_back(inputs[v.input]);
      } else if (v.kind == ProgramValue::Kind::constant) {
        values.push_back(rounded(dtype, v.constant));
      } else {
        double x[3] = {0, 0, 0};
        for (int k = 0; k < info(v.op).arity; ++k) x[k] = values[v.args[static_cast<std::size_t>(k)]];
        values.push_back(apply(v.op, x, dtype));
      }
    }
    std::vector<double> results;
    for (const std::uint16_t r : p.results) results.push_back(values[r]);
    return results;
  }

  void compute(NodeId id) {
    const Node& node = g_.node(id);
    const auto operands = g_.operands(id);
    const std::vector<AxisId> axes = list(node.axes);
    std::vector<double> out;
    const auto fill = [&](auto value) { each(axes, [&](const At& at) { out.push_back(value(at)); }); };
    switch (node.kind) {
      case NodeKind::input: {
        const TensorValue& tensor = inputs_.tensors[node.payload];
        fill([&](const At& at) { return tensor.value[static_cast<std::size_t>(offset(tensor.axes, at))]; });
        break;
      }
      case NodeKind::scalar:
        out = {inputs_.scalars[node.payload]};
        break;
      case NodeKind::constant: {
        const Constant& c = g_.constants[node.payload];
        const bool whole = node.dtype == DType::i32 || node.dtype == DType::i64;
        out = {whole ? static_cast<double>(c.integer) : rounded(node.dtype, c.number)};
        break;
      }
      case NodeKind::iota:
        fill([&](const At& at) { return static_cast<double>(at[node.payload]); });
        break;
      case NodeKind::extent:
        out = {static_cast<double>(extents_[node.payload])};
        break;
      case NodeKind::map:
        fill([&](const At& at) {
          double x[3] = {0, 0, 0};
          for (std::size_t k = 0; k < operands.size(); ++k) x[k] = read(operands[k], at);
          return apply(g_.op(id), x, node.dtype);
        });
        break;
      case NodeKind::cast:
        fill([&](const At& at) {
          const double x = read(operands[0], at);
          if (node.dtype == DType::boolean) return x != 0 ? 1.0 : 0.0;
          return is_floating(node.dtype) ? rounded(node.dtype, x) : rounded(node.dtype, std::trunc(x));
        });
        break;
      case NodeKind::view: {
        const ViewInfo& view = g_.views[node.payload];
        fill([&](const At& at) {
          At inner = at;
          for (const ViewTerm& t : view.terms) {
            const i64 a = at[t.a];
            inner[t.operand_axis] = t.kind == ViewKind::rename        ? a
                                    : t.kind == ViewKind::split       ? a * extents_[t.b] + at[t.b]
                                    : t.kind == ViewKind::merge_outer ? a / extents_[t.inner]
                                                                      : a % extents_[t.inner];
          }
          return read(operands[0], inner);
        });
        break;
      }
      case NodeKind::fold:
        fold(id);
        return;
      case NodeKind::finish: {
        const Monoid& monoid = g_.monoid_of(operands[0]);
        fill([&](const At& at) {
          std::vector<double> state;
          for (std::size_t s = 0; s < monoid.state.size(); ++s)
            state.push_back(read(operands[0], at, static_cast<int>(s)));
          return program(monoid.finishes[node.payload].program, state, g_.node(operands[0]).dtype)[0];
        });
        break;
      }
      case NodeKind::gather: {
        const GatherInfo& gather = g_.gathers[node.payload];
        const i64 extent = extents_[gather.axis];
        fill([&](const At& at) {
          auto row = static_cast<i64>(read(operands[1], at));
          if (row < 0 || row >= extent) {
            if (gather.policy == IndexPolicy::fill) return rounded(node.dtype, gather.fill);
            row = std::min(std::max<i64>(row, 0), extent - 1);
          }
          At inner = at;
          inner[gather.axis] = row;
          return read(operands[0], inner);
        });
        break;
      }
      case NodeKind::scatter: {
        const ScatterInfo& scatter = g_.scatters[node.payload];
        out.assign(static_cast<std::size_t>(count_of(node.axes)), 0.0);
        std::vector<AxisId> loop = list(node.axes - AxisSet::of(scatter.axis));
        loop.insert(loop.end(), scatter.folded.begin(), scatter.folded.end());
        each(loop, [&](const At& at) {
          At target = at;
          target[scatter.axis] = static_cast<i64>(read(operands[1], at));
          if (target[scatter.axis] < 0 || target[scatter.axis] >= extents_[scatter.axis]) return;
          double& sum = out[static_cast<std::size_t>(offset(axes, target))];
          sum = rounded(node.dtype, sum + read(operands[0], at));
        });
        break;
      }
      default:
        out = data_[operands[0]];
        break;
    }
    data_[id] = std::move(out);
  }

  // Up to 64 runs in order, each folded in order, then merged in order.
  void fold(NodeId id) {
    const Node& node = g_.node(id);
    const FoldInfo& info = g_.fold(id);
    const Monoid& monoid = g_.monoids[info.monoid];
    i64 folded = 1;
    for (const AxisId axis : info.axes) folded *= extents_[axis];
    const i64 run = folded <= 65 ? std::max<i64>(folded, 1) : (folded + 63) / 64;
    const i64 results = count_of(node.axes);
    std::vector<double> out(static_cast<std::size_t>(results) * monoid.state.size());
    i64 result = 0;
    each(list(node.axes), [&](const At& outer) {
      std::vector<double> total, part;
      const auto merge = [&](std::vector<double>& into, const std::vector<double>& next) {
        std::vector<double> both = into;
        both.insert(both.end(), next.begin(), next.end());
        into = into.empty() ? next : program(monoid.merge, both, node.dtype);
      };
      i64 number = 0;
      each(info.axes, [&](const At& inner) {
        At at = outer;
        for (const AxisId axis : info.axes) at[axis] = inner[axis];
        if (options_.drop_last && number == folded - 1) return;
        std::vector<double> values;
        for (const NodeId operand : g_.operands(id)) values.push_back(read(operand, at));
        values.push_back(static_cast<double>(at[info.axes.empty() ? 0 : info.axes[0]]));
        merge(part, program(monoid.lift, values, node.dtype));
        if (++number % run == 0) {
          merge(total, part);
          part.clear();
        }
      });
      if (!part.empty()) merge(total, part);
      if (total.empty()) total = monoid.identity;
      for (std::size_t s = 0; s < total.size(); ++s) {
        out[static_cast<std::size_t>(static_cast<i64>(s) * results + result)] = total[s];
      }
      ++result;
    });
    data_[id] = std::move(out);
  }

  const Graph& g_;
  const EvaluateInputs& inputs_;
  PlainOptions options_;
  Extents extents_;
  RandomSource random_;
  std::vector<std::vector<double>> data_;
};

}  // namespace

std::vector<std::vector<double>> evaluate_plainly(const Graph& graph, const EvaluateInputs& inputs,
                                                  PlainOptions options) {
  return Plain(graph, inputs, options).run();
}

}  // namespace tigon::dsl
