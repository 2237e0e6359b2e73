// The parts of the PTX parser that its files share.
#pragma once
#include "runtime/emulator/ptx.hpp"
#include "runtime/emulator/ptx_lexer.hpp"

namespace tigon::emulator::ptx {

Variable parse_variable(Lexer& lexer, Space space, bool external);
void parse_body(Lexer& lexer, Function& function);  // from '{' to its '}'

}  // namespace tigon::emulator::ptx
