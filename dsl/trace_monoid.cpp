// Turns a user's lambdas over scalars into a monoid's programs, and folds with it.
#include "dsl/printable.hpp"
#include "dsl/program.hpp"
#include "dsl/scalar_table.hpp"
#include "dsl/trace.hpp"
#include "tigon/error.hpp"
#include "tigon/monoid.hpp"

namespace tigon {
namespace detail {

struct Recording::State {
  explicit State(UserMonoid& written) : monoid(written) {}
  UserMonoid& monoid;
  ScalarProgram program;

  Scalar append(const ProgramValue& value) {
    program.values.push_back(value);
    return Scalar::of(static_cast<int>(program.values.size()) - 1);
  }
  Scalar input(int number, ValueClass value_class) {
    return append(
        {.kind = ProgramValue::Kind::input, .value_class = value_class, .input = static_cast<std::uint8_t>(number)});
  }
  [[nodiscard]] ValueClass class_of(Scalar scalar) const { return program.values.at(scalar.id()).value_class; }
  // The value's place in the program; a constant is written down in the class it is wanted in.
  std::uint16_t place(Scalar scalar, ValueClass wanted) {
    if (scalar.id() < 0) {
      scalar = append({.kind = ProgramValue::Kind::constant, .value_class = wanted, .constant = scalar.number()});
    } else if (class_of(scalar) != wanted) {
      throw Error(
          {.function = monoid.monoid.name, .cure = "Compare to get a truth value; keep indices and elements apart"},
          "a monoid's law mixes elements, indices and truth values");
    }
    return static_cast<std::uint16_t>(scalar.id());
  }
  ScalarProgram finished(std::span<const Scalar> results, std::span<const ValueClass> classes) {
    for (std::size_t i = 0; i < results.size(); ++i) program.results.push_back(place(results[i], classes[i]));
    return std::move(program);
  }
  void check() const {
    if (!monoid.monoid.lift.results.empty() && !monoid.monoid.merge.results.empty()) dsl::check_monoid(monoid.monoid);
  }
};

namespace {

thread_local Recording::State* recording = nullptr;

bool equal(const ScalarProgram& a, const ScalarProgram& b) {
  if (a.results != b.results || a.values.size() != b.values.size()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const ProgramValue& x = a.values[i];
    const ProgramValue& y = b.values[i];
    if (x.kind != y.kind || x.value_class != y.value_class || x.input != y.input || x.op != y.op || x.args != y.args) {
      return false;
    }
    if (std::bit_cast<std::uint64_t>(x.constant) != std::bit_cast<std::uint64_t>(y.constant)) return false;
  }
  return true;
}

bool equal(const dsl::Monoid& a, const dsl::Monoid& b) {
  if (a.operand_count != b.operand_count || a.state != b.state || a.commutative != b.commutative) return false;
  if (!equal(a.lift, b.lift) || !equal(a.merge, b.merge) || a.finishes.size() != b.finishes.size()) return false;
  for (std::size_t i = 0; i < a.finishes.size(); ++i) {
    if (a.finishes[i].name != b.finishes[i].name || !equal(a.finishes[i].program, b.finishes[i].program)) return false;
  }
  return a.identity == b.identity;
}

// The program's results as nodes, its inputs being the given ones.
std::vector<dsl::NodeId> replay(dsl::Builder& build, const ScalarProgram& program, std::span<const dsl::NodeId> inputs,
                                DType element) {
  std::vector<dsl::NodeId> nodes;
  for (const ProgramValue& value : program.values) {
    switch (value.kind) {
      case ProgramValue::Kind::input:
        nodes.push_back(inputs[value.input]);
        break;
      case ProgramValue::Kind::constant: {
        const DType dtype = dtype_of_class(value.value_class, element);
        const bool integer = !is_floating(dtype) && dtype != DType::boolean;
        nodes.push_back(integer ? build.integer(dtype, dsl::nearest_integer(dtype, value.constant))
                                : build.constant(dtype, value.constant));
        break;
      }
      case ProgramValue::Kind::operation: {
        std::array<dsl::NodeId, 3> args{};
        const int arity = dsl::info(value.op).arity;
        for (int i = 0; i < arity; ++i) args[i] = nodes[value.args[i]];
        nodes.push_back(build.map(value.op, std::span(args).first(arity)));
        break;
      }
    }
  }
  std::vector<dsl::NodeId> results;
  for (const std::uint16_t result : program.results) results.push_back(nodes[result]);
  return results;
}

}  // namespace

int finish_number(const dsl::Monoid& monoid, std::string_view given_name) {
  const std::string name = dsl::printable_name(given_name);
  for (std::size_t i = 0; i < monoid.finishes.size(); ++i) {
    if (monoid.finishes[i].name == name) return static_cast<int>(i);
  }
  throw Error({.function = monoid.name, .found = name}, "the monoid has no finish of this name");
}

std::shared_ptr<UserMonoid> make_monoid(std::string name, int operands, std::span<const StateSlot> state,
                                        bool commutative) {
  for (int i = 0; i < dsl::builtin_monoid_count; ++i) {
    if (dsl::builtin_monoid(static_cast<dsl::BuiltinMonoid>(i)).name == name) {
      throw Error({.function = name, .cure = "Choose another name"}, "a built-in monoid has this name");
    }
  }
  auto made = std::make_shared<UserMonoid>();
  made->monoid.name = dsl::printable_name(name);
  made->monoid.operand_count = operands;
  made->monoid.commutative = commutative;
  for (const StateSlot& slot : state) {
    made->monoid.state.push_back(static_cast<ValueClass>(slot.kind));
    made->monoid.identity.push_back(slot.identity);
  }
  return made;
}

Recording::Recording(UserMonoid& monoid) : state_(std::make_unique<State>(monoid)) { recording = state_.get(); }
Recording::~Recording() { recording = nullptr; }

Scalar Recording::element(int input) { return state_->input(input, ValueClass::element); }
Scalar Recording::index(int input) { return state_->input(input, ValueClass::index); }
Scalar Recording::slot(int input, int slot) { return state_->input(input, state_->monoid.monoid.state[slot]); }
Scalar Recording::finish(int input, int finish) {
  return state_->input(input, state_->monoid.monoid.finishes[finish].value_class);
}
int Recording::finish_count() const { return static_cast<int>(state_->monoid.monoid.finishes.size()); }

void Recording::lift(std::span<const Scalar> results) {
  state_->monoid.monoid.lift = state_->finished(results, state_->monoid.monoid.state);
  state_->check();
}

void Recording::merge(std::span<const Scalar> results) {
  state_->monoid.monoid.merge = state_->finished(results, state_->monoid.monoid.state);
  state_->check();
}

void Recording::finish(std::string given_name, Scalar result) {
  std::string name = dsl::printable_name(given_name);
  for (const dsl::Finish& other : state_->monoid.monoid.finishes) {
    if (other.name != name) continue;
    throw Error(
        {.function = state_->monoid.monoid.name, .argument = name, .cure = "Give each finish a name of its own"},
        "two finishes of a monoid have one name");
  }
  const ValueClass value_class = result.id() < 0 ? ValueClass::element : state_->class_of(result);
  state_->monoid.monoid.finishes.push_back(
      {std::move(name), value_class, state_->finished(std::span(&result, 1), std::span(&value_class, 1))});
}

void Recording::adjoint(std::span<const Scalar> results) {
  const std::vector<ValueClass> classes(results.size(), ValueClass::element);
  const ScalarProgram program = state_->finished(results, classes);
  state_->monoid.monoid.adjoint = [program](dsl::Builder& build, const dsl::FoldCotangents& at) {
    const DType element = build.node(at.fold).dtype;
    std::vector<dsl::NodeId> inputs = at.operands;
    for (std::size_t i = 0; i < at.finishes.size(); ++i) {
      inputs.push_back(at.finishes[i] != dsl::no_node ? at.finishes[i] : build.finish(at.fold, static_cast<int>(i)));
    }
    for (const dsl::NodeId cotangent : at.cotangents) {
      inputs.push_back(cotangent != dsl::no_node ? cotangent : build.constant(element, 0));
    }
    std::vector<dsl::NodeId> cotangents = replay(build, program, inputs, element);
    for (std::size_t i = 0; i < cotangents.size(); ++i) {
      cotangents[i] = build.broadcast(cotangents[i], build.node(at.operands[i]).axes);
    }
    return cotangents;
  };
}

Value fold(const UserMonoid& monoid, std::span<const Value> operands, AxisRefs axes) {
  Trace& trace = current_trace("reduce");
  dsl::Builder& build = trace.builder();
  const dsl::Monoid& law = monoid.monoid;
  const std::string_view missing = law.lift.results.empty()    ? "lift"
                                   : law.merge.results.empty() ? "merge"
                                   : law.finishes.empty()      ? "finish"
                                                               : "";
  if (!missing.empty()) {
    throw Error({.function = trace.name(),
                 .argument = law.name,
                 .cure = fmt::format("Write it: monoid<...>(...).{}(...)", missing)},
                fmt::format("the monoid lacks its {}", missing));
  }
  const int number = build.monoid(monoid.monoid);
  if (!equal(build.graph().monoids[number], monoid.monoid)) {
    throw Error({.function = trace.name(), .argument = monoid.monoid.name, .cure = "Rename one"},
                "two different monoids have one name");
  }
  std::vector<dsl::NodeId> nodes;
  DType dtype = DType::boolean;
  for (const Value& operand : operands) dtype = promote(dtype, build.node(trace.use(operand)).dtype);
  for (const Value& operand : operands) nodes.push_back(build.cast(dtype, operand.node));
  std::vector<dsl::AxisId> ids;
  for (const AxisRef& axis : axes) {
    const auto has = [&](dsl::NodeId node) { return build.node(node).axes.contains(trace.axis_of(node, axis)); };
    const auto found = std::find_if(nodes.begin(), nodes.end(), has);
    ids.push_back(trace.axis_of(found != nodes.end() ? *found : nodes[0], axis));
  }
  return trace.give(build.fold(number, nodes, ids));
}

}  // namespace detail

Scalar Scalar::apply(ScalarOp op, std::initializer_list<Scalar> operands) {
  detail::Recording::State* state = detail::recording;
  if (state == nullptr) {
    throw Error({.cure = "Write it inside the lambdas given to tigon::monoid"},
                "a scalar is used outside a monoid's law");
  }
  const dsl::ScalarOpInfo& info = dsl::info(op);
  const bool selects = info.rule == dsl::ResultRule::select;
  const bool logic = info.rule == dsl::ResultRule::logical;
  ValueClass operand_class = logic ? ValueClass::truth : ValueClass::element;
  int first = -1;
  for (std::size_t i = selects ? 1 : 0; i < operands.size() && first < 0; ++i) {
    const Scalar operand = operands.begin()[i];
    if (operand.id() < 0) continue;
    first = operand.id();
    if (!logic) operand_class = state->class_of(operand);
  }
  ProgramValue value{.kind = ProgramValue::Kind::operation, .value_class = operand_class, .op = op};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    value.args[i] = state->place(operands.begin()[i], selects && i == 0 ? ValueClass::truth : operand_class);
  }
  if (info.rule == dsl::ResultRule::comparison || info.rule == dsl::ResultRule::predicate) {
    value.value_class = ValueClass::truth;
  }
  return state->append(value);
}

}  // namespace tigon
