// Faults planted in the loop nests of working kernels: each makes the comparison with the reference fail.
#include <catch2/catch.hpp>
#include <cstring>

#include "codegen/loops/builder.hpp"
#include "codegen/loops/print.hpp"
#include "codegen/loops/walk.hpp"
#include "dsl/reference/compare.hpp"
#include "fault_kernels.hpp"
#include "runtime/bound.hpp"
#include "runtime/program.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::test;
using loops::ExprId;
using loops::Nest;

namespace {

// --- finding places in a nest

void each_block(loops::Block& block, const std::function<void(loops::Block&)>& visit) {
  visit(block);
  for (loops::Statement& statement : block) {
    if (loops::Block* body = loops::body_of(statement)) each_block(*body, visit);
  }
}
void each_block(Nest& nest, const std::function<void(loops::Block&)>& visit) {
  for (loops::Part& part : nest.parts) each_block(part.grid.body, visit);
}

// Loop number `number` of those with the name, blocks outer before inner.
loops::Loop& loop(Nest& nest, const std::string& name, int number = 0) {
  loops::Loop* found = nullptr;
  each_block(nest, [&](loops::Block& block) {
    for (loops::Statement& statement : block) {
      auto* one = std::get_if<loops::Loop>(&statement.node);
      if (one != nullptr && one->name == name && number-- == 0) found = one;
    }
  });
  if (found == nullptr) throw std::runtime_error("no loop " + name);
  return *found;
}
template <class T>
T& statement(Nest& nest, int number = 0) {
  T* found = nullptr;
  each_block(nest, [&](loops::Block& block) {
    for (loops::Statement& one : block) {
      if (std::holds_alternative<T>(one.node) && number-- == 0) found = &std::get<T>(one.node);
    }
  });
  if (found == nullptr) throw std::runtime_error("no such statement");
  return *found;
}
template <class T>
void erase_statement(Nest& nest, int number = 0) {
  bool done = false;
  each_block(nest, [&](loops::Block& block) {
    for (std::size_t i = 0; i < block.size() && !done; ++i) {
      if (!std::holds_alternative<T>(block[i].node) || number-- != 0) continue;
      block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
      done = true;
    }
  });
  if (!done) throw std::runtime_error("no such statement");
}
loops::Expr& expression(Nest& nest, const std::function<bool(const loops::Expr&)>& wanted, int number = 0) {
  for (loops::Expr& expr : nest.exprs) {
    if (wanted(expr) && number-- == 0) return expr;
  }
  throw std::runtime_error("no such expression");
}
dsl::Monoid& law(Nest& nest, const std::string& name) {
  for (dsl::Monoid& monoid : nest.monoids) {
    if (monoid.name == name) return monoid;
  }
  throw std::runtime_error("no monoid " + name);
}

// --- the faults; each changes one thing

using Fault = std::function<void(Nest&)>;

ExprId shifted(Nest& nest, ExprId value, std::int64_t by) {
  loops::NestBuilder builder;
  builder.nest = std::move(nest);
  const ExprId result = builder.add(value, builder.integer(by));
  nest = std::move(builder.nest);
  return result;
}
Fault ends_early(const std::string& name, int number = 0) {
  return [=](Nest& nest) {
    const ExprId end = shifted(nest, loop(nest, name, number).end, -1);
    loop(nest, name, number).end = end;
  };
}
Fault begins_late(const std::string& name, int number = 0) {
  return [=](Nest& nest) {
    const ExprId begin = shifted(nest, loop(nest, name, number).begin, 1);
    loop(nest, name, number).begin = begin;
  };
}
Fault runs_again(const std::string& name) {
  return [=](Nest& nest) {
    const ExprId end = shifted(nest, loop(nest, name).end, 1);
    loop(nest, name).end = end;
  };
}
Fault strides_over(const std::string& name) {
  return [=](Nest& nest) { loop(nest, name).step *= 2; };
}
Fault wrong_identity(const std::string& monoid, std::size_t slot, double value) {
  return [=](Nest& nest) { law(nest, monoid).identity.at(slot) = value; };
}
Fault changed_operation(ScalarOp from, ScalarOp to, int number = 0, bool floats = true) {
  return [=](Nest& nest) {
    expression(
        nest,
        [&](const loops::Expr& e) {
          if (e.kind != loops::ExprKind::operation || e.op != from) return false;
          return !floats || is_floating(nest.exprs[nest.expr_args[e.first_arg]].dtype);
        },
        number)
        .op = to;
  };
}
// Of two numbers.
Fault choice_inverted(int number = 0) {
  return [=](Nest& nest) {
    const loops::Expr& where = expression(
        nest,
        [](const loops::Expr& e) {
          return e.kind == loops::ExprKind::operation && e.op == ScalarOp::where && is_floating(e.dtype);
        },
        number);
    std::swap(nest.expr_args[where.first_arg + 1], nest.expr_args[where.first_arg + 2]);
  };
}
Fault changed_constant(double from, double to) {
  return [=](Nest& nest) {
    expression(nest, [&](const loops::Expr& e) {
      return e.kind == loops::ExprKind::constant && is_floating(e.dtype) && std::abs(e.number - from) < 1e-9;
    }).number = to;
  };
}
// The count that a mean divides by.
Fault changed_count(double to) {
  return [=](Nest& nest) {
    loops::Expr& count = expression(nest, [&](const loops::Expr& e) {
      return e.kind == loops::ExprKind::cast && e.dtype == DType::f32 &&
             nest.exprs[nest.expr_args[e.first_arg]].kind == loops::ExprKind::constant;
    });
    count = {.kind = loops::ExprKind::constant, .dtype = DType::f32, .number = to};
  };
}
Fault cast_dropped(DType dtype) {
  return [=](Nest& nest) {  // f32(bf16(x)) becomes x
    for (ExprId id = 0; id < nest.exprs.size(); ++id) {
      const loops::Expr& outer = nest.exprs[id];
      if (outer.kind != loops::ExprKind::cast) continue;
      const loops::Expr& inner = nest.exprs[nest.expr_args[outer.first_arg]];
      if (inner.kind != loops::ExprKind::cast || inner.dtype != dtype) continue;
      const ExprId value = nest.expr_args[inner.first_arg];
      std::replace(nest.expr_args.begin(), nest.expr_args.end(), id, value);
      return;
    }
    throw std::runtime_error("no such cast");
  };
}
// Rows are taken to lie closer than they do.
Fault wrong_stride(const std::string& parameter, std::int64_t stride) {
  return [=](Nest& nest) {
    for (loops::Parameter& one : nest.parameters) {
      if (one.name == parameter) one.strides[0] = stride;
    }
  };
}
Fault wrong_load(const std::string& from, const std::string& to) {
  return [=](Nest& nest) {
    std::uint32_t other = 0;
    while (nest.parameters.at(other).name != to) ++other;
    expression(nest, [&](const loops::Expr& e) {
      return e.kind == loops::ExprKind::load && nest.parameters[e.payload].name == from;
    }).payload = other;
  };
}
Fault wrong_slot(std::uint8_t from, std::uint8_t to) {
  return [=](Nest& nest) {
    expression(nest, [&](const loops::Expr& e) {
      return e.kind == loops::ExprKind::fold_state && e.slot_of_state == from;
    }).slot_of_state = to;
  };
}
template <class T>
Fault overwrites(int number = 0) {
  return [=](Nest& nest) { statement<T>(nest, number).mode = loops::StoreMode::write; };
}
template <class T>
Fault left_out(int number = 0) {
  return [=](Nest& nest) { erase_statement<T>(nest, number); };
}
Fault mask_inverted() {
  return [](Nest& nest) {
    loops::NestBuilder builder;
    builder.nest = std::move(nest);
    const ExprId inverted = builder.op(ScalarOp::logical_not, {statement<loops::When>(builder.nest).condition});
    nest = std::move(builder.nest);
    statement<loops::When>(nest).condition = inverted;
  };
}
Fault states_swapped(int number = 0) {
  return [=](Nest& nest) {
    auto& store = statement<loops::StoreState>(nest, number);
    std::swap(store.state.at(0), store.state.at(1));
  };
}
// merge(later, earlier)
Fault merge_swapped(const std::string& monoid) {
  return [=](Nest& nest) {
    dsl::Monoid& affected = law(nest, monoid);
    const auto slots = static_cast<std::uint16_t>(affected.state.size());
    for (ProgramValue& value : affected.merge.values) {
      if (value.kind != ProgramValue::Kind::input) continue;
      value.input = static_cast<decltype(value.input)>(value.input < slots ? value.input + slots : value.input - slots);
    }
  };
}
// Comparisons of indices the other way round: of equal elements the last is taken.
Fault tie_inverted(const std::string& monoid) {
  return [=](Nest& nest) {
    for (ProgramValue& value : law(nest, monoid).merge.values) {
      const bool compares = value.kind == ProgramValue::Kind::operation &&
                            (value.op == ScalarOp::less || value.op == ScalarOp::less_equal);
      if (!compares) continue;
      const auto& operand = law(nest, monoid).merge.values[value.args[0]];
      if (operand.value_class == ValueClass::index) std::swap(value.args[0], value.args[1]);
    }
  };
}
Fault row_stuck(int number = 0) {
  return [=](Nest& nest) {
    loops::NestBuilder builder;
    builder.nest = std::move(nest);
    const ExprId zero = builder.integer(0);
    nest = std::move(builder.nest);
    statement<loops::Store>(nest, number).index.at(0) = zero;
  };
}

// --- running a plan with wide guards: a faulty kernel may write beside its outputs

std::vector<std::vector<double>> run_plan(plan::Plan plan, const Problem& problem) {
  constexpr std::size_t guard = 1 << 17;
  const auto program = runtime::build_program(std::move(plan));
  const runtime::Bound bound(program, plan::bind_extents(program->plan, problem.inputs.extents), {}, {});
  std::vector<Storage> memory;
  const auto allocate = [&](std::size_t size, int fill) {
    memory.emplace_back(size + 2 * guard);
    std::memset(memory.back().data(), fill, size + 2 * guard);
    return static_cast<void*>(static_cast<std::byte*>(memory.back().data()) + guard);
  };
  std::vector<void*> in, out;
  for (const dsl::TensorValue& tensor : problem.inputs.tensors) {
    const std::vector<std::byte> bytes = to_bytes(tensor.dtype, tensor.value);
    in.push_back(allocate(bytes.size(), 0));
    std::memcpy(in.back(), bytes.data(), bytes.size());
  }
  std::vector<std::size_t> sizes;
  for (const dsl::OutputInfo& output : problem.graph.outputs) {
    std::size_t size = static_cast<std::size_t>(size_of(output.dtype));
    for (const dsl::AxisId axis : output.axes) size *= static_cast<std::size_t>(bound.extents()[axis]);
    sizes.push_back(size);
    out.push_back(allocate(size, 0x5a));
  }
  void* workspace = allocate(static_cast<std::size_t>(bound.workspace_bytes()), 0x7f);
  const std::vector<detail::RawScalar> scalars = runtime::raw_scalars(problem.graph.scalars, problem.inputs.scalars);
  bound.run({.inputs = in, .outputs = out, .scalars = scalars, .workspace = workspace}, {.max_threads = 1});
  std::vector<std::vector<double>> results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto* begin = static_cast<const std::byte*>(out[i]);
    results.push_back(to_doubles(problem.graph.outputs[i].dtype, {begin, begin + sizes[i]}));
  }
  return results;
}

bool agrees(const Problem& problem, const std::vector<dsl::TensorValue>& expected, plan::Plan plan) {
  const auto computed = run_plan(std::move(plan), problem);
  bool all = true;
  for (std::size_t i = 0; i < expected.size(); ++i) all = all && dsl::compare(expected[i], computed[i]).passed;
  return all;
}

struct Planted {
  std::string name;
  Fault fault;
  std::size_t kernel = 0;
};

void check_faults(const Problem& problem, const std::vector<Planted>& faults) {
  const plan::Plan right = plan_of(problem);
  const auto expected = dsl::evaluate(problem.graph, problem.inputs);
  REQUIRE(agrees(problem, expected, right));
  for (const Planted& planted : faults) {
    INFO(planted.name << " in " << right.kernels.at(planted.kernel).name);
    plan::Plan wrong = right;
    Nest& nest = wrong.kernels[planted.kernel].scheduled.nest;
    const std::string before = runtime::llvm_text(nest, 32).text;
    try {
      planted.fault(nest);
      CHECK(runtime::llvm_text(nest, 32).text != before);  // the fault is in the kernel
      CHECK_FALSE(agrees(problem, expected, wrong));
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
}

}  // namespace

TEST_CASE("faults: softmax") {
  check_faults(softmax_problem(), {{"the fold leaves the last element out", ends_early("hidden")},
                                   {"the fold begins one late", begins_late("hidden")},
                                   {"the last element is not stored", ends_early("hidden", 1)},
                                   {"each share's last row is left out", ends_early("tokens")},
                                   {"each share's first row is left out", begins_late("tokens")},
                                   {"the maximum's identity is 3", wrong_identity("logsumexp", 0, 3)},
                                   {"x is read at a wrong pitch", wrong_stride("x", 51)},
                                   {"y is written at a wrong pitch", wrong_stride("y", 51)},
                                   {"the mask of empty rows is inverted", choice_inverted()},
                                   {"log for log1p", changed_operation(ScalarOp::log1p, ScalarOp::log)},
                                   {"the state's parts are mixed up", wrong_slot(1, 0)}});
}

TEST_CASE("faults: RMSNorm's backward") {
  check_faults(norm_backward_problem(),
               {{"partial sums are not initialised", left_out<loops::StoreState>(0)},
                {"partial sums are overwritten", overwrites<loops::StoreState>(1)},
                {"each share's last row is left out", ends_early("tokens")},
                {"the sums leave the last element out", ends_early("hidden", 1)},
                {"the last column is not stored", ends_early("hidden", 2)},
                {"the mean divides by one less", changed_count(52)},
                {"a sign is wrong", changed_constant(-0.5, 0.5)},
                {"the upstream is read from x", wrong_load("upstream.y", "x")},
                {"sqrt for rsqrt", changed_operation(ScalarOp::rsqrt, ScalarOp::sqrt)},
                {"the second stage leaves out a block's last share", ends_early("partition"), 1},
                {"the second stage leaves out a block's first share", begins_late("partition"), 1},
                {"the second stage skips every other block", strides_over("partition_block"), 1},
                {"the second stage leaves the last column out", ends_early("hidden"), 1}});
}

TEST_CASE("faults: argmax") {
  check_faults(argmax_problem(), {{"the last element is left out", ends_early("hidden")},
                                  {"the first element is left out", begins_late("hidden")},
                                  {"each share's last row is left out", ends_early("tokens")},
                                  {"argmax starts from 0", wrong_identity("argmax", 0, 0)},
                                  {"max starts from 0", wrong_identity("max", 0, 0)},
                                  {"ties go to the last index", tie_inverted("argmax")},
                                  {"every row stores to the first", row_stuck()}});
}

TEST_CASE("faults: scatter") {
  check_faults(scatter_problem(),
               {{"rows overwrite one another", overwrites<loops::Store>(1)},
                {"the table is not cleared", left_out<loops::Loop>(0)},
                {"the mask is inverted", mask_inverted()},
                {"a share's first row is left out", changed_operation(ScalarOp::less_equal, ScalarOp::less, 0, false)},
                {"everything is added twice", runs_again("once")},
                {"the last token is left out", ends_early("tokens")},
                {"the first token is left out", begins_late("tokens")},
                {"the table starts from 1", changed_constant(0, 1)}});
}

TEST_CASE("faults: cross entropy") {
  check_faults(cross_entropy_problem(), {{"the last class is left out", ends_early("vocab")},
                                         {"the first class is left out", begins_late("vocab")},
                                         {"exp for expm1", changed_operation(ScalarOp::expm1, ScalarOp::exp)},
                                         {"another weight of the z-loss", changed_constant(0.001, 0.002)},
                                         {"the stored states are swapped", states_swapped(2)},
                                         {"the mask of valid rows is inverted", choice_inverted(), 0},
                                         {"a block's first share is left out", begins_late("partition", 1), 1},
                                         {"the gradient's last class is left out", ends_early("vocab"), 1},
                                         {"the target's class is any other",
                                          changed_operation(ScalarOp::equal, ScalarOp::not_equal, 0, false), 1},
                                         {"a weight of the gradient is wrong", changed_constant(-2, 2), 1}});
}

TEST_CASE("faults: a monoid that does not commute") {
  check_faults(affine_problem(), {{"states are merged in the wrong order", merge_swapped("affine")},

                                  {"the offset's identity is 1", wrong_identity("affine", 1, 1)},
                                  {"the last element is left out", ends_early("hidden", 1)},
                                  {"the first element is left out", begins_late("hidden", 1)},
                                  {"the partial states are not initialised", left_out<loops::StoreState>(0)},
                                  {"the partial states are overwritten", overwrites<loops::StoreState>(1)},
                                  {"the second stage merges in the wrong order", merge_swapped("affine"), 1},
                                  {"the slope's identity is 0", wrong_identity("affine", 0, 0), 1},
                                  {"a block's last share is left out", ends_early("partition"), 1}});
}

TEST_CASE("faults: rounding") {
  check_faults(rounding_problem(), {{"the rounding to bf16 is dropped", cast_dropped(DType::bf16)},
                                    {"the last column is left out", ends_early("hidden")}});
}
