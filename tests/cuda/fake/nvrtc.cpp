// A stand-in for libnvrtc: "compiles" to the text itself behind a line with the target.  A text
// with #error in it does not compile.
#include <atomic>
#include <cstring>
#include <string>

#include "tests/cuda/fake/fake.h"

namespace {

struct ProgramText {
  std::string text, code, log;
};
FakeNvrtc state;
std::atomic<int> compilations{0};

}  // namespace

extern "C" {

FakeNvrtc* fake_nvrtc() {
  state.compilations = compilations.load();
  return &state;
}

int nvrtcVersion(int* major, int* minor) {
  *major = state.version / 1000;
  *minor = state.version % 1000 / 10;
  return 0;
}

const char* nvrtcGetErrorString(int status) {
  return status == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return 0;
}
int nvrtcGetSupportedArchs(int* numbers) {
  numbers[0] = 80;
  numbers[1] = 90;
  return 0;
}

int nvrtcCreateProgram(ProgramText** program, const char* text, const char*, int,
                       const char* const*, const char* const*) {
  *program = new ProgramText{text, "", ""};
  return 0;
}
int nvrtcDestroyProgram(ProgramText** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

int nvrtcCompileProgram(ProgramText* program, int count, const char* const* options) {
  std::string target;
  for (int i = 0; i < count; i++) {
    const std::string option = options[i];
    if (option == "-no-cache" && !state.knows_no_cache) return 5;
    if (option.starts_with("--gpu-architecture=")) target = option.substr(19);
  }
  compilations++;
  if (program->text.find("#error") != std::string::npos) {
    program->log = "a.cu(1): error: #error directive";
    return 6;
  }
  program->code = "FAKE " + target + "\n" + program->text;
  program->log =
      "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
      "ptxas         .     0 bytes stack frame, 9 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 99 registers\n"
      "ptxas info    : Compiling entry function 'fill' for 'sm_90a'\n"
      "ptxas         .     256 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 400 bytes smem\n";
  return 0;
}

int nvrtcGetCUBINSize(ProgramText* program, size_t* bytes) {
  *bytes = program->code.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(ProgramText* program, char* code) {
  std::memcpy(code, program->code.c_str(), program->code.size() + 1);
  return 0;
}
int nvrtcGetProgramLogSize(ProgramText* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(ProgramText* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
}
