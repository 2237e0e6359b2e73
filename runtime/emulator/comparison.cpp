// Comparisons and selections: setp, set, selp, slct.
#include <cmath>

#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/half.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Join : std::uint8_t { none, conjunction, disjunction, exclusive };

template <class T, class F>
Mask compare_rows(const T* a, const T* b, F compare) {
  Row<std::uint8_t> truth;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) truth.lane[lane] = compare(a[lane], b[lane]) ? 1 : 0;
  return pack(truth);
}

// The ordered comparisons are false when an operand is NaN, those with u are true.
template <class T>
Mask compare_all(Compare how, const T* a, const T* b) {
  switch (how) {
    case Compare::eq:
      return compare_rows(a, b, [](T x, T y) { return x == y; });
    case Compare::ne:
      if constexpr (std::is_floating_point_v<T>) {
        return compare_rows(a, b, [](T x, T y) { return x < y || x > y; });
      } else {
        return compare_rows(a, b, [](T x, T y) { return x != y; });
      }
    case Compare::lt:
      return compare_rows(a, b, [](T x, T y) { return x < y; });
    case Compare::le:
      return compare_rows(a, b, [](T x, T y) { return x <= y; });
    case Compare::gt:
      return compare_rows(a, b, [](T x, T y) { return x > y; });
    case Compare::ge:
      return compare_rows(a, b, [](T x, T y) { return x >= y; });
    case Compare::equ:
      return compare_rows(a, b, [](T x, T y) { return !(x < y || x > y); });
    case Compare::neu:
      return compare_rows(a, b, [](T x, T y) { return x != y; });
    case Compare::ltu:
      return compare_rows(a, b, [](T x, T y) { return !(x >= y); });
    case Compare::leu:
      return compare_rows(a, b, [](T x, T y) { return !(x > y); });
    case Compare::gtu:
      return compare_rows(a, b, [](T x, T y) { return !(x <= y); });
    case Compare::geu:
      return compare_rows(a, b, [](T x, T y) { return !(x < y); });
    case Compare::num:
      return compare_rows(a, b, [](T x, T y) { return x == x && y == y; });
    case Compare::nan:
      return compare_rows(a, b, [](T x, T y) { return x != x || y != y; });
  }
  return 0;
}

template <class T>
Mask compare(const Warp& warp, const Instruction& instruction) {
  return compare_all<T>(static_cast<Compare>(instruction.mode), warp.row<T>(instruction.operand[2]),
                        warp.row<T>(instruction.operand[3]));
}

template <>
Mask compare<float>(const Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<float>(instruction.operand[2]);
  const auto* b = warp.row<float>(instruction.operand[3]);
  if (!instruction.flush) return compare_all<float>(static_cast<Compare>(instruction.mode), a, b);
  Row<float> x;
  Row<float> y;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    x.lane[lane] = flush(a[lane]);
    y.lane[lane] = flush(b[lane]);
  }
  return compare_all<float>(static_cast<Compare>(instruction.mode), x.lane, y.lane);
}

struct HalfTag {};
struct BrainTag {};

template <class Widen>
Mask compare_narrow(const Warp& warp, const Instruction& instruction, Widen widen) {
  Row<float> x;
  Row<float> y;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    x.lane[lane] = widen(warp.row<std::uint16_t>(instruction.operand[2])[lane]);
    y.lane[lane] = widen(warp.row<std::uint16_t>(instruction.operand[3])[lane]);
  }
  return compare_all<float>(static_cast<Compare>(instruction.mode), x.lane, y.lane);
}
template <>
Mask compare<HalfTag>(const Warp& warp, const Instruction& instruction) {
  return compare_narrow(warp, instruction, half_to_float);
}
template <>
Mask compare<BrainTag>(const Warp& warp, const Instruction& instruction) {
  return compare_narrow(warp, instruction, bf16_to_float);
}

Mask joined(const Warp& warp, const Instruction& instruction, Mask result) {
  const Mask with = warp.predicate(instruction.operand[4]) ^ ((instruction.negated & 1) != 0 ? all_lanes : 0);
  switch (static_cast<Join>(instruction.option)) {
    case Join::none:
      return result;
    case Join::conjunction:
      return result & with;
    case Join::disjunction:
      return result | with;
    case Join::exclusive:
      return result ^ with;
  }
  return result;
}

// p|q = (a compare b) join c; q uses the comparison's complement.
template <class T>
void set_predicate_row(Warp& warp, const Instruction& instruction) {
  const Mask truth = compare<T>(warp, instruction);
  const Mask first = joined(warp, instruction, truth);
  if (instruction.operand[1] != 0) {
    warp.set_predicate(instruction.operand[1], joined(warp, instruction, ~truth));
  }
  warp.set_predicate(instruction.operand[0], first);
}

// d = all ones or 1.0 where true.
template <class T>
void set_row(Warp& warp, const Instruction& instruction) {
  const Mask truth = joined(warp, instruction, compare<T>(warp, instruction));
  const std::uint32_t yes = instruction.sign ? std::bit_cast<std::uint32_t>(1.0F) : ~0U;
  Row<std::uint32_t> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) result.lane[lane] = (truth >> lane & 1) != 0 ? yes : 0;
  warp.put(instruction.operand[0], result.lane);
}

template <template <class> class F>
Handler by_type(Type type) {
  switch (type) {
    case Type::u16:
    case Type::b16:
      return F<std::uint16_t>::run;
    case Type::s16:
      return F<std::int16_t>::run;
    case Type::u32:
    case Type::b32:
      return F<std::uint32_t>::run;
    case Type::s32:
      return F<std::int32_t>::run;
    case Type::u64:
    case Type::b64:
      return F<std::uint64_t>::run;
    case Type::s64:
      return F<std::int64_t>::run;
    case Type::f32:
      return F<float>::run;
    case Type::f64:
      return F<double>::run;
    case Type::f16:
      return F<HalfTag>::run;
    case Type::bf16:
      return F<BrainTag>::run;
    default:
      return nullptr;
  }
}
template <class T>
struct SetPredicate {
  static constexpr Handler run = set_predicate_row<T>;
};
template <class T>
struct Set {
  static constexpr Handler run = set_row<T>;
};

void take_comparison(Encoder& encoder, Type type) {
  // lo, ls, hi, hs compare unsigned numbers.
  const auto named =
      encoder.take_any({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  auto how = named;
  if (named < 0) {
    const auto unsigned_form = encoder.take_any({"lo", "ls", "hi", "hs"});
    if (unsigned_form < 0) encoder.fail("a comparison is missing");
    how = unsigned_form + static_cast<int>(Compare::lt);
  }
  if (!ptx::is_float(type) && how > static_cast<int>(Compare::ge)) encoder.fail("a comparison of floats");
  encoder.out.mode = static_cast<std::uint8_t>(how);
  encoder.out.flush = encoder.take("ftz");
  encoder.out.option = static_cast<std::uint8_t>(encoder.take_any({"and", "or", "xor"}) + 1);
  encoder.out.operand[2] = encoder.row(1, type);
  encoder.out.operand[3] = encoder.row(2, type);
  encoder.out.operand[4] = encoder.constant_predicate(false);
  if (encoder.out.option != 0) encoder.out.operand[4] = encoder.predicate(encoder.operand(3), 0);
}

void decode_set_predicate(Encoder& encoder) {
  const auto type = encoder.take_type();
  encoder.out.run = by_type<SetPredicate>(type);
  if (encoder.out.run == nullptr) encoder.fail("setp of this type is not known");
  encoder.expect_operands(3, 4);
  encoder.out.operand[0] = encoder.predicate(encoder.operand(0));
  encoder.out.operand[1] = encoder.second_predicate(0);
  take_comparison(encoder, type);
}

void decode_set(Encoder& encoder) {
  const auto result = encoder.take_type();
  const auto type = encoder.take_type();
  if (result != Type::u32 && result != Type::s32 && result != Type::f32) encoder.fail("set to this type is not known");
  encoder.out.run = by_type<Set>(type);
  if (encoder.out.run == nullptr) encoder.fail("set of this type is not known");
  encoder.out.sign = result == Type::f32;
  encoder.expect_operands(3, 4);
  encoder.out.operand[0] = encoder.row(0, result);
  take_comparison(encoder, type);
}

template <class T>
void select_row(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* b = warp.row<T>(instruction.operand[2]);
  const Mask truth = warp.predicate(instruction.operand[3]) ^ ((instruction.negated & 1) != 0 ? all_lanes : 0);
  Row<T> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane)
    result.lane[lane] = (truth >> lane & 1) != 0 ? a[lane] : b[lane];
  warp.put(instruction.operand[0], result.lane);
}

// slct: a if c >= 0, else b; c is s32 or f32.
template <class T>
void select_by_sign(Warp& warp, const Instruction& instruction) {
  const auto* a = warp.row<T>(instruction.operand[1]);
  const auto* b = warp.row<T>(instruction.operand[2]);
  Row<T> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    const bool first = instruction.sign ? warp.row<float>(instruction.operand[3])[lane] >= 0
                                        : warp.row<std::int32_t>(instruction.operand[3])[lane] >= 0;
    result.lane[lane] = first ? a[lane] : b[lane];
  }
  warp.put(instruction.operand[0], result.lane);
}

template <bool BySign>
void decode_select(Encoder& encoder) {
  const auto type = encoder.take_type();
  encoder.expect_operands(4);
  for (std::size_t i = 0; i < 3; ++i) encoder.out.operand[i] = encoder.row(i, type);
  if (BySign) {
    encoder.take("ftz");
    const auto by = encoder.take_type();
    encoder.out.sign = by == Type::f32;
    encoder.out.operand[3] = encoder.row(3, by);
    encoder.out.run = ptx::type_bytes(type) == 2   ? select_by_sign<std::uint16_t>
                      : ptx::type_bytes(type) == 4 ? select_by_sign<std::uint32_t>
                                                   : select_by_sign<std::uint64_t>;
    return;
  }
  encoder.out.operand[3] = encoder.predicate(encoder.operand(3), 0);
  encoder.out.run = ptx::type_bytes(type) == 2   ? select_row<std::uint16_t>
                    : ptx::type_bytes(type) == 4 ? select_row<std::uint32_t>
                                                 : select_row<std::uint64_t>;
}

}  // namespace

void add_comparison_families(FamilyTable& table) {
  table["setp"] = decode_set_predicate;
  table["set"] = decode_set;
  table["selp"] = decode_select<false>;
  table["slct"] = decode_select<true>;
}

}  // namespace tigon::emulator
