// Emitted text computes what the kernel means: every kernel of the corpus runs as text, compiled
// for the CPU with a shim of CUDA, and in the interpreter; the results are compared.
#include <dlfcn.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "corpus.h"
#include "emit/c_like.h"
#include "kernel/check.h"
#include "kernel/interpret.h"

namespace fornax::test {
namespace {

using Launcher = void (*)(const uint64_t* words, unsigned blocks);

// One program in a namespace, without the helpers that the shim has.
std::string program_text(const Case& test, size_t number) {
  const c_like::Program program =
      c_like::write(c_like::cuda(), test.kernel, {.checked = test.checked});
  std::string text = fmt::format("namespace program{} {{\n", number) + program.types;
  for (const c_like::Helper* helper : program.helpers) {
    if (helper->text.find("asm") == std::string_view::npos) text += helper->text;
  }
  const int64_t shared = plan_shared(test.kernel).bytes;
  text += fmt::format("alignas(1024) u8 shared_memory[{}];\n", shared + 1);
  text += program.function;
  text += fmt::format(
      "extern \"C\" void launch{}(const unsigned long long* words, unsigned blocks) {{\n"
      "  memset(shared_memory, 0xab, sizeof shared_memory);\n"
      "  launch({}, {}, blocks, words);\n}}\n}}\n",
      number, program.entry, test.kernel.threads);
  return text;
}

// The corpus as a shared library; nullptr and a reason where there is no compiler.
class Library {
 public:
  explicit Library(const std::vector<Case>& cases) {
    std::string folder = (std::filesystem::temp_directory_path() / "fornax-emit-XXXXXX").string();
    if (!mkdtemp(folder.data())) return;
    const std::string source = folder + "/corpus.cpp", library = folder + "/corpus.so";
    std::ofstream file(source);
    file << "#include \"cuda_shim.h\"\n";
    for (size_t i = 0; i < cases.size(); i++) {
      if (cases[i].runs) file << program_text(cases[i], i);
    }
    file.close();
    const std::string command =
        "${CXX:-g++} -std=c++17 -O1 -w -fno-strict-aliasing -ffp-contract=off -fPIC -shared "
        "-I tests/emit " +
        source + " -o " + library;
    compiled_ = std::system(command.c_str()) == 0;
    if (compiled_) handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) std::filesystem::remove_all(folder);
  }
  // Stays open: the run-time library that it brings along may keep memory.
  ~Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  Launcher find(size_t number) const {
    return handle_
               ? reinterpret_cast<Launcher>(dlsym(handle_, fmt::format("launch{}", number).c_str()))
               : nullptr;
  }

 private:
  bool compiled_ = false;
  void* handle_ = nullptr;
};

// The arguments of a launch: parameters, then what kernel/check.h adds.
std::vector<uint64_t> words_of(const Case& test, std::vector<Argument>& arguments,
                               kernel::Status& status) {
  std::vector<uint64_t> words, counts;
  for (Argument& argument : arguments) {
    const bool buffer = argument.count > 0;
    words.push_back(buffer ? reinterpret_cast<uint64_t>(argument.bytes.data()) : argument.word);
    if (buffer && test.checked) counts.push_back(uint64_t(argument.count));
  }
  words.insert(words.end(), counts.begin(), counts.end());
  if (reports(test.kernel, test.checked)) {
    words.push_back(reinterpret_cast<uint64_t>(status.data()));
  }
  return words;
}

void interpret(const Case& test, std::vector<Argument>& arguments, kernel::Status& status) {
  kernel::Launch launch;
  launch.grid = {int(test.blocks), 1, 1};
  launch.arguments = words_of(test, arguments, status);
  launch.checked = test.checked;
  launch.memory = [&](const void* address) -> kernel::MemoryExtent {
    for (const Argument& argument : arguments) {
      const unsigned char* begin = argument.bytes.data();
      if (address >= begin && address < begin + argument.bytes.size()) {
        return {begin, int64_t(argument.bytes.size())};
      }
    }
    if (address == status.data()) return {status.data(), sizeof status};
    return {};
  };
  kernel::interpret(test.kernel, launch);
}

// Steps between two floats of one sign, as integers see them.
template <class Float, class Bits>
double distance(const unsigned char* a, const unsigned char* b) {
  Float x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y) ? 0 : INFINITY;
  if (std::signbit(x) != std::signbit(y)) return x == y ? 1 : INFINITY;
  const Bits from = std::bit_cast<Bits>(x), to = std::bit_cast<Bits>(y);
  return double(from > to ? from - to : to - from);
}

template <class Small>
double small_distance(const unsigned char* a, const unsigned char* b) {
  Small x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  const bool same = x.bits == y.bits || (std::isnan(float(x)) && std::isnan(float(y)));
  return same ? 0 : INFINITY;
}

double distance(DType dtype, const unsigned char* a, const unsigned char* b) {
  switch (dtype) {
    case DType::f32:
      return distance<float, uint32_t>(a, b);
    case DType::f64:
      return distance<double, uint64_t>(a, b);
    case DType::f16:
      return small_distance<Float16>(a, b);
    case DType::bf16:
      return small_distance<BFloat16>(a, b);
    case DType::f8e4m3:
      return small_distance<Float8E4M3>(a, b);
    case DType::f8e5m2:
      return small_distance<Float8E5M2>(a, b);
    default:
      return std::memcmp(a, b, size_of(dtype)) == 0 ? 0 : INFINITY;
  }
}

void compare(const Case& test, const std::vector<Argument>& expected,
             const std::vector<Argument>& found) {
  int reported = 0;
  for (size_t i = 0; i < found.size(); i++) {
    const DType dtype = test.kernel.parameters[i].type.dtype;
    for (int64_t e = 0; e < found[i].count && reported < 5; e++) {
      const size_t at = size_t(e) * size_of(dtype);
      const double ulps = distance(dtype, &expected[i].bytes[at], &found[i].bytes[at]);
      if (ulps <= test.ulps) continue;
      reported++;
      uint64_t wanted = 0, got = 0;
      std::memcpy(&wanted, &expected[i].bytes[at], size_of(dtype));
      std::memcpy(&got, &found[i].bytes[at], size_of(dtype));
      ADD_FAILURE() << test.kernel.name << ": " << test.kernel.parameters[i].name << "[" << e
                    << "] is " << fmt::format("{:#x}, not {:#x}", got, wanted);
    }
  }
}

TEST(Run, TextComputesWhatTheInterpreterDoes) {
  if (std::system("${CXX:-g++} --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no C++ compiler to compile emitted text with";
  }
  const std::vector<Case> cases = corpus();
  const Library library(cases);
  for (size_t i = 0; i < cases.size(); i++) {
    const Case& test = cases[i];
    if (!test.runs) continue;
    SCOPED_TRACE(test.kernel.name);
    const Launcher launcher = library.find(i);
    ASSERT_TRUE(launcher);
    std::vector<Argument> expected = test.arguments, found = test.arguments;
    kernel::Status expected_status = {}, found_status = {};
    interpret(test, expected, expected_status);
    launcher(words_of(test, found, found_status).data(), test.blocks);
    compare(test, expected, found);
    EXPECT_EQ(found_status, expected_status);
  }
}

}  // namespace
}  // namespace fornax::test
