// Writes the body of one prelude function: hands out SSA names, spreads constants over the width, notes intrinsics
// used.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tigon/dtype.hpp"

namespace tigon::llvm {

// The element of a vector value.
enum class Lane : std::uint8_t { i1, i16, i32, i64, f16, f32, f64 };

// An SSA name or literal and its element type; the width is the function's.
struct Value {
  std::string text;
  Lane lane;
};

class PreludeWriter {
 public:
  PreludeWriter(std::string symbol, DType dtype, int width);

  [[nodiscard]] bool is_f32() const { return dtype_ == DType::f32; }
  [[nodiscard]] Lane floating() const { return is_f32() ? Lane::f32 : Lane::f64; }
  [[nodiscard]] Lane integer() const { return is_f32() ? Lane::i32 : Lane::i64; }
  // One of two numbers, by dtype.
  template <class T>
  [[nodiscard]] T pick(T for_f32, T for_f64) const {
    return is_f32() ? for_f32 : for_f64;
  }

  Value parameter(std::string_view name, Lane lane);
  void result(const Value& value);

  // Constants of the function's own floating and integer type, or of a given lane.
  Value number(std::string_view name, double value) { return number(name, value, floating()); }
  Value number(std::string_view name, double value, Lane lane);
  Value whole(std::string_view name, std::uint64_t value) { return whole(name, value, integer()); }
  Value whole(std::string_view name, std::uint64_t value, Lane lane);

  // Any two-operand instruction: fadd, fsub, fmul, fdiv, add, sub, and, or, xor, shl, lshr, ashr.
  Value binary(std::string_view name, std::string_view opcode, const Value& a, const Value& b);
  Value add(std::string_view name, const Value& a, const Value& b) { return binary(name, "fadd", a, b); }
  Value sub(std::string_view name, const Value& a, const Value& b) { return binary(name, "fsub", a, b); }
  Value mul(std::string_view name, const Value& a, const Value& b) { return binary(name, "fmul", a, b); }
  Value div(std::string_view name, const Value& a, const Value& b) { return binary(name, "fdiv", a, b); }
  Value negate(std::string_view name, const Value& a);
  Value compare(std::string_view name, std::string_view predicate, const Value& a, const Value& b);  // "fcmp olt"
  Value select(std::string_view name, const Value& condition, const Value& a, const Value& b);
  Value cast(std::string_view name, std::string_view opcode, const Value& a, Lane to);
  Value bits(std::string_view name, const Value& a);       // bitcast to the integer of the same size
  Value from_bits(std::string_view name, const Value& a);  // and back

  // llvm.fma, llvm.fabs ...
  Value intrinsic(std::string_view name, std::string_view function, std::span<const Value> arguments);
  Value fma(std::string_view name, const Value& a, const Value& b, const Value& c);
  Value absolute(std::string_view name, const Value& a);
  Value copy_sign(std::string_view name, const Value& magnitude, const Value& sign);
  Value square_root(std::string_view name, const Value& a);
  Value nearest(std::string_view name, const Value& a);

  // Another function of the prelude, for the same dtype and width.
  Value call(std::string_view name, std::string_view function, const Value& a);  // `function` outlives the writer

  // coefficients[0] + x (coefficients[1] + x (...)) by fma, in x's lane.
  Value polynomial(std::string_view name, const Value& x, std::span<const double> coefficients);

  [[nodiscard]] std::string type(Lane lane) const;
  [[nodiscard]] std::string definition(std::string_view comment) const;
  [[nodiscard]] const std::set<std::string>& declarations() const { return declarations_; }
  [[nodiscard]] const std::vector<std::string_view>& calls() const { return calls_; }  // functions called, in order

 private:
  std::string fresh(std::string_view name);
  Value assign(std::string_view name, Lane lane, const std::string& text);
  Value spread(std::string_view name, const std::string& literal, const std::string& comment, Lane lane);

  std::string symbol_;
  DType dtype_;
  int width_;
  std::string body_;
  std::vector<std::string> parameters_;
  std::string result_type_;
  std::map<std::string, int, std::less<>> names_;  // how often each base name was handed out
  std::map<std::string, std::string> constants_;   // literal with its type -> SSA name
  std::set<std::string> declarations_;
  std::vector<std::string_view> calls_;
};

}  // namespace tigon::llvm
