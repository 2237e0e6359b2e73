// The names and sizes of PTX's types.
#include <array>

#include "runtime/emulator/ptx.hpp"

namespace tigon::emulator::ptx {

namespace {
struct Row {
  Type type;
  std::string_view name;
  int bytes;
  bool floating;
  bool is_signed;
};

constexpr std::array rows{
    Row{Type::none, "none", 0, false, false},    Row{Type::pred, "pred", 0, false, false},
    Row{Type::b8, "b8", 1, false, false},        Row{Type::u8, "u8", 1, false, false},
    Row{Type::s8, "s8", 1, false, true},         Row{Type::b16, "b16", 2, false, false},
    Row{Type::u16, "u16", 2, false, false},      Row{Type::s16, "s16", 2, false, true},
    Row{Type::f16, "f16", 2, true, false},       Row{Type::bf16, "bf16", 2, true, false},
    Row{Type::b32, "b32", 4, false, false},      Row{Type::u32, "u32", 4, false, false},
    Row{Type::s32, "s32", 4, false, true},       Row{Type::f32, "f32", 4, true, false},
    Row{Type::tf32, "tf32", 4, true, false},     Row{Type::f16x2, "f16x2", 4, true, false},
    Row{Type::bf16x2, "bf16x2", 4, true, false}, Row{Type::b64, "b64", 8, false, false},
    Row{Type::u64, "u64", 8, false, false},      Row{Type::s64, "s64", 8, false, true},
    Row{Type::f64, "f64", 8, true, false},       Row{Type::b128, "b128", 16, false, false},
    Row{Type::e4m3, "e4m3", 1, true, false},     Row{Type::e5m2, "e5m2", 1, true, false},
    Row{Type::e4m3x2, "e4m3x2", 2, true, false}, Row{Type::e5m2x2, "e5m2x2", 2, true, false},
    Row{Type::u16x2, "u16x2", 4, false, false},  Row{Type::s16x2, "s16x2", 4, false, true},
};

const Row& find(Type type) {
  for (const auto& row : rows) {
    if (row.type == type) return row;
  }
  return rows[0];
}
}  // namespace

Type parse_type(std::string_view suffix) {
  for (const auto& row : rows) {
    if (row.name == suffix && row.type != Type::none) return row.type;
  }
  return Type::none;
}

std::string_view type_name(Type type) { return find(type).name; }
int type_bytes(Type type) { return find(type).bytes; }
bool is_float(Type type) { return find(type).floating; }
bool is_signed(Type type) { return find(type).is_signed; }

}  // namespace tigon::emulator::ptx
