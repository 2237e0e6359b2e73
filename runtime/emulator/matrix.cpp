// Matrix fragments: mma.sync in the shapes of 16 x 8 and f64's 8 x 8, ldmatrix, stmatrix, movmatrix.
#include <cmath>
#include <cstring>
#include <numeric>

#include "runtime/emulator/access.hpp"
#include "runtime/emulator/control.hpp"
#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/half.hpp"
#include "runtime/emulator/rows.hpp"

namespace tigon::emulator {

namespace {

using ptx::Type;

// What a register of A or B holds: element i of the `count` in a 32-bit word, as a double.
double element(std::uint32_t word, unsigned i, Type type) {
  switch (type) {
    case Type::bf16:
      return bf16_to_float(static_cast<std::uint16_t>(word >> (16 * i)));
    case Type::f16:
      return half_to_float(static_cast<std::uint16_t>(word >> (16 * i)));
    case Type::tf32:
      return std::bit_cast<float>(word & 0xffffe000);
    case Type::e4m3:
      return format_to_double(word >> (8 * i) & 0xff, format_e4m3);
    case Type::e5m2:
      return format_to_double(word >> (8 * i) & 0xff, format_e5m2);
    case Type::s8:
      return static_cast<std::int8_t>(word >> (8 * i));
    default:
      return static_cast<std::uint8_t>(word >> (8 * i));
  }
}

constexpr unsigned most_k = 32;

struct Fragments {
  double a[16][most_k];
  double b[most_k][8];
};

// Fragments of A and B: a register holds `per_word` neighbours along k; four lanes hold 4 * per_word of them.
void gather(const Warp& warp, const Instruction& instruction, Type a_type, Type b_type, unsigned k,
            Fragments& matrices) {
  const unsigned per_word = 4U / static_cast<unsigned>(std::min(ptx::type_bytes(a_type), 4));
  const unsigned stretch = 4 * per_word;
  const unsigned stretches = k / stretch;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    for (unsigned s = 0; s < stretches; ++s) {
      for (unsigned i = 0; i < per_word; ++i) {
        const unsigned column = s * stretch + lane % 4 * per_word + i;
        for (unsigned half = 0; half < 2; ++half) {
          const auto word = warp.row<std::uint32_t>(instruction.operand[4 + 2 * s + half])[lane];
          matrices.a[lane / 4 + 8 * half][column] = element(word, i, a_type);
        }
        matrices.b[column][lane / 4] = element(warp.row<std::uint32_t>(instruction.operand[12 + s])[lane], i, b_type);
      }
    }
  }
}

std::array<std::uint8_t, most_k> summation_order(const Warp& warp, unsigned k) {
  std::array<std::uint8_t, most_k> order{};
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  if (warp.launch->schedule.perturb) {
    Random random(warp.launch->schedule.seed);
    for (unsigned i = k; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

// D = A * B + C. operand 0-3: D, 4-11: A, 12-15: B, 16-19: C. immediate: k; mode, option, count: types of A, B, C and
// D.
template <class Sum>
void multiply(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, all_lanes)) return;
  const auto k = static_cast<unsigned>(instruction.immediate);
  const bool half_sum = static_cast<Type>(instruction.count) == Type::f16;
  static thread_local Fragments matrices;
  gather(warp, instruction, static_cast<Type>(instruction.mode), static_cast<Type>(instruction.option), k, matrices);
  Sum sum[16][8];
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      auto& to = sum[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
      if constexpr (std::is_same_v<Sum, float>) {
        if (half_sum) {
          const auto word = warp.row<std::uint32_t>(instruction.operand[16 + i / 2])[lane];
          to = half_to_float(static_cast<std::uint16_t>(word >> (16 * (i % 2))));
          continue;
        }
      }
      to = warp.row<Sum>(instruction.operand[16 + i])[lane];
    }
  }
  const auto order = summation_order(warp, k);
  for (unsigned step = 0; step < k; ++step) {
    const auto at = order[step];
    Sum b[8];
    for (unsigned n = 0; n < 8; ++n) b[n] = static_cast<Sum>(matrices.b[at][n]);
    for (unsigned m = 0; m < 16; ++m) {
      const auto a = static_cast<Sum>(matrices.a[m][at]);
      // Products of these types are exact in the sum's type; what the hardware does to sums is its own.
      for (unsigned n = 0; n < 8; ++n) sum[m][n] += a * b[n];
    }
  }
  for (unsigned i = 0; i < 4; ++i) {
    Row<std::uint32_t> result;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      const auto value = sum[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
      if constexpr (std::is_same_v<Sum, float>) {
        if (half_sum) {
          const auto next = sum[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + 1];
          result.lane[lane] = float_to_half(value) | std::uint32_t{float_to_half(next)} << 16;
          continue;
        }
        result.lane[lane] = std::bit_cast<std::uint32_t>(canonical(value));
      } else {
        result.lane[lane] = static_cast<std::uint32_t>(value);
      }
    }
    if (half_sum && i % 2 != 0) continue;
    warp.put(instruction.operand[half_sum ? i / 2 : i], result.lane);
  }
}

// f64: A is 8 x 4, B 4 x 8, one element of each per lane.
void multiply_double(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, all_lanes)) return;
  const auto* a = warp.row<double>(instruction.operand[4]);
  const auto* b = warp.row<double>(instruction.operand[12]);
  const auto order = summation_order(warp, 4);
  Row<double> result[2];
  for (unsigned i = 0; i < 2; ++i) {
    const auto* c = warp.row<double>(instruction.operand[16 + i]);
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      const unsigned row = lane / 4;
      const unsigned column = lane % 4 * 2 + i;
      double sum = c[lane];
      for (unsigned step = 0; step < 4; ++step) {
        const unsigned k = order[step];
        sum = std::fma(a[row * 4 + k], b[column * 4 + k], sum);
      }
      result[i].lane[lane] = sum;
    }
  }
  warp.put(instruction.operand[0], result[0].lane);
  warp.put(instruction.operand[1], result[1].lane);
}

void vector_rows(Encoder& encoder, std::size_t index, std::size_t slot, std::size_t count, Type type) {
  const auto& operand = encoder.operand(index);
  if (operand.kind != ptx::OperandKind::vector) {
    if (count != 1) encoder.fail("a vector was expected");
    encoder.out.operand[slot] = encoder.row(operand, type);
    return;
  }
  if (operand.parts.size() != count) {
    encoder.fail(fmt::format("operand {} has {} registers, not {}", index, operand.parts.size(), count));
  }
  for (std::size_t i = 0; i < count; ++i) encoder.out.operand[slot + i] = encoder.row(operand.parts[i], type);
}

void decode_multiply(Encoder& encoder) {
  if (!encoder.take("sync")) encoder.fail("mma.sync was expected");
  encoder.take("aligned");
  encoder.take("kind::f8f6f4");
  const auto shape = encoder.take_next();
  if (!encoder.take("row") || !encoder.take("col")) encoder.fail("only row by column products are known");
  const auto d = encoder.take_type();
  const auto a = encoder.take_type();
  const auto b = encoder.take_type();
  const auto c = encoder.take_type();
  encoder.expect_operands(4);
  if (d != c) encoder.fail("C and D of one type were expected");
  if (shape == "m8n8k4" && d == Type::f64) {
    vector_rows(encoder, 0, 0, 2, Type::f64);
    vector_rows(encoder, 1, 4, 1, Type::f64);
    vector_rows(encoder, 2, 12, 1, Type::f64);
    vector_rows(encoder, 3, 16, 2, Type::f64);
    encoder.out.run = multiply_double;
    return;
  }
  if (!shape.starts_with("m16n8k")) encoder.fail(fmt::format("the shape {} is not known", shape));
  const auto k = static_cast<unsigned>(std::stoul(shape.substr(6)));
  const auto element_bytes = static_cast<unsigned>(ptx::type_bytes(a));
  const bool known = a == Type::bf16 || a == Type::f16 || a == Type::tf32 || a == Type::e4m3 || a == Type::e5m2 ||
                     a == Type::s8 || a == Type::u8;
  const auto stretch = 16 / std::max(element_bytes, 1U);
  if (!known || element_bytes != static_cast<unsigned>(ptx::type_bytes(b)) || k % stretch != 0 || k > 2 * stretch) {
    encoder.fail("mma of these types and this shape is not known");
  }
  if (d != Type::f32 && d != Type::f16 && d != Type::s32) encoder.fail("mma with this accumulator is not known");
  const bool integers = a == Type::s8 || a == Type::u8;
  if (integers != (d == Type::s32)) encoder.fail("the accumulator does not fit the operands");
  encoder.out.immediate = k;
  encoder.out.mode = static_cast<std::uint8_t>(a);
  encoder.out.option = static_cast<std::uint8_t>(b);
  encoder.out.count = static_cast<std::uint8_t>(d);
  const std::size_t words = k / stretch;
  const std::size_t sums = d == Type::f16 ? 2 : 4;
  vector_rows(encoder, 0, 0, sums, Type::b32);
  vector_rows(encoder, 1, 4, 2 * words, Type::b32);
  vector_rows(encoder, 2, 12, words, Type::b32);
  vector_rows(encoder, 3, 16, sums, Type::b32);
  if (integers) {
    if (encoder.take("satfinite")) encoder.fail("saturating integer mma is not known");
    encoder.out.run = multiply<std::int32_t>;
  } else {
    encoder.out.run = multiply<float>;
  }
}

// operand[0]: the address; from [1]: the registers; count: matrices; option: 1 if transposed.
void load_matrices(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, all_lanes)) return;
  Addresses addresses;
  Pointers pointers;
  compute_addresses(warp, instruction, 0, addresses);
  const unsigned rows = 8U * instruction.count;
  const Mask lanes = warp.active & (rows == 32 ? all_lanes : (Mask{1} << rows) - 1);
  const Mask good =
      prepare_access(warp, instruction, instruction.space, addresses, lanes, 16, AccessKind::load, pointers);
  Row<std::uint32_t> results[4];
  for (unsigned matrix = 0; matrix < instruction.count; ++matrix) {
    std::uint16_t values[8][8];
    std::memset(values, 0xff, sizeof values);
    for (unsigned row = 0; row < 8; ++row) {
      if ((good >> (8 * matrix + row) & 1) != 0) std::memcpy(values[row], pointers[8 * matrix + row], 16);
    }
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      const unsigned row = lane / 4;
      const unsigned column = lane % 4 * 2;
      const bool across = instruction.option != 0;
      const auto low = across ? values[column][row] : values[row][column];
      const auto high = across ? values[column + 1][row] : values[row][column + 1];
      results[matrix].lane[lane] = low | std::uint32_t{high} << 16;
    }
  }
  for (unsigned matrix = 0; matrix < instruction.count; ++matrix) {
    warp.put(instruction.operand[1 + matrix], results[matrix].lane);
  }
}

void store_matrices(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, all_lanes)) return;
  Addresses addresses;
  Pointers pointers;
  compute_addresses(warp, instruction, 0, addresses);
  const unsigned rows = 8U * instruction.count;
  const Mask lanes = warp.active & (rows == 32 ? all_lanes : (Mask{1} << rows) - 1);
  const Mask good =
      prepare_access(warp, instruction, instruction.space, addresses, lanes, 16, AccessKind::store, pointers);
  for (unsigned matrix = 0; matrix < instruction.count; ++matrix) {
    std::uint16_t values[8][8];
    const auto* from = warp.row<std::uint32_t>(instruction.operand[1 + matrix]);
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned row = lane / 4;
        const unsigned column = lane % 4 * 2 + i;
        auto& to = instruction.option != 0 ? values[column][row] : values[row][column];
        to = static_cast<std::uint16_t>(from[lane] >> (16 * i));
      }
    }
    for (unsigned row = 0; row < 8; ++row) {
      if ((good >> (8 * matrix + row) & 1) != 0) std::memcpy(pointers[8 * matrix + row], values[row], 16);
    }
  }
}

void decode_matrix_access(Encoder& encoder) {
  const bool is_load = encoder.source().opcode == "ldmatrix";
  encoder.take("sync");
  encoder.take("aligned");
  if (!encoder.take("m8n8")) encoder.fail("only m8n8 matrices are known");
  const auto count = encoder.take_any({"x1", "x2", "x4"});
  if (count < 0) encoder.fail("the number of matrices is missing");
  encoder.out.count = static_cast<std::uint8_t>(1U << count);
  encoder.out.option = encoder.take("trans") ? 1 : 0;
  encoder.out.space = encoder.take_space();
  if (encoder.take_type() != Type::b16) encoder.fail("only .b16 is known");
  encoder.expect_operands(2);
  encoder.address(is_load ? 1 : 0, 0, encoder.out.stride);
  vector_rows(encoder, is_load ? 0 : 1, 1, encoder.out.count, Type::b32);
  encoder.out.run = is_load ? load_matrices : store_matrices;
}

void transpose(Warp& warp, const Instruction& instruction) {
  if (!converge(warp, instruction, all_lanes)) return;
  const auto* a = warp.row<std::uint32_t>(instruction.operand[1]);
  Row<std::uint32_t> result;
  for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
    const auto value = [&](unsigned row, unsigned column) {
      return a[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
    };
    const unsigned row = lane / 4;
    const unsigned column = lane % 4 * 2;
    result.lane[lane] = value(column, row) | value(column + 1, row) << 16;
  }
  warp.put(instruction.operand[0], result.lane);
}

}  // namespace

void add_matrix_families(FamilyTable& table) {
  table["mma"] = decode_multiply;
  table["ldmatrix"] = decode_matrix_access;
  table["stmatrix"] = decode_matrix_access;
  table["movmatrix"] = [](Encoder& encoder) {
    encoder.take("sync");
    encoder.take("aligned");
    if (!encoder.take("m8n8") || !encoder.take("trans")) encoder.fail("m8n8 and trans were expected");
    encoder.take_type();
    encoder.expect_operands(2);
    encoder.out.operand[0] = encoder.row(0, Type::b32);
    encoder.out.operand[1] = encoder.row(1, Type::b32);
    encoder.out.run = transpose;
  };
}

}  // namespace tigon::emulator
