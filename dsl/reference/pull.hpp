// Evaluates the cone of a few nodes element by element: compiled once into a flat list, run over blocks of elements.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <vector>

#include "dsl/graph.hpp"
#include "dsl/reference/bounded.hpp"

namespace tigon::dsl {

// A value held in memory, row-major in its own axes; the slots of a state one after another.
struct Stored {
  std::vector<AxisId> axes;
  std::vector<i64> strides;
  i64 count = 0;  // elements of one slot
  std::vector<Bounded> data;
  bool present = false;

  void shape(std::vector<AxisId> order, const Extents& extents, int slots);
};

// What every cone of one evaluation reads.
struct PullContext {
  const Graph& graph;
  const Extents& extents;
  bool honour_casts = true;
  std::vector<Stored> stored;   // by NodeId
  std::vector<double> scalars;  // by Graph::scalars
};

class Pull {
 public:
  static constexpr int lanes = 64;
  using Register = std::array<Bounded, lanes>;
  using Coordinates = std::array<i64, lanes>;

  // `loop`: the axes iterated over, outermost first.
  Pull(const PullContext& context, std::vector<AxisId> loop);

  // The register that holds the node's value (or slot of its state) once a block has run.
  int value(NodeId node, int slot = 0);
  // The register with the global index along a loop axis.
  int index(AxisId axis);
  [[nodiscard]] const Register& operator[](int number) const { return registers_[static_cast<std::size_t>(number)]; }

  // Calls `consume(first, count)` for each block of points, in row-major order of the loop's axes.
  void run(const std::function<void(i64 first, int count)>& consume);
  [[nodiscard]] i64 points() const;
  [[nodiscard]] std::size_t instructions() const { return code_.size(); }

 private:
  enum class Opcode : std::uint8_t {
    load,
    fill,
    coordinate,
    map,
    cast,
    finish,
    copy_first,
    valid_or_fill,
    // on coordinates
    split,
    quotient,
    remainder,
    lookup,
  };
  struct Instruction {
    Opcode code = Opcode::fill;
    int target = 0;             // register, or coordinate for the last group
    std::array<int, 3> args{};  // registers (coordinates for the last group)
    ScalarOp op = ScalarOp::add;
    DType from = DType::f32;
    Rounding rounding{};
    double number = 0;  // fill
    i64 factor = 1;     // split, quotient, remainder: inner extent; lookup: extent; load: first element
    NodeId node = no_node;
    IndexPolicy policy = IndexPolicy::checked;
    std::vector<std::array<i64, 2>> terms;  // load: coordinate and stride
    std::vector<int> inputs;                // finish: registers of the slots
  };
  using Frame = std::vector<int>;  // by AxisId: the coordinate that indexes it

  int emit(NodeId node, const Frame& frame, int slot);
  int emit_uncached(NodeId node, const Frame& frame, int slot);
  int emit_view(NodeId node, const Frame& frame, int slot);
  int emit_gather(NodeId node, const Frame& frame);
  int load(NodeId node, const Frame& frame, int slot);
  int new_register();
  int new_coordinate();
  int coordinate_of(Opcode code, int a, int b, i64 factor);
  void execute(const Instruction& instruction, int count);
  void execute_map(const Instruction& instruction, int count);
  void look_up(const Instruction& instruction, int count);
  void fill_coordinates(i64 first, int count);

  const PullContext& context_;
  std::vector<AxisId> loop_;
  Frame frame_;
  std::vector<Register> registers_;
  std::vector<Coordinates> coordinates_;
  std::vector<Instruction> code_;
  std::map<std::vector<int>, int> emitted_;     // node, slot and the coordinates of its axes
  std::map<std::array<i64, 4>, int> computed_;  // coordinates
};

}  // namespace tigon::dsl
