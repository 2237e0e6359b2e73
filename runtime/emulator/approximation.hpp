// Approximate functions: computed as exactly as the host can, and moved within their documented error on request.
#pragma once
#include "runtime/emulator/decoder.hpp"

namespace tigon::emulator {

void decode_approximate_quotient(Encoder& encoder);  // div.approx, div.full

}  // namespace tigon::emulator
