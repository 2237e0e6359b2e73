// Arithmetic of f16 and bf16, alone and in pairs, and of pairs of 16-bit integers.
#pragma once
#include "runtime/emulator/decoder.hpp"

namespace tigon::emulator {

enum class NarrowOperation : std::uint8_t { add, subtract, multiply, fused, minimum, maximum };

void decode_narrow(Encoder& encoder, ptx::Type type, NarrowOperation operation);
void decode_pair_of_integers(Encoder& encoder, ptx::Type type, NarrowOperation operation);

}  // namespace tigon::emulator
