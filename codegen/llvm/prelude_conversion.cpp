// The 16-bit floats: loaded and stored as i16, widened to and narrowed from f32.
#include "codegen/llvm/prelude_parts.hpp"
#include "codegen/llvm/prelude_writer.hpp"

namespace tigon::llvm {

void write_widen_bf16(PreludeWriter& w) {
  const Value x = w.parameter("x", Lane::i16);
  const Value extended = w.cast("extended", "zext", x, Lane::i32);
  w.result(w.from_bits("result", w.binary("bits", "shl", extended, w.whole("half_word", 16, Lane::i32))));
}

// Adds just under half a unit of the kept bits, plus the lowest kept bit: rounds to nearest even. NaN keeps its upper
// bits and is made quiet. Integers only: the processor's own instruction flushes subnormal numbers.
void write_narrow_bf16(PreludeWriter& w) {
  const Value x = w.parameter("x", Lane::f32);
  const Value bits = w.bits("bits", x);
  const Value half_word = w.whole("half_word", 16, Lane::i32);
  const Value upper = w.binary("upper", "lshr", bits, half_word);
  const Value last_kept = w.binary("last_kept", "and", upper, w.whole("bit_one", 1, Lane::i32));
  const Value biased = w.binary("biased", "add", bits, w.whole("under_half", 0x7fff, Lane::i32));
  const Value rounded = w.binary("rounded", "lshr", w.binary("carried", "add", biased, last_kept), half_word);
  const Value quiet = w.binary("quiet", "or", upper, w.whole("quiet_bit", 0x40, Lane::i32));
  const Value chosen = w.select("chosen", w.compare("is_nan", "fcmp uno", x, x), quiet, rounded);
  w.result(w.cast("result", "trunc", chosen, Lane::i16));
}

void write_widen_f16(PreludeWriter& w) {
  const Value x = w.parameter("x", Lane::i16);
  w.result(w.cast("result", "fpext", w.cast("half_value", "bitcast", x, Lane::f16), Lane::f32));
}

void write_narrow_f16(PreludeWriter& w) {
  const Value x = w.parameter("x", Lane::f32);
  w.result(w.cast("result", "bitcast", w.cast("half_value", "fptrunc", x, Lane::f16), Lane::i16));
}

}  // namespace tigon::llvm
