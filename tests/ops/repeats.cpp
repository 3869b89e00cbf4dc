// Mode test: what adds up gives the same bits each time it runs, however its work is shared out.
#include <fornax/function.h>
#include <fornax/grad.h>
#include <fornax/ops.h>
#include <gtest/gtest.h>

#include "tests/ops/compare.h"
#include "tests/ops/modes.h"

namespace fornax::conformance {
namespace {

constexpr int kTimes = 100, kSlowTimes = 10;

// Numbers whose sums depend on the order.
struct Operands {
  Tensor x, weight, rows, pictures, kernels;

  Operands(Device device, int64_t count, int64_t columns)
      : x(normal({count, columns}, 0, 1, {.device = device})),
        weight(normal({columns, 40}, 0, 1, {.device = device})),
        rows(random_integers({columns}, 0, count, device)),
        pictures(normal({3, 5, count, count}, 0, 1, {.device = device})),
        kernels(normal({6, 5, 3, 3}, 0, 1, {.device = device})) {}
};

Tensor gradient(const Tensor& operand, FunctionRef<Tensor(const Tensor&)> function) {
  const Tensor tracked = operand.detach().require_grad();
  return grad({function(tracked).square().sum()}, {tracked})[0];
}

struct Work {
  const char* name;
  Tensor (*run)(const Operands& o);
};
const Work kWorks[] = {
    {"sum", [](const Operands& o) { return o.x.sum(); }},
    {"sum_of_rows", [](const Operands& o) { return o.x.sum({1}); }},
    {"sum_of_columns", [](const Operands& o) { return o.x.sum({0}); }},
    {"prod", [](const Operands& o) { return o.x.prod({1}); }},
    {"max", [](const Operands& o) { return o.x.max({1}); }},
    {"argmax", [](const Operands& o) { return o.x.argmax(1); }},
    {"variance", [](const Operands& o) { return o.x.variance({1}); }},
    {"cumsum", [](const Operands& o) { return o.x.cumsum(1); }},
    {"softmax", [](const Operands& o) { return softmax(o.x, 1); }},
    {"argsort", [](const Operands& o) { return o.rows.argsort(); }},
    {"matmul", [](const Operands& o) { return o.x.matmul(o.weight); }},
    {"matmul_of_columns",
     [](const Operands& o) { return o.weight.transpose().matmul(o.x.transpose()); }},
    {"matmul_bf16",
     [](const Operands& o) { return o.x.cast(DType::bf16).matmul(o.weight.cast(DType::bf16)); }},
    {"layer_norm_gradient",
     [](const Operands& o) {
       return gradient(o.weight, [](const Tensor& w) { return layer_norm(w); });
     }},
    {"conv2d", [](const Operands& o) { return conv2d(o.pictures, o.kernels); }},
    {"conv2d_gradient",
     [](const Operands& o) {
       return gradient(o.kernels, [&](const Tensor& k) { return conv2d(o.pictures, k); });
     }},
    {"embedding_gradient",
     [](const Operands& o) {
       return gradient(o.weight, [&](const Tensor& w) { return embedding(o.rows, w); });
     }},
};

// Whether kernels run step by step there, in one thread.
bool is_slow(Device device) {
  const std::string name = short_name(device);
  return name == "reference" || name == "interpreter";
}

// Rows that several threads or blocks share where there are some.
Operands operands_of(Device device) {
  device.seed(5);
  return is_slow(device) ? Operands(device, 5, 301) : Operands(device, 33, 20011);
}

void check(const Work& work, Device device) {
  const Operands operands = operands_of(device);
  const Host first = read(work.run(operands));
  const int times = is_slow(device) ? kSlowTimes : kTimes;
  for (int time = 1; time < times; time++) {
    const Host again = read(work.run(operands));
    ASSERT_TRUE(again.type == first.type && again.bytes == first.bytes) << "run " << time;
  }
}

}  // namespace

void register_repeats(Device device) {
  for (const Work& work : kWorks) {
    add_test("repeats/" + short_name(device), work.name, [&work, device] { check(work, device); });
  }
}

}  // namespace fornax::conformance
