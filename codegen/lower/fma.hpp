// What both lowerings do to a nest first: lifts are written out and products that are only added become fma.
#pragma once
#include <vector>

#include "codegen/loops/nest.hpp"

namespace tigon::lower {

struct Prepared {
  loops::Nest nest;                 // no Update is left: each is a Merge of its lifted state
  std::vector<std::uint32_t> uses;  // by expression: how often living expressions and statements refer to it
};

// add(mul(a, b), c), sub(mul(a, b), c) and sub(c, mul(a, b)) become fma where nothing else reads the product, in f32
// and f64. A product that a Merge adds to its state is left in place; `fused_product` finds it there.
Prepared prepare(const loops::Nest& nest);

// The multiplication behind a merged operand, if adding it to a state may fuse: `no_expr` otherwise.
loops::ExprId fused_product(const Prepared& prepared, loops::ExprId operand);

}  // namespace tigon::lower
