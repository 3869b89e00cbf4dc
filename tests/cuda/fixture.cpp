#include "tests/cuda/fixture.h"

#include <dlfcn.h>

#include <filesystem>
#include <functional>
#include <stdexcept>

#include "runtime/registry.h"

namespace fornax::cuda {
namespace {

constexpr const char* kText = R"(
extern "C" __global__ void fill(unsigned* to, unsigned count, unsigned value) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = value;
}
extern "C" __global__ void add(unsigned* to, const unsigned* from, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] += from[i];
}
extern "C" __global__ void fault(unsigned* to) { *(volatile unsigned*)64 = 1; }
)";
constexpr int kThreads = 128;

template <class T>
T* function_of(const std::string& library, const char* name) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* found = opened ? dlsym(opened, name) : nullptr;
  if (!found) throw std::runtime_error(dlerror());
  return reinterpret_cast<T*>(found);
}

std::string beside_program(const char* name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

}  // namespace

std::string driver_path() { return beside_program("fake_driver.so"); }
std::string nvrtc_path() { return beside_program("fake_nvrtc.so"); }
FakeDriver& driver() { return *function_of<FakeDriver*()>(driver_path(), "fake_driver")(); }
FakeNvrtc& nvrtc() { return *function_of<FakeNvrtc*()>(nvrtc_path(), "fake_nvrtc")(); }
void reset() {
  function_of<void()>(driver_path(), "fake_driver_reset")();
  nvrtc().version = 13000;
  nvrtc().knows_no_cache = true;
}

std::unique_ptr<CudaRuntime> make_fake(runtime::CodeCache* cache) {
  return std::make_unique<CudaRuntime>(
      RuntimeOptions{driver_path(), nvrtc_path(), cache, driver_path()});
}

Text::Text(std::string entry, std::vector<runtime::ParameterKind> parameters,
           std::string key_text) {
  key = std::move(key_text);
  source.label = entry + " of the tests";
  source.entry = std::move(entry);
  source.text = kText;
  source.threads = kThreads;
  source.parameters = std::move(parameters);
}

runtime::Source Text::make() const {
  made++;
  return source;
}

constexpr auto kWord = runtime::ParameterKind::word32;
constexpr auto kPointer = runtime::ParameterKind::word64;
Text fill_text(const std::string& key) { return {"fill", {kPointer, kWord, kWord}, key}; }
Text add_text() { return {"add", {kPointer, kPointer, kWord}}; }

Bench::Bench(runtime::Runtime& r)
    : runtime(r), fill_program(r.compile(0, fill_text())), add_program(r.compile(0, add_text())) {}

void Bench::fill(Address to, uint32_t count, uint32_t value) {
  const std::array<uint64_t, 3> arguments = {to, count, value};
  runtime.launch(0, *fill_program, {(count + kThreads - 1) / kThreads, 1, 1}, arguments);
}

void Bench::add(Address to, Address from, uint32_t count) {
  const std::array<uint64_t, 3> arguments = {to, from, count};
  runtime.launch(0, *add_program, {(count + kThreads - 1) / kThreads, 1, 1}, arguments);
}

std::vector<uint32_t> Bench::read(Address from, size_t count, int device) {
  std::vector<uint32_t> words(count);
  runtime.read(device, words.data(), from, count * 4);
  return words;
}

void on_runtimes(const std::function<void(runtime::Runtime&)>& body) {
  reset();
  {
    SCOPED_TRACE("stand-in");
    const auto fake = make_fake();
    body(*fake);
  }
  for (runtime::Runtime* real : runtime::runtimes()) {
    std::string absence;
    if (real->name() != "cuda" || real->devices(absence).empty()) continue;
    SCOPED_TRACE(real->devices(absence)[0].description);
    body(*real);
  }
}

}  // namespace fornax::cuda
