#include "runtimes/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/join.h"
#include "base/log.h"

namespace fornax::cuda {

using Handle = struct ProgramObject*;
enum class Status : int { success = 0, invalid_option = 5 };

struct NvrtcFunctions {
#define FORNAX_NVRTC_FUNCTIONS(F)                                                       \
  F(Status, nvrtcVersion, int* major, int* minor)                                       \
  F(const char*, nvrtcGetErrorString, Status status)                                    \
  F(Status, nvrtcGetNumSupportedArchs, int* count)                                      \
  F(Status, nvrtcGetSupportedArchs, int* numbers)                                       \
  F(Status, nvrtcCreateProgram, Handle* program, const char* text, const char* name,    \
    int header_count, const char* const* headers, const char* const* header_names)      \
  F(Status, nvrtcDestroyProgram, Handle* program)                                       \
  F(Status, nvrtcCompileProgram, Handle program, int count, const char* const* options) \
  F(Status, nvrtcGetCUBINSize, Handle program, size_t* bytes)                           \
  F(Status, nvrtcGetCUBIN, Handle program, char* code)                                  \
  F(Status, nvrtcGetProgramLogSize, Handle program, size_t* bytes)                      \
  F(Status, nvrtcGetProgramLog, Handle program, char* log)
#define FORNAX_DECLARE(result, name, ...) result (*name)(__VA_ARGS__) = nullptr;
  FORNAX_NVRTC_FUNCTIONS(FORNAX_DECLARE)
#undef FORNAX_DECLARE
};

namespace {

// Nothing is contracted, as on the CPU; what may be is written as fma().
constexpr std::array kOptions = {"--std=c++17", "-default-device", "-fmad=false",
                                 "--ptxas-options=-v"};
// Our cache is the one, and no program of ours needs textures or the run-time library, whose
// declarations take time.  Older versions do not know these options; the code is the same.
constexpr std::array kNewerOptions = {"-no-cache", "-minimal"};

constexpr std::array kNames = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

// Where toolkits are, beside the places that the linker knows.
std::vector<std::string> folders() {
  std::vector<std::string> list;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* folder = std::getenv(variable);
    if (folder) list.push_back(std::string(folder) + "/lib64");
  }
  list.insert(list.end(), {"/usr/local/cuda/lib64", "/opt/cuda/lib64"});
  return list;
}

std::vector<std::string> places() {
  std::vector<std::string> list(kNames.begin(), kNames.end());
  for (const std::string& folder : folders()) {
    for (const char* name : kNames) list.push_back(folder + "/" + name);
  }
  return list;
}

// Looked for by name only, so a compiler in a folder of its own would not find it.
void open_builtins(void* function, int major, int minor) {
  Dl_info info;
  if (!dladdr(function, &info) || !info.dli_fname) return;
  std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return;
  path.resize(slash + 1);
  dlopen(fmt::format("{}libnvrtc-builtins.so.{}.{}", path, major, minor).c_str(), RTLD_NOW);
}

// The number after `words` in text, or before them; -1 where the words are not there.
int number_after(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == text.npos) return -1;
  int value = -1;
  std::from_chars(text.data() + at + words.size(), text.data() + text.size(), value);
  return value;
}
int number_before(std::string_view text, std::string_view words) {
  const size_t end = text.find(words);
  if (end == text.npos || end == 0) return -1;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') begin--;
  int value = -1;
  std::from_chars(text.data() + begin, text.data() + end, value);
  return value;
}

// "sm_90a": 90 is listed.
bool supports(const NvrtcFunctions& f, const std::string& target) {
  int count = 0;
  if (f.nvrtcGetNumSupportedArchs(&count) != Status::success) return true;
  std::vector<int> numbers(static_cast<size_t>(count));
  if (f.nvrtcGetSupportedArchs(numbers.data()) != Status::success) return true;
  return std::find(numbers.begin(), numbers.end(), number_after(target, "sm_")) != numbers.end();
}

// One text on its way to code.
class Compilation {
 public:
  Compilation(const NvrtcFunctions& f, const runtime::Source& source, const std::string& target)
      : f_(f), source_(source), target_(target) {
    const std::string name = source.label + ".cu";
    check(f_.nvrtcCreateProgram(&handle_, source.text.c_str(), name.c_str(), 0, nullptr, nullptr));
  }
  ~Compilation() {
    if (handle_) f_.nvrtcDestroyProgram(&handle_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  Compiled run() {
    const std::string architecture = "--gpu-architecture=" + target_;
    std::vector<const char*> options(kOptions.begin(), kOptions.end());
    options.push_back(architecture.c_str());
    options.insert(options.end(), kNewerOptions.begin(), kNewerOptions.end());
    Status status = f_.nvrtcCompileProgram(handle_, int(options.size()), options.data());
    for (size_t i = 0; i < kNewerOptions.size() && status == Status::invalid_option; i++) {
      options.pop_back();
      status = f_.nvrtcCompileProgram(handle_, int(options.size()), options.data());
    }
    const std::string words = compiler_log();
    check(status, words);
    log(4, "compiled \"{}\" for {}:\n{}", source_.label, target_, words);
    size_t bytes = 0;
    check(f_.nvrtcGetCUBINSize(handle_, &bytes));
    Compiled compiled{std::string(bytes, '\0'), read_report(words, source_.entry)};
    check(f_.nvrtcGetCUBIN(handle_, compiled.code.data()));
    return compiled;
  }

 private:
  void check(Status status, const std::string& words = {}) const {
    if (status == Status::success) return;
    fail(ErrorKind::internal, "cuda: \"{}\" does not compile for {}: {}{}{}", source_.label,
         target_, f_.nvrtcGetErrorString(status), words.empty() ? "" : "\n", words);
  }

  std::string compiler_log() const {
    size_t bytes = 0;
    if (f_.nvrtcGetProgramLogSize(handle_, &bytes) != Status::success || bytes == 0) return {};
    std::string words(bytes, '\0');
    if (f_.nvrtcGetProgramLog(handle_, words.data()) != Status::success) return {};
    words.resize(std::min(words.find('\0'), words.size()));
    return words;
  }

  const NvrtcFunctions& f_;
  const runtime::Source& source_;
  const std::string& target_;
  Handle handle_ = nullptr;
};

}  // namespace

// nullptr where `file` is there and cannot be used; then `absence` says why.
std::shared_ptr<const Nvrtc> Nvrtc::open(const std::string& file, int driver_version,
                                         std::string& absence) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  auto functions = std::make_shared<NvrtcFunctions>();
  bool complete = true;
#define FORNAX_FIND(result, name, ...)                                                  \
  functions->name = reinterpret_cast<decltype(functions->name)>(dlsym(library, #name)); \
  complete &= functions->name != nullptr;
  FORNAX_NVRTC_FUNCTIONS(FORNAX_FIND)
#undef FORNAX_FIND
#undef FORNAX_NVRTC_FUNCTIONS
  int major = 0, minor = 0;
  if (!complete || functions->nvrtcVersion(&major, &minor) != Status::success) {
    absence = fmt::format("{} is no NVRTC that we can use", file);
    return nullptr;
  }
  const int newest = driver_version / 1000;
  if (major > newest) {
    absence = fmt::format(
        "{} makes code for CUDA {}, and the driver runs CUDA {} at most: install libnvrtc {} or a "
        "newer driver",
        file, major, newest, newest);
    return nullptr;
  }
  open_builtins(reinterpret_cast<void*>(functions->nvrtcVersion), major, minor);
  auto nvrtc = std::shared_ptr<Nvrtc>(new Nvrtc);
  nvrtc->functions_ = functions;
  nvrtc->file_ = fmt::format("{}, version {}.{},", file, major, minor);
  nvrtc->version_ = fmt::format("nvrtc {}.{} {}", major, minor, join(kOptions, " "));
  return nvrtc;
}

std::shared_ptr<const Nvrtc> Nvrtc::load(const std::string& path, int driver_version,
                                         std::string& absence) {
  const std::vector<std::string> files = path.empty() ? places() : std::vector{path};
  std::string why;
  for (const std::string& file : files) {
    if (auto nvrtc = open(file, driver_version, why)) return nvrtc;
  }
  if (why.empty()) {
    why = fmt::format(
        "NVRTC, which compiles our programs, is not here (looked for {}{}): install the libnvrtc "
        "of a CUDA toolkit, or name it in the setting nvrtc",
        path.empty() ? join(kNames, ", ") : path,
        path.empty() ? fmt::format(" also in {}", join(folders(), ", ")) : "");
  }
  absence = why;
  return nullptr;
}

Compiled Nvrtc::compile(const runtime::Source& source, const std::string& target) const {
  if (!supports(*functions_, target)) {
    fail(ErrorKind::device, "cuda: {} does not know this device's {}; install a newer one", file_,
         target);
  }
  return Compilation(*functions_, source, target).run();
}

runtime::Report read_report(std::string_view log, const std::string& entry) {
  const size_t begin = log.find(fmt::format("entry function '{}'", entry));
  if (begin == log.npos) return {};
  const size_t end = log.find("Compiling entry function", begin);
  const std::string_view part = log.substr(begin, end == log.npos ? end : end - begin);
  runtime::Report report;
  report.registers = number_after(part, "Used ");
  report.spilled_bytes = number_before(part, " bytes spill stores");
  report.shared_bytes = std::max(0, number_before(part, " bytes smem"));
  return report;
}

}  // namespace fornax::cuda
