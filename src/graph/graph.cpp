// Graph::add: a step comes in with its type inferred, so that a graph built by it passes verify().
#include "graph/graph.h"

#include "base/error.h"
#include "graph/forms.h"

namespace fornax {

int Graph::add(Op op, std::vector<int> inputs, Attributes attributes, Scalar scalar) {
  std::vector<const Type*> types;
  types.reserve(inputs.size());
  for (int input : inputs) {
    if (input < 0 || size_t(input) >= steps.size()) {
      fail(ErrorKind::internal, "{}: reads step %{}, but only {} steps are there", info(op).name,
           input, steps.size());
    }
    types.push_back(&steps[size_t(input)].type);
  }
  const Signature signature{op, types.data(), int(types.size()), attributes};
  if (const std::string problem = attribute_problem(signature); !problem.empty()) {
    fail(ErrorKind::internal, "{}: {}", info(op).name, problem);
  }
  const Type type = infer(signature);
  for (int64_t size : type.shape) {
    if (size > kLargestNumber) {
      fail(ErrorKind::shape, "{}: a size of {} is above {}", info(op).name, text_of(type),
           kLargestNumber);
    }
  }
  (void)type.shape.element_count();
  steps.push_back({op, type, std::move(inputs), std::move(attributes), scalar});
  return int(steps.size()) - 1;
}

}  // namespace fornax
