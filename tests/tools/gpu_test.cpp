// The command's GPU side, without a GPU: what is found or missing, resources, machine code, checks and counts on the
// emulated device.
#include <sys/stat.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "run_command.hpp"

using namespace tigon::test;

namespace {

const Variables emulated = {{"TIGON_CUDA_DRIVER", "emulated"}};

bool nvrtc_or_skip() {
  static const bool found = [] {
    const Ran ran = run_tigon({"emit", "softmax", "--axes", "tokens=2,vocab=8", "--what", "ptx"});
    if (ran.code != 0) std::cout << "skipped, for there is no NVRTC: " << ran.err.substr(0, ran.err.find('\n')) << "\n";
    return ran.code == 0;
  }();
  return found;
}

// A program of this name that is nothing but a script.
void write_program(const Folder& folder, const std::string& name, const std::string& script) {
  const std::string path = folder.path() + "/" + name;
  write_text(path, "#!/bin/sh\n" + script);
  ::chmod(path.c_str(), 0700);
}

}  // namespace

TEST_CASE("doctor takes missing GPU parts as notes, each with its cure") {
  const Ran ran = run_tigon({"doctor"}, {{"TIGON_NVRTC", "/nowhere/libnvrtc.so"},
                                         {"TIGON_CUDA_DRIVER", "/nowhere/libcuda.so"},
                                         {"PATH", "/nowhere"},
                                         {"CUDA_HOME", ""},
                                         {"CUDA_PATH", ""}});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(lines_with(ran.out, "missing").empty());
  CHECK(contains(lines_with(ran.out, "tried"), "/nowhere/libnvrtc.so"));
  CHECK(contains(lines_with(ran.out, "tried"), "/nowhere/libcuda.so"));
  CHECK(contains(lines_with(ran.out, "note"), "no usable NVRTC"));
  CHECK(contains(lines_with(ran.out, "note"), "no usable CUDA driver"));
  CHECK(contains(lines_with(ran.out, "cure"), "nvidia-cuda-nvrtc"));
  CHECK(contains(lines_with(ran.out, "cure"), "TIGON_CUDA_DRIVER=emulated"));
  CHECK_FALSE(contains(ran.out, "cuBLASLt (multiplies"));  // of no use without a driver
  CHECK(contains(ran.out, "everything works on the CPU"));
}

TEST_CASE("doctor shows the compiler, the device and the libraries, and runs an op there") {
  if (!nvrtc_or_skip()) return;
  Variables a100 = emulated;
  a100.emplace_back("TIGON_EMULATED_GPU", "a100");
  const Ran ran = run_tigon({"doctor"}, a100);
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(lines_with(ran.out, "in use"), "libnvrtc"));
  CHECK(contains(lines_with(ran.out, "compiles for"), "sm_80"));
  CHECK(contains(lines_with(ran.out, "cuda:0"), "NVIDIA A100-SXM4-80GB, compute capability 8.0, 108 multiprocessors"));
  CHECK(contains(ran.out, "kernels for sm_80"));
  CHECK(contains(ran.out, "cuBLASLt (multiplies"));
  CHECK(contains(lines_with(ran.out, "rms_norm f32"), "NVIDIA A100-SXM4-80GB (emulated)"));
  CHECK(contains(ran.out, "everything works\n"));
}

TEST_CASE("doctor finds a disassembler on the path and asks for its version") {
  Folder folder;
  write_program(folder, "nvdisasm", "echo 'Cuda compilation tools, release 77.1, V77.1.25'\n");
  const Ran ran = run_tigon({"doctor"}, {{"PATH", "/nowhere:" + folder.path()}});
  CHECK(ran.code == 0);
  CHECK(contains(lines_with(ran.out, "in use"), folder.path() + "/nvdisasm"));
  CHECK(contains(lines_with(ran.out, "version"), "77.1.25"));
}

TEST_CASE("resources are a table, or the same numbers as JSON") {
  if (!nvrtc_or_skip()) return;
  const auto emit = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"emit",   "rms_norm", "--gradient", "--axes", "tokens=64,hidden=1024",
                                      "--what", "resources"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_tigon(words);
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    return ran.out;
  };
  const std::string text = emit({"--target", "sm_90a"});
  const auto all = nlohmann::json::parse(emit({"--target", "sm_90a", "--json"}));
  CHECK(all["architecture"] == "sm_90a");
  REQUIRE(all["kernels"].size() == 2);
  for (const auto& kernel : all["kernels"]) {
    const std::string line = lines_with(text, kernel["kernel"].get<std::string>());
    INFO(line << kernel.dump());
    CHECK(contains(line, " " + std::to_string(kernel["registers"].get<int>()) + " "));
    CHECK(contains(line, " " + std::to_string(kernel["instructions"].get<int>()) + " "));
    CHECK(kernel["threads"].get<int>() % 32 == 0);
    CHECK(kernel["threads"] > 0);
    CHECK(kernel["registers"] > 8);
    CHECK(kernel["registers"] <= 255);
    CHECK(kernel["instructions"] > 50);
    CHECK(kernel["spill_store_bytes"] == 0);
    CHECK(kernel["local_load_bytes"] == 0);
  }
  // Rows are read in 16-byte pieces, and exchanged within a block.
  const auto& rows = all["kernels"][0];
  CHECK(rows["global_loads_by_bytes"]["16"] > 0);
  CHECK(rows["barriers"] > 0);
  CHECK(rows["shared_bytes"] > 1024);
  CHECK(nlohmann::json::parse(emit({"--target", "sm_80", "--json"}))["kernels"][0]["shared_bytes"] < 1024);
  // Only one kernel.
  const auto one = nlohmann::json::parse(emit({"--json", "--kernel", "grad_weight"}));
  CHECK(one["kernels"].size() == 1);
  CHECK(one["architecture"] == "sm_90a");
}

TEST_CASE("only resources are JSON, and only GPUs have them") {
  const Ran json = run_tigon({"emit", "softmax", "--what", "cuda", "--json"});
  CHECK(json.code == 2);
  CHECK(contains(json.err, "--what resources"));
  const Ran target = run_tigon({"emit", "softmax", "--what", "resources", "--target", "x86-64-v3"});
  CHECK(target.code == 2);
  CHECK(contains(target.err, "sm_90a"));
}

TEST_CASE("machine code is what the disassembler says about a file that is gone afterwards") {
  if (!nvrtc_or_skip()) return;
  Folder folder, temporary;
  const std::vector<std::string> words = {"emit", "softmax", "--axes", "tokens=2,vocab=8", "--what", "sass"};
  Variables here = {{"PATH", folder.path() + ":/usr/bin:/bin"}, {"TMPDIR", temporary.path()}};
  write_program(folder, "nvdisasm",
                "echo \"$#: $1 $2\"; head -c 4 \"$2\" | tail -c 3; echo; stat -c %a \"$2\"; echo noise >&2\n");
  const Ran ran = run_tigon(words, here);
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "2: --print-code " + temporary.path() + "/tigon-"));
  CHECK(contains(ran.out, "\nELF\n600\n"));
  CHECK(temporary.files().empty());

  write_program(folder, "nvdisasm", "echo 'nvdisasm fatal : Unknown architecture' >&2; exit 7\n");
  const Ran refused = run_tigon(words, here);
  CHECK(refused.code == 4);
  CHECK(refused.out.empty());
  CHECK(contains(refused.err, folder.path() + "/nvdisasm"));
  CHECK(contains(refused.err, "exit code 7"));
  CHECK(contains(refused.err, "Unknown architecture"));
  CHECK(temporary.files().empty());

  // Names are no text for a shell.
  const std::string odd = temporary.path() + "/a b; echo $(touch x)'\"";
  std::filesystem::create_directory(odd);
  write_program(folder, "nvdisasm", "echo \"$2\"\n");
  here[1].second = odd;
  CHECK(contains(run_tigon(words, here).out, odd + "/tigon-"));
  CHECK(temporary.files().empty());
}

TEST_CASE("without a disassembler there is a cure") {
  if (!nvrtc_or_skip()) return;
  const Variables nowhere = {
      {"PATH", "/nowhere"}, {"CUDA_HOME", ""}, {"CUDA_PATH", ""}, {"VIRTUAL_ENV", ""}, {"CONDA_PREFIX", ""}};
  if (contains(run_tigon({"doctor"}, nowhere).out, "/nvdisasm\n")) {
    std::cout << "skipped, for nvdisasm lies in one of the usual folders\n";
    return;
  }
  const Ran ran = run_tigon({"emit", "softmax", "--axes", "tokens=2,vocab=8", "--what", "sass"}, nowhere);
  CHECK(ran.code == 3);
  CHECK(ran.out.empty());
  CHECK(contains(ran.err, "/nowhere"));
  CHECK(contains(ran.err, "nvidia-cuda-nvdisasm"));
}

TEST_CASE("check runs on a CUDA device, forward and gradient") {
  if (!nvrtc_or_skip()) return;
  const Ran ran =
      run_tigon({"check", "rms_norm", "--dtype", "bf16", "--axes", "tokens=5,hidden=70", "--device", "cuda"}, emulated);
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "NVIDIA H200 (emulated)"));
  for (const char* part : {"forward", "gradient", "grad.weight", "error/allowed: worst", "ok: 3 results"})
    CHECK(contains(ran.out, part));
  // Results that share an argument's buffer.
  const Ran update = run_tigon({"check", "adamw", "--axes", "elements=77", "--device", "cuda:0"}, emulated);
  INFO(update.out << update.err);
  CHECK(update.code == 0);
}

TEST_CASE("check tells a kernel that computes something else, and one that leaves its buffers") {
  if (!nvrtc_or_skip()) return;
  Folder folder;
  const auto check = [&](const char* variable) {
    Variables here = emulated;
    here.emplace_back(variable, folder.path());
    return run_tigon({"check", "swiglu", "--axes", "tokens=3,hidden=64", "--device", "cuda"}, here);
  };
  REQUIRE(check("TIGON_DUMP").code == 0);
  std::string path;
  for (const std::string& file : folder.files()) {
    if (contains(file, "swiglu_y") && contains(file, ".cu")) path = folder.path() + "/" + file;
  }
  const std::string text = read_text(path);
  const auto edit = [&](const std::string& from, const std::string& to) {
    REQUIRE(contains(text, from));
    std::string edited = text;
    write_text(path, edited.replace(edited.find(from), from.size(), to));
    return check("TIGON_OVERRIDE");
  };
  const Ran wrong = edit("sigmoid(gate_2)", "sigmoid(-gate_2)");
  INFO(wrong.out << wrong.err);
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.out, "FAILED"));
  CHECK(contains(wrong.out, "1 of 3 results outside their bounds"));
  const Ran beyond = edit("tokens_end = add", "tokens_end = 1 + add");
  INFO(beyond.out << beyond.err);
  CHECK(beyond.code == 4);
  CHECK(contains(beyond.err, "the emulated device found faults in a kernel"));
  CHECK(contains(beyond.err, "swiglu_y_f32_pointwise"));
}

TEST_CASE("a device that is not there is named, with the way around it") {
  const Ran none = run_tigon({"check", "softmax", "--device", "cuda"}, {{"TIGON_CUDA_DRIVER", "/nowhere/libcuda.so"}});
  CHECK(none.code == 3);
  CHECK(none.out.empty());
  CHECK(contains(none.err, "/nowhere/libcuda.so"));
  CHECK(contains(none.err, "TIGON_CUDA_DRIVER=emulated runs kernels on an emulated device"));
  const Ran second = run_tigon({"check", "softmax", "--device", "cuda:1"}, emulated);
  CHECK(second.code == 3);
  CHECK(contains(second.err, "cuda:1"));
  const Ran unknown = run_tigon({"check", "softmax", "--device", "cud"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "Did you mean `cuda`"));
  const Ran two = run_tigon({"check", "softmax", "--device", "cuda", "--target", "sm_90a"}, emulated);
  CHECK(two.code == 2);
  CHECK(contains(two.err, "--target"));
}

TEST_CASE("bench counts what kernels do on the emulated device") {
  if (!nvrtc_or_skip()) return;
  const Ran ran = run_tigon({"bench", "--emulate", "softmax", "--axes", "tokens=8,vocab=1024", "--json"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const auto all = nlohmann::json::parse(ran.out);
  CHECK(all["device"] == "NVIDIA H200");
  REQUIRE(all["ops"].size() == 1);
  const auto& forward = all["ops"][0];
  CHECK(forward["op"] == "softmax");
  CHECK(forward["dtype"] == "bf16");
  CHECK(forward["extents"] == "tokens = 8, vocab = 1024");
  CHECK(forward["compiled_extents"] == forward["extents"]);
  constexpr int row_bytes = 8 * 1024 * 2;
  CHECK(forward["minimum_bytes"] == 2 * row_bytes);
  CHECK(forward["moved_bytes"] == 2 * row_bytes);
  CHECK(forward["asked_bytes"] == 2 * row_bytes);
  CHECK(forward["wide_share"] == 1.0);
  CHECK(forward["met"]["moved"] == true);
  CHECK(forward["exponentials_per_element"] >= 1.0);
  REQUIRE(forward["architectures"].size() == 6);
  for (const auto& [name, needs] : forward["architectures"].items()) {
    INFO(name);
    CHECK(needs["kernels"] == 1);
    CHECK(needs["registers"] > 8);
    CHECK(needs["local_bytes"] == 0);
  }
}

TEST_CASE("a bar that is not met is reported, and changes no exit code") {
  if (!nvrtc_or_skip()) return;
  // One kernel for each operation: intermediate values go through memory.
  const std::vector<std::string> words = {"bench", "--emulate", "swiglu", "--axes", "tokens=8,hidden=256", "--unfused"};
  const Ran ran = run_tigon(words);
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(lines_with(ran.out, "swiglu "), "x SHORT"));
  CHECK(contains(ran.out, " bars met"));
  std::vector<std::string> with_json = words;
  with_json.emplace_back("--json");
  const auto all = nlohmann::json::parse(run_tigon(with_json).out);
  CHECK(all["ops"][0]["met"]["moved"] == false);
  CHECK(all["ops"][0]["moved_bytes"] > 1.5 * all["ops"][0]["minimum_bytes"].get<double>());
}

TEST_CASE("bench refuses what it cannot count") {
  const Ran driver = run_tigon({"bench", "--emulate", "softmax"}, {{"TIGON_CUDA_DRIVER", "/nowhere/libcuda.so"}});
  CHECK(driver.code == 3);
  CHECK(contains(driver.err, "/nowhere/libcuda.so"));
  CHECK(run_tigon({"bench", "--emulate", "softmaxx"}).code == 2);
  CHECK(run_tigon({"bench", "--emulate", "softmax", "--runs", "3"}).code == 2);
  CHECK(run_tigon({"bench", "--emulate", "--axes", "tokens=3"}).code == 2);
  CHECK(run_tigon({"bench", "--emulate", "softmax", "--target", "h200"}).code == 2);
  const Ran two = run_tigon({"bench", "softmax", "rope"});
  CHECK(two.code == 2);
  CHECK(contains(two.err, "2 ops"));
  CHECK(run_tigon({"bench"}).code == 2);
  CHECK(run_tigon({"bench", "softmax", "--json"}).code == 2);
}
