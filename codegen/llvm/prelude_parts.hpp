// The writers of the prelude's functions, one per function, gathered into the table in prelude.cpp.
#pragma once

namespace tigon::llvm {

class PreludeWriter;

void write_exp(PreludeWriter& w);
void write_exp2(PreludeWriter& w);
void write_expm1(PreludeWriter& w);
void write_tanh(PreludeWriter& w);
void write_sigmoid(PreludeWriter& w);
void write_softplus(PreludeWriter& w);
void write_log_sigmoid(PreludeWriter& w);

void write_log(PreludeWriter& w);
void write_log2(PreludeWriter& w);
void write_log1p(PreludeWriter& w);

void write_erf(PreludeWriter& w);
void write_sin(PreludeWriter& w);
void write_cos(PreludeWriter& w);
void write_pow(PreludeWriter& w);
void write_rsqrt(PreludeWriter& w);

void write_widen_bf16(PreludeWriter& w);
void write_narrow_bf16(PreludeWriter& w);
void write_widen_f16(PreludeWriter& w);
void write_narrow_f16(PreludeWriter& w);

}  // namespace tigon::llvm
