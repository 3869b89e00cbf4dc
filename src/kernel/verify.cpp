// The structure of kernels: what is defined where, and the form of regions.  The type rules of the
// instructions are in rules.cpp.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "kernel/rules.h"

namespace fornax::kernel {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostDepth = 64;

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel),
        defined_(kernel.values.size()),
        known_(kernel.values.size()),
        met_(kernel.instructions.size()) {}

  std::string problem(InstructionId& at) {
    std::string problem = header_problem();
    if (problem.empty()) problem = body_problem(kernel_.body);
    at = at_;
    return problem;
  }

 private:
  std::string header_problem() {
    if (kernel_.dialect == Dialect::both) return "the dialect is neither tile nor simt";
    if (kernel_.resident < 1) return fmt::format("{} blocks are resident", kernel_.resident);
    if (kernel_.threads < 1 || kernel_.threads > kMostThreads) {
      return fmt::format("{} threads are not from 1 to {}", kernel_.threads, kMostThreads);
    }
    if ((kernel_.dialect == Dialect::tile) == kernel_.distributions.empty()) {
      return "tile kernels have distributions, simt kernels none";
    }
    for (const Distribution& d : kernel_.distributions) {
      if (const std::string problem = distribution_problem(d); !problem.empty()) return problem;
    }
    if (kernel_.parameters.size() > kernel_.values.size()) return "a parameter is no value";
    for (size_t i = 0; i < kernel_.values.size(); i++) {
      const std::string problem = type_problem(kernel_, kernel_.values[i].type);
      if (problem.empty()) continue;
      const InstructionId maker = kernel_.values[i].made_by;
      if (maker >= 0 && size_t(maker) < kernel_.instructions.size()) at_ = maker;
      return fmt::format("%{}: {}", i, problem);
    }
    for (size_t i = 0; i < kernel_.parameters.size(); i++) {
      const std::string problem = parameter_problem(i);
      if (!problem.empty()) return fmt::format("parameter %{}: {}", i, problem);
    }
    return "";
  }

  std::string distribution_problem(const Distribution& d) const {
    const auto small = [](int n) { return n >= 1 && n <= kMostThreads; };
    if (!small(d.rows) || !small(d.columns) || !small(d.vector) || !small(d.row_vector)) {
      return fmt::format("the distribution {} x {} x {} x {} has a number that is not from 1 to {}",
                         d.rows, d.columns, d.vector, d.row_vector, kMostThreads);
    }
    if (d.threads() == kernel_.threads) return "";
    return fmt::format("{} x {} threads share out tiles, the block has {}", d.rows, d.columns,
                       kernel_.threads);
  }

  std::string parameter_problem(size_t number) {
    const Parameter& parameter = kernel_.parameters[number];
    const ValueType& type = parameter.type;
    if (!(kernel_.type(ValueId(number)) == type)) {
      return fmt::format("is {}, its value {}", text_of(type),
                         text_of(kernel_.type(ValueId(number))));
    }
    if (type.memory == Memory::shared || type.tile() || type.lanes != 1) {
      return fmt::format("{} is neither a buffer nor a number", text_of(type));
    }
    if (type.memory == Memory::none && (parameter.written || parameter.aliased)) {
      return "a number is neither written nor aliased";
    }
    if (parameter.divisor < 1 || parameter.most < 0) return "a fact is below its least number";
    return define(ValueId(number), -1);
  }

  std::string define(ValueId value, InstructionId by) {
    if (value < 0 || size_t(value) >= kernel_.values.size()) {
      return fmt::format("defines %{}, which is no value", value);
    }
    if (known_[size_t(value)]) return fmt::format("defines %{}, which is defined already", value);
    if (kernel_.values[size_t(value)].made_by != by) {
      return fmt::format("defines %{}, which is said to come from elsewhere", value);
    }
    known_[size_t(value)] = defined_[size_t(value)] = true;
    scope_.push_back(value);
    return "";
  }
  std::string use(const std::vector<ValueId>& values) const {
    for (const ValueId value : values) {
      if (value < 0 || size_t(value) >= kernel_.values.size() || !defined_[size_t(value)]) {
        return fmt::format("uses %{}, which is not defined before it", value);
      }
    }
    return "";
  }

  std::string body_problem(const Region& body) {
    if (!body.parameters.empty() || !body.yields.empty()) {
      return "the body has parameters or yields";
    }
    return region_problem(body);
  }

  // Its values stay defined: the caller closes the scope.
  std::string region_problem(const Region& region) {
    if (++depth_ > kMostDepth) return fmt::format("regions nest deeper than {}", kMostDepth);
    std::string problem;
    for (const ValueId parameter : region.parameters) {
      if (problem = define(parameter, -1); !problem.empty()) return problem;
    }
    for (const InstructionId id : region.instructions) {
      if (problem = instruction_problem(id); !problem.empty()) return problem;
    }
    depth_--;
    return use(region.yields);
  }
  void close(size_t begin) {
    for (size_t i = begin; i < scope_.size(); i++) defined_[size_t(scope_[i])] = false;
    scope_.resize(begin);
  }

  std::string instruction_problem(InstructionId id) {
    if (id < 0 || size_t(id) >= kernel_.instructions.size()) {
      return fmt::format("a region names instruction {}, which is none", id);
    }
    const InstructionId outer = std::exchange(at_, id);
    if (met_[size_t(id)]) return "stands in two places";
    met_[size_t(id)] = true;
    const Instruction& instruction = kernel_.at(id);
    std::string problem = use(instruction.operands);
    if (problem.empty()) problem = form_problem(kernel_, instruction);
    if (!problem.empty()) return problem;
    const size_t begin = scope_.size();
    for (const Region& region : instruction.regions) {
      if (problem = region_problem(region); !problem.empty()) return problem;
      // What the condition of a repetition computes, its body may use.
      if (instruction.code != Code::while_) close(begin);
    }
    close(begin);
    problem = rule_problem(kernel_, instruction);
    for (const ValueId result : instruction.results) {
      if (problem.empty()) problem = define(result, id);
    }
    if (problem.empty()) at_ = outer;
    return problem;
  }

  const Kernel& kernel_;
  std::vector<char> defined_, known_, met_;  // by value: now, ever; by instruction
  std::vector<ValueId> scope_;               // defined, in order
  InstructionId at_ = -1;
  int depth_ = 0;
};

}  // namespace

std::string find_problem(const Kernel& kernel, InstructionId& at) {
  return Verifier(kernel).problem(at);
}

void verify(const Kernel& kernel) {
  InstructionId at = -1;
  const std::string problem = find_problem(kernel, at);
  if (problem.empty()) return;
  if (at < 0) fail(ErrorKind::internal, "verify: kernel {}: {}", kernel.name, problem);
  fail(ErrorKind::internal, "verify: kernel {}: `{}`: {}", kernel.name, line_of(kernel, at),
       problem);
}

}  // namespace fornax::kernel
