// Declares each op file's entry; registry.cpp lists them.
#pragma once
#include "ops/registry.hpp"

namespace tigon::ops {

extern const OpEntry softmax_entry;
extern const OpEntry log_softmax_entry;
extern const OpEntry cross_entropy_entry;
extern const OpEntry linear_cross_entropy_entry;
extern const OpEntry rms_norm_entry;
extern const OpEntry add_rms_norm_entry;
extern const OpEntry layer_norm_entry;
extern const OpEntry rope_entry;
extern const OpEntry swiglu_entry;
extern const OpEntry geglu_entry;
extern const OpEntry embedding_entry;
extern const OpEntry attention_entry;
extern const OpEntry adamw_entry;
extern const OpEntry global_norm_entry;

}  // namespace tigon::ops
