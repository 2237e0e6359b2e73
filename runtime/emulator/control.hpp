// Branches, calls and exits, and how lanes that went separate ways come together again.
#pragma once
#include "runtime/emulator/machine.hpp"

namespace tigon::emulator {

void branch(Warp& warp, const Instruction& instruction);
void branch_indexed(Warp& warp, const Instruction& instruction);
void leave(Warp& warp, const Instruction& instruction);      // exit, and ret of a kernel
void give_back(Warp& warp, const Instruction& instruction);  // ret of a function
void call_function(Warp& warp, const Instruction& instruction);
void copy_parameter(Warp& warp, const Instruction& instruction);

// Chooses the lanes that run next: those at the lowest instruction. Sets `stop` if none can.
void regroup(Warp& warp);

// At a warp-wide instruction whose mask is `wanted`: waits for lanes of it that are elsewhere. False if the warp has to
// run others first and come back; true once they are here, or if they never come, which is reported.
bool converge(Warp& warp, const Instruction& instruction, Mask wanted);

// Runs the warp for at most `budget` instructions, or until it can do nothing before others do something; how many it
// executed.
std::uint64_t run_warp(Warp& warp, std::uint64_t budget);

}  // namespace tigon::emulator
