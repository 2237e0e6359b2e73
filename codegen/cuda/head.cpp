// What stands above a kernel's body: the head comment, the merge functions, the signature.
#include <fmt/format.h>

#include "codegen/cuda/printer_state.hpp"

namespace tigon::cuda {

void Printer::name_parameters() {
  for (const loops::Parameter& p : lowered_.parameters) parameter_names_.push_back(unique(p.name));
  for (const loops::Slot& s : lowered_.slots) {
    std::string name;
    switch (s.kind) {
      case loops::SlotKind::extent:
        name = lowered_.axes.at(s.axis).name;
        break;
      case loops::SlotKind::origin:
        name = "first_" + lowered_.axes.at(s.axis).name;
        break;
      case loops::SlotKind::global_extent:
        name = "all_" + lowered_.axes.at(s.axis).name;
        break;
      case loops::SlotKind::stride:
        name =
            lowered_.parameters.at(s.parameter).name +
            (lowered_.parameters.at(s.parameter).axes.size() == 2 ? "_pitch" : fmt::format("_stride_{}", s.dimension));
        break;
      case loops::SlotKind::partitions:
        name = "partitions";
        break;
    }
    slot_names_.push_back(unique(name));
  }
  for (const loops::ScalarParameter& s : lowered_.scalars) scalar_names_.push_back(unique(s.name));
}

std::string Printer::head() const {
  std::string text = "// " + lowered_.name + "\n//\n";
  const auto paragraph = [&](const std::string& sentence, const std::string& margin) {
    std::string current = "//" + margin;
    for (std::size_t start = 0; start < sentence.size();) {
      const std::size_t end = std::min(sentence.find(' ', start), sentence.size());
      if (current.size() + end - start > 118 && current.size() > margin.size() + 2) {
        while (current.back() == ' ') current.pop_back();
        text += current + "\n";
        current = "//" + margin + "  ";
      }
      current += " " + sentence.substr(start, end - start);
      start = end + 1;
    }
    text += current + "\n";
  };
  for (std::size_t start = 0; start < lowered_.formula.size();) {
    const std::size_t end = std::min(lowered_.formula.find('\n', start), lowered_.formula.size());
    paragraph(lowered_.formula.substr(start, end - start), "  ");
    start = end + 1;
  }
  if (!lowered_.formula.empty()) text += "//\n";
  for (const std::string& note : lowered_.notes) paragraph(note, "  ");
  return text + "//\n";
}

std::string Printer::signature() const {
  struct Line {
    std::string type_and_name, comment;
  };
  std::vector<Line> lines;
  for (std::size_t id = 0; id < lowered_.parameters.size(); ++id) {
    const loops::Parameter& p = lowered_.parameters[id];
    std::string axes;
    for (const std::uint16_t axis : p.axes) axes += (axes.empty() ? "" : ", ") + lowered_.axes.at(axis).name;
    lines.push_back({fmt::format("{}{}* __restrict__ {}", p.access == loops::Access::read ? "const " : "",
                                 type_text(p.dtype), parameter_names_[id]),
                     fmt::format("[{}]{}{}", axes, p.access == loops::Access::read_write ? ", updated" : "",
                                 p.comment.empty() ? "" : ", " + p.comment)});
  }
  for (std::size_t id = 0; id < lowered_.slots.size(); ++id) {
    const loops::Slot& s = lowered_.slots[id];
    std::string comment;
    if (s.kind == loops::SlotKind::stride)
      comment = fmt::format("elements from one of the {} of {} to the next",
                            lowered_.axes.at(lowered_.parameters.at(s.parameter).axes.at(s.dimension)).name,
                            lowered_.parameters.at(s.parameter).name);
    if (s.kind == loops::SlotKind::origin) comment = "index of this launch's first among all";
    if (s.kind == loops::SlotKind::global_extent) comment = "in all launches together";
    if (s.kind == loops::SlotKind::partitions) comment = fmt::format("blocks of part {}", s.part);
    if (s.kind == loops::SlotKind::partitions && !lowered_.slots.empty()) {
      std::size_t parts = 0;
      for (const loops::Slot& other : lowered_.slots) parts += other.kind == loops::SlotKind::partitions ? 1 : 0;
      if (parts == 1) comment = "blocks";
    }
    lines.push_back(
        {fmt::format("{} {}", s.kind == loops::SlotKind::stride ? "i64" : "int", slot_names_[id]), comment});
  }
  for (std::size_t id = 0; id < lowered_.scalars.size(); ++id)
    lines.push_back({fmt::format("{} {}", type_text(lowered_.scalars[id].dtype), scalar_names_[id]), {}});
  std::size_t widest = 0;
  for (const Line& l : lines) widest = std::max(widest, l.type_and_name.size());
  // At least one block at a time: without a number, ptxas may spill registers so that more blocks fit.
  std::string text =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}, 1)\n{}(", lowered_.threads, lowered_.name);
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const bool last = n + 1 == lines.size();
    std::string written = (n == 0 ? "\n" : "") + std::string("    ") + lines[n].type_and_name + (last ? ")" : ",");
    if (!lines[n].comment.empty())
      written += std::string(widest - lines[n].type_and_name.size() + 2, ' ') + "// " + lines[n].comment;
    text += written + "\n";
  }
  if (lines.empty()) text += ")\n";
  return text;
}

// For each monoid that is merged by call: merge, and the ladders over a warp and over a block.
std::string Printer::merge_functions() {
  std::string text;
  for (const lower::MergeFunction& merge : lowered_.merges) {
    const std::string& name = merge_names_.at({merge.monoid, static_cast<int>(merge.element)});
    const std::size_t slots = merge.earlier.size();
    const auto type = [&](std::size_t slot) {
      return std::string(type_text(lowered_.variables[merge.earlier[slot]].type.dtype));
    };
    const auto each = [&](auto spell) {
      std::string list;
      for (std::size_t slot = 0; slot < slots; ++slot) list += (slot == 0 ? "" : ", ") + spell(slot);
      return list;
    };
    taken_.emplace_back();
    for (std::size_t slot = 0; slot < slots; ++slot) {
      for (const bool later : {false, true}) {
        const lower::VariableId id = later ? merge.later[slot] : merge.earlier[slot];
        variable_names_[id] = unique(fmt::format("{}{}", later ? "b" : "a", slot));
        declared_[id] = true;
      }
    }
    body_.clear();
    indent_ = 1;
    count_uses(merge.body);
    print_block(merge.body);
    taken_.pop_back();
    text += fmt::format("\n// {} of an earlier state (a) and a later one (b), kept in a\n", name);
    text += fmt::format("void merge_{}({}, {}) {{\n{}}}\n", name,
                        each([&](std::size_t s) { return type(s) + "& " + variable_names_[merge.earlier[s]]; }),
                        each([&](std::size_t s) { return type(s) + " " + variable_names_[merge.later[s]]; }), body_);
    const bool over_block = exchanges_.count({name, true}) != 0;
    if (!over_block && exchanges_.count({name, false}) == 0) continue;
    const auto shuffled = [&](std::size_t s, std::string_view how, std::string_view which) {
      const bool truth = type(s) == "bool";
      const std::string moved =
          fmt::format("{}(members, {}a{}{}, {}, team)", how, truth ? "int(" : "", s, truth ? ")" : "", which);
      return truth ? moved + " != 0" : moved;
    };
    text += "// All threads of a team, which is a warp or a part of one, get their merged state, in order.\n";
    text += fmt::format("template <int team>\nvoid warp_{}({}) {{\n", name,
                        each([&](std::size_t s) { return fmt::format("{}& a{}", type(s), s); }));
    text +=
        "  constexpr unsigned mask = team == 32 ? 0xffffffffu : (1u << team % 32) - 1;\n"
        "  const unsigned members = mask << threadIdx.x % 32 / team * team % 32;\n"
        "  #pragma unroll\n  for (int step = 1; step < team; step *= 2) {\n";
    for (std::size_t s = 0; s < slots; ++s)
      text += fmt::format("    const {} b{} = {};\n", type(s), s, shuffled(s, "__shfl_down_sync", "step"));
    text +=
        fmt::format("    merge_{}({}, {});\n  }}\n", name, each([&](std::size_t s) { return fmt::format("a{}", s); }),
                    each([&](std::size_t s) { return fmt::format("b{}", s); }));
    for (std::size_t s = 0; s < slots; ++s) text += fmt::format("  a{} = {};\n", s, shuffled(s, "__shfl_sync", "0"));
    text += "}\n";
    if (!over_block) continue;
    const std::string states = each([&](std::size_t s) { return fmt::format("a{}", s); });
    text += "// The same for a whole block: lanes of a warp first, then the warps.\n";
    text += fmt::format("template <int warps>\nvoid block_{}({}, {}) {{\n  warp_{}<32>({});\n", name,
                        each([&](std::size_t s) { return fmt::format("{}& a{}", type(s), s); }),
                        each([&](std::size_t s) { return fmt::format("{}* by_warp{}", type(s), s); }), name, states);
    text += "  const int lane = threadIdx.x % 32;\n  if (lane == 0) {\n";
    for (std::size_t s = 0; s < slots; ++s) text += fmt::format("    by_warp{}[threadIdx.x / 32] = a{};\n", s, s);
    text += "  }\n  __syncthreads();\n";
    for (std::size_t s = 0; s < slots; ++s) text += fmt::format("  a{} = by_warp{}[lane % warps];\n", s, s);
    text += fmt::format("  warp_{}<warps>({});\n", name, states);
    text += "  __syncthreads();  // the arrays may be written again\n}\n";
  }
  return text;
}

}  // namespace tigon::cuda
