// What is thrown for PTX text that cannot be parsed or that holds an instruction the emulator does not know.
#pragma once
#include <stdexcept>
#include <string>

namespace tigon::emulator {

class PtxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tigon::emulator
