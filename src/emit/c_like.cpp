// The frame of a program: parameters, types, the function around the body.
#include "emit/c_like.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "emit/writer.h"
#include "kernel/check.h"

namespace fornax::c_like {

using kernel::Memory;

namespace {

// What no name of a language contains becomes an underscore.
std::string identifier(std::string_view name) {
  std::string result{name};
  for (char& c : result) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return result;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string Program::text() const {
  std::string text = types;
  for (const Helper* helper : helpers) text += helper->text;
  return text + function;
}

Writer::Writer(const Spelling& spelling, const kernel::Kernel& kernel, EmitSettings settings)
    : spelling_(spelling),
      kernel_(kernel),
      settings_(settings),
      uses_(uses_of(kernel)),
      shared_(plan_shared(kernel)),
      expressions_(kernel.values.size()),
      waits_(kernel.values.size()) {}

Program write(const Spelling& spelling, const kernel::Kernel& kernel, EmitSettings settings) {
  return Writer(spelling, kernel, settings).run();
}

Program Writer::run() {
  Program program;
  program.entry = "fornax_" + identifier(kernel_.name);
  name_parameters();
  const std::string parameters = head();
  if (shared_.bytes > 0) put(std::string(spelling_.words.shared_memory));
  if (settings_.waits) wait_for_launch_before();
  region(kernel_.body);
  // Registers can be moved between warps only where a block has a processor to itself.
  std::string threads = std::to_string(kernel_.threads);
  if (maps_ || kernel_.resident > 1) threads += fmt::format(", {}", kernel_.resident);
  program.function = fmt::format("\n// {}\n", kernel_.name);
  program.function +=
      fmt::format(fmt::runtime(spelling_.words.kernel), threads, program.entry, parameters);
  program.function += body_ + "}\n";
  program.types = spelling_.words.types;
  if (maps_) program.types += spelling_.words.map_type;
  for (const auto& [dtype, lanes] : vectors_) {
    const int align = std::min(16, int(size_of(dtype)) * lanes);
    program.types +=
        fmt::format(fmt::runtime(spelling_.words.vector), align,
                    type_name({.dtype = dtype, .lanes = uint8_t(lanes)}), name_of(dtype), lanes);
  }
  program.helpers = helpers_in(spelling_, program.function);
  return program;
}

// Parameters end in an underscore, so that they are no word of the language and no helper.
void Writer::name_parameters() {
  for (const kernel::Parameter& parameter : kernel_.parameters) {
    std::string name = identifier(parameter.name);
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "p" + name;
    const auto taken = [&](const std::string& other) { return other == name; };
    while (std::any_of(parameters_.begin(), parameters_.end(), taken)) name += "_again";
    parameters_.push_back(name);
  }
}

std::string Writer::head() {
  std::string text, counts;
  const auto add = [](std::string& list, const std::string& parameter) {
    list += (list.empty() ? "\n    " : ",\n    ") + parameter;
  };
  for (size_t i = 0; i < kernel_.parameters.size(); i++) {
    const kernel::Parameter& parameter = kernel_.parameters[i];
    const DType dtype = parameter.type.dtype;
    const std::string name = parameters_[i] + "_";
    expressions_[i] = {name, true, {}};
    if (parameter.type.memory == Memory::global) {
      add(text, fmt::format("{}{}*{} {}", parameter.written ? "" : "const ", name_of(dtype),
                            parameter.aliased ? "" : spelling_.words.alone, name));
      if (settings_.checked) add(counts, fmt::format("const i64 {}count", name));
    } else if (parameter.type.memory == Memory::map) {
      add(text, fmt::format(fmt::runtime(spelling_.words.map), name));
      expressions_[i] = {"&" + name, true, {}};
      maps_ = true;
    } else if (size_of(dtype) >= 4) {
      add(text, fmt::format("const {} {}", name_of(dtype), name));
    } else {
      add(text, fmt::format("const u32 {}", name));
      expressions_[i].text = fmt::format("{}({})", name_of(dtype), name);
    }
  }
  if (!counts.empty()) text += "," + counts;
  if (reports(kernel_, settings_.checked)) add(text, "i64* status");
  return text;
}

void Writer::wait_for_launch_before() {
  put(std::string(spelling_.words.wait));
  for (size_t i = 0; i < kernel_.parameters.size(); i++) {
    if (kernel_.parameters[i].type.memory != Memory::global) continue;
    put(fmt::format(fmt::runtime(spelling_.words.begin), parameters_[i] + "_"));
  }
}

std::string Writer::type_name(const ValueType& type) {
  if (type.lanes == 1) return std::string(name_of(type.dtype));
  vectors_.emplace(type.dtype, type.lanes);
  return fmt::format("{}x{}", name_of(type.dtype), type.lanes);
}

void Writer::put(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  body_ += indent_ + text + std::exchange(comment_, "") + "\n";
}

void Writer::note_site(const Site& site) {
  if (site.line == 0 ||
      (site.line == site_.line && file_name(site.file) == file_name(site_.file))) {
    return;
  }
  site_ = site;
  comment_ = fmt::format("  // {}:{}", file_name(site.file), site.line);
}

}  // namespace fornax::c_like
