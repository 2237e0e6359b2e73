// How many launches common operations take, by their plans' steps.
#include <catch2/catch.hpp>

#include "codegen/loops/print.hpp"
#include "problem.hpp"
#include "tigon/ops/adamw.hpp"
#include "tigon/ops/rms_norm.hpp"
#include "tigon/ops/softmax.hpp"
#include "tigon/tigon.hpp"

using namespace tigon;

namespace {

struct Tokens : axis<"tokens"> {};
struct Hidden : axis<"hidden"> {};

template <class D>
struct Of {
  template <template <class> class Slot>
  struct RowArgs {
    TIGON_ARGS(RowArgs, (Slot<D(Tokens, Hidden)>, x));
  };
  template <template <class> class Slot>
  struct NormArgs {
    TIGON_ARGS(NormArgs, (Slot<D(Tokens, Hidden)>, x), (Slot<D(Hidden)>, weight));
  };
  template <template <class> class Slot>
  struct RowOut {
    TIGON_OUT(RowOut, (Slot<D(Tokens, Hidden)>, y));
  };
};

// The nests of a plan's kernels, for a failure's message.
std::string nests(const plan::Plan& plan) {
  std::string text;
  for (const plan::Kernel& kernel : plan.kernels) text += loops::print(kernel.scheduled.nest) + "\n";
  return text;
}

template <class D>
auto norm() {
  return function("norm", [](typename Of<D>::template NormArgs<Tensor> in) {
    return typename Of<D>::template RowOut<Tensor>{.y = ops::rms_norm<Hidden>(in.x, in.weight)};
  });
}

// Ten tensors of parameters, of different ranks and shapes, each with its gradient and moments.
struct A : axis<"a"> {};
struct B : axis<"b"> {};
struct C : axis<"c"> {};
struct D : axis<"d"> {};
template <class S>
struct Moments {
  template <template <class> class Slot>
  struct Args {
    TIGON_ARGS(Args, (Slot<S>, parameter), (Slot<S>, gradient), (Slot<S>, first), (Slot<S>, second));
  };
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<S>, parameter), (Slot<S>, first), (Slot<S>, second));
  };
};
template <class S, template <class> class Slot>
using In = typename Moments<S>::template Args<Slot>;
template <class S, template <class> class Slot>
using Update = typename Moments<S>::template Out<Slot>;

template <template <class> class Slot>
struct StepArgs {
  TIGON_ARGS(StepArgs, (In<f32(A), Slot>, t0), (In<f32(B), Slot>, t1), (In<f32(C), Slot>, t2),
             (In<f32(A, B), Slot>, t3), (In<f32(B, A), Slot>, t4), (In<f32(B, C), Slot>, t5), (In<f32(A, C), Slot>, t6),
             (In<f32(C, D), Slot>, t7), (In<f32(D), Slot>, t8), (In<f32(A, B, C), Slot>, t9),
             (Slot<scalar<f32>>, learning_rate), (Slot<scalar<f32>>, step));
};
template <template <class> class Slot>
struct StepOut {
  TIGON_ARGS(StepOut, (Update<f32(A), Slot>, t0), (Update<f32(B), Slot>, t1), (Update<f32(C), Slot>, t2),
             (Update<f32(A, B), Slot>, t3), (Update<f32(B, A), Slot>, t4), (Update<f32(B, C), Slot>, t5),
             (Update<f32(A, C), Slot>, t6), (Update<f32(C, D), Slot>, t7), (Update<f32(D), Slot>, t8),
             (Update<f32(A, B, C), Slot>, t9));
};

dsl::Graph adamw_of_ten() {
  const auto step = function("adamw", [](StepArgs<Tensor> in) {
    const ops::AdamwNumbers numbers{.learning_rate = in.learning_rate,
                                    .beta1 = number<f32>(0.9),
                                    .beta2 = number<f32>(0.999),
                                    .epsilon = number<f32>(1e-8),
                                    .weight_decay = number<f32>(0.01),
                                    .step = in.step};
    const auto updated = [&]<class S>(const In<S, Tensor>& of, Update<S, Tensor>& into) {
      const auto update = ops::adamw(of.parameter, of.gradient, of.first, of.second, numbers);
      into = {.parameter = update.parameter, .first = update.first, .second = update.second};
    };
    StepOut<Tensor> out;
    updated.template operator()<f32(A)>(in.t0, out.t0);
    updated.template operator()<f32(B)>(in.t1, out.t1);
    updated.template operator()<f32(C)>(in.t2, out.t2);
    updated.template operator()<f32(A, B)>(in.t3, out.t3);
    updated.template operator()<f32(B, A)>(in.t4, out.t4);
    updated.template operator()<f32(B, C)>(in.t5, out.t5);
    updated.template operator()<f32(A, C)>(in.t6, out.t6);
    updated.template operator()<f32(C, D)>(in.t7, out.t7);
    updated.template operator()<f32(D)>(in.t8, out.t8);
    updated.template operator()<f32(A, B, C)>(in.t9, out.t9);
    return out;
  });
  dsl::Graph graph = *step.trace();
  for (dsl::OutputInfo& output : graph.outputs) {  // in place
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].name != output.name) continue;
      output.mode = dsl::OutputMode::alias;
      output.alias_input = static_cast<int>(i);
    }
    REQUIRE(output.mode == dsl::OutputMode::alias);
  }
  return graph;
}

}  // namespace

TEMPLATE_TEST_CASE("launches: softmax takes one", "", f32, bf16) {
  const auto softmax = function("softmax", [](typename Of<TestType>::template RowArgs<Tensor> in) {
    return typename Of<TestType>::template RowOut<Tensor>{.y = ops::softmax<Hidden>(in.x)};
  });
  const test::Problem problem = test::make_problem(*softmax.trace(), {{"tokens", 33}, {"hidden", 257}}, 1);
  const plan::Plan plan = test::plan_of(problem);
  INFO(nests(plan));
  CHECK(test::count_launches(plan) == 1);
  CHECK(test::check_run(problem).launches == 1);
}

TEMPLATE_TEST_CASE("launches: RMSNorm takes one, its backward at most two", "", f32, bf16) {
  const test::NamedExtents extents{{"tokens", 200}, {"hidden", 300}};
  const test::Problem forward = test::make_problem(*norm<TestType>().trace(), extents, 1);
  const plan::Plan plan = test::plan_of(forward);
  INFO(nests(plan));
  CHECK(test::count_launches(plan) == 1);
  CHECK(test::check_run(forward).launches == 1);

  typename detail::VjpArguments<Of<TestType>::template NormArgs,
                                typename Of<TestType>::template RowOut<Tensor>>::template Slots<Shape>
      shape;
  shape.upstream.y = present;
  const auto gradient = vjp(norm<TestType>(), wrt<"x", "weight">);
  const test::Problem backward = test::make_problem(*gradient.trace(shape), extents, 1);
  const plan::Plan backward_plan = test::plan_of(backward);
  INFO(nests(backward_plan));
  CHECK(test::count_launches(backward_plan) <= 2);
  CHECK(test::check_run(backward).launches <= 2);
}

TEST_CASE("launches: AdamW over ten tensors of different shapes takes one, in place") {
  const test::Problem problem = test::make_problem(adamw_of_ten(), {{"a", 33}, {"b", 20}, {"c", 17}, {"d", 300}}, 1);
  const plan::Plan plan = test::plan_of(problem);
  INFO(nests(plan));
  CHECK(test::count_launches(plan) == 1);
  for (const plan::Buffer& buffer : plan.buffers) CHECK(buffer.home == plan::Home::argument);
}
