// Loops that add up one row in every thread alike become lanes loops, whose threads share the work.
#pragma once
#include "codegen/loops/builder.hpp"

namespace tigon::schedule {

// Rewrites, outside lanes loops, each loop over blocks of a fold's axis that does nothing else.
void spread_folds(loops::NestBuilder& builder);

// The expression with some of what it is made of replaced; `known` grows.
loops::ExprId rebuild(loops::NestBuilder& builder, loops::ExprId id, std::map<loops::ExprId, loops::ExprId>& known);

}  // namespace tigon::schedule
