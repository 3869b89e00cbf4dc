// The ops of the benches by name, and the inputs that they are called with.
#include <map>
#include <memory>
#include <stdexcept>

#include "bench/common/work.h"

namespace bench {
namespace {

using Tensors = std::vector<Tensor>;

struct Inputs {
  Tensor x;             // tracked in rows that end in _grad
  Tensor weight, bias;  // of norms: of the last axis
  Tensor seed;          // the gradient that arrives at the output
  Tensor targets;       // of cross_entropy; of embedding the rows that are looked up
  Tensor a, b, c;       // of matmul: a, b and a bias; of abc_exp, add: the operands
  ConvOptions conv;
  std::shared_ptr<nn::BatchNorm> batch_norm;
};

// ── Ops ──────────────────────────────────────────────────────────────────────────────────────────
Tensor chain(const Tensor& x) { return (x * 0.5 + 0.25).sin().abs(); }

Tensors adds(const Inputs& in) {
  Tensor y = in.x;
  for (int i = 0; i < 1000; i++) y = y + in.b;
  return Tensors{y};
}

// Each of its own; the last is the output.
Tensors single_adds(const Inputs& in) {
  Tensor y;
  for (int i = 0; i < 1000; i++) y = in.x + in.b;
  return Tensors{y};
}

Tensors chains_of_adds(const Inputs& in) {
  Tensor y;
  for (int i = 0; i < 1000; i++) {
    y = in.x;
    for (int k = 0; k < 8; k++) y = y + in.b;
  }
  return Tensors{y};
}

using Function = std::function<Tensors(const Inputs&)>;
const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> map = {
      {"copy", [](const Inputs& in) { return Tensors{in.x + 1}; }},
      {"chain8", [](const Inputs& in) { return Tensors{chain(chain(in.x))}; }},
      {"abc_exp", [](const Inputs& in) { return Tensors{(in.a * in.b + in.c).exp()}; }},
      {"add", [](const Inputs& in) { return Tensors{in.a + in.b}; }},
      {"sum0", [](const Inputs& in) { return Tensors{in.x.sum(0)}; }},
      {"sum1", [](const Inputs& in) { return Tensors{in.x.sum(1)}; }},
      {"sum_all", [](const Inputs& in) { return Tensors{in.x.sum()}; }},
      {"max1", [](const Inputs& in) { return Tensors{in.x.max(1)}; }},
      {"argmax1", [](const Inputs& in) { return Tensors{in.x.argmax(1)}; }},
      {"softmax", [](const Inputs& in) { return Tensors{softmax(in.x)}; }},
      {"log_softmax", [](const Inputs& in) { return Tensors{log_softmax(in.x)}; }},
      {"layer_norm",
       [](const Inputs& in) {
         return Tensors{layer_norm(in.x, 1, {.weight = in.weight, .bias = in.bias})};
       }},
      {"rms_norm", [](const Inputs& in) { return Tensors{rms_norm(in.x, {.weight = in.weight})}; }},
      {"batch_norm", [](const Inputs& in) { return Tensors{(*in.batch_norm)(in.x)}; }},
      {"cross_entropy", [](const Inputs& in) { return Tensors{cross_entropy(in.x, in.targets)}; }},
      {"embedding",
       [](const Inputs& in) {
         const Tensor ids = in.targets.unsqueeze(1);
         return Tensors{in.x.gather(0, ids.expand({ids.shape(0), in.x.shape(1)}))};
       }},
      {"matmul_nn", [](const Inputs& in) { return Tensors{in.a.matmul(in.b)}; }},
      {"matmul_batch", [](const Inputs& in) { return Tensors{in.a.matmul(in.b)}; }},
      {"matmul_nt", [](const Inputs& in) { return Tensors{in.a.matmul(in.b.transpose())}; }},
      {"matmul_tn", [](const Inputs& in) { return Tensors{in.a.transpose().matmul(in.b)}; }},
      {"matmul_nn_gelu",
       [](const Inputs& in) { return Tensors{gelu_tanh(in.a.matmul(in.b) + in.c)}; }},
      {"matmul_nt_gelu",
       [](const Inputs& in) { return Tensors{gelu_tanh(in.a.matmul(in.b.transpose()) + in.c)}; }},
      {"conv", [](const Inputs& in) { return Tensors{conv2d(in.x, in.weight, {}, in.conv)}; }},
      {"small_adds", adds},
      {"small_adds_eager", adds},
      {"small_add", single_adds},
      {"small_add_recorded", single_adds},
      {"small_add_chain8", chains_of_adds},
  };
  return map;
}

// The output, and the gradients of all that is tracked.
Tensors backward(const Function& forward, const Inputs& in) {
  const Tensor y = forward(in)[0];
  Tensors tracked, results{y.detach()};
  for (const Tensor& input : {in.x, in.weight, in.bias}) {
    if (input.defined()) tracked.push_back(input);
  }
  GradOptions how;
  if (in.seed.defined()) how.seeds = {in.seed};
  for (Tensor& gradient : grad({y}, tracked, how)) results.push_back(std::move(gradient));
  return results;
}

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }
bool is_grad(const std::string& op) { return op.ends_with("_grad"); }
std::string without_grad(const std::string& op) {
  return is_grad(op) ? op.substr(0, op.size() - 5) : op;
}

// ── Inputs: input k of turn t has seed 16 k + t ──────────────────────────────────────────────────
Inputs matmul_inputs(const Work& work, uint32_t turn, DType dtype, Device device) {
  const bool batched = work.op == "matmul_batch", transposed = starts_with(work.op, "matmul_nt");
  const int64_t *sizes = &work.shape[batched ? 1 : 0], m = sizes[0], k = sizes[1], n = sizes[2];
  std::vector<int64_t> a{m, k}, b = transposed ? std::vector{n, k} : std::vector{k, n};
  if (starts_with(work.op, "matmul_tn")) a = {k, m};
  if (batched) {
    a.insert(a.begin(), work.shape[0]);
    b.insert(b.begin(), work.shape[0]);
  }
  Inputs in;
  in.a = values(turn, a, dtype, device);
  in.b = values(16 + turn, b, dtype, device);
  if (work.op.ends_with("_gelu")) in.c = values(32 + turn, {n}, dtype, device);
  return in;
}

Inputs conv_inputs(const Work& work, uint32_t turn, DType dtype, Device device) {
  const auto& s = work.shape;
  Inputs in;
  in.x = values(turn, {s[0], s[1], s[2], s[3]}, dtype, device);
  in.weight = values(16 + turn, {s[4], s[1] / s[7], s[5], s[5]}, dtype, device);
  in.conv = {.stride = s[6], .padding = s[5] / 2, .groups = s[7]};
  return in;
}

Inputs embedding_inputs(const Work& work, uint32_t turn, DType dtype, Device device) {
  const int64_t rows = work.shape[0], width = work.shape[1], count = work.shape[2];
  Inputs in;
  in.x = values(turn, {rows, width}, dtype, device);
  in.targets = classes(64 + turn, {count}, rows, device);
  if (is_grad(work.op)) {
    in.x = in.x.require_grad();
    in.seed = values(48 + turn, {count, width}, dtype, device);
  }
  return in;
}

bool is_norm(const std::string& op) { return op.ends_with("_norm"); }

Inputs row_inputs(const Work& work, uint32_t turn, DType dtype, Device device) {
  const std::string op = without_grad(work.op);
  Inputs in;
  in.x = values(turn, work.shape, dtype, device);
  if (is_norm(op)) in.weight = values(16 + turn, {work.shape[1]}, dtype, device);
  if (is_norm(op) && op != "rms_norm") in.bias = values(32 + turn, {work.shape[1]}, dtype, device);
  if (op == "cross_entropy") {
    in.targets = classes(64 + turn, {work.shape[0]}, work.shape[1], device);
  } else if (is_grad(work.op)) {
    in.seed = values(48 + turn, work.shape, dtype, device);
  }
  if (is_grad(work.op)) {
    for (Tensor* input : {&in.x, &in.weight, &in.bias}) {
      if (input->defined()) *input = input->require_grad();
    }
  }
  if (op == "batch_norm") {
    const nn::BatchNormOptions training{.device = device.autodiff()};
    in.batch_norm = std::make_shared<nn::BatchNorm>(work.shape[1], training);
    in.batch_norm->weight = in.weight;
    in.batch_norm->bias = in.bias;
  }
  return in;
}

Inputs inputs(const Work& work, uint32_t turn, Device device) {
  DType dtype = DType::f32;
  parse_dtype(work.dtype, dtype);
  if (starts_with(work.op, "matmul")) return matmul_inputs(work, turn, dtype, device);
  if (work.op == "conv") return conv_inputs(work, turn, dtype, device);
  if (without_grad(work.op) == "embedding") return embedding_inputs(work, turn, dtype, device);
  Inputs in = row_inputs(work, turn, dtype, device);
  if (work.op == "abc_exp" || work.op == "add") {
    in.a = in.x;
    in.b = values(16 + turn, work.shape, dtype, device);
  }
  if (work.op == "abc_exp") in.c = values(32 + turn, work.shape, dtype, device);
  if (starts_with(work.op, "small_add")) in.b = values(16 + turn, work.shape, dtype, device);
  if (work.op == "small_add_recorded") in.x = in.x.require_grad();
  return in;
}

}  // namespace

Call make(const Work& work, Device device) {
  if (work.op == "mlp_step") return train_mlp(work.shape, device);
  if (work.op == "cnn_step") return train_cnn(work.shape, device);
  if (work.op == "gpt_step") return train_gpt(work.shape, device);
  if (starts_with(work.op, "gpt2")) return gpt2(work.op, work.shape, device);
  if (without_grad(work.op) == "resnet18") return resnet18(work.shape, is_grad(work.op), device);
  if (work.op == "small_adds_eager") device = device.eager();
  const auto function = functions().find(without_grad(work.op));
  if (function == functions().end()) throw std::invalid_argument("no such op: " + work.op);
  std::vector<Inputs> ring;
  for (int turn = 0; turn < work.ring; turn++) {
    ring.push_back(inputs(work, uint32_t(turn), device));
  }
  return [ring, compute = function->second, gradients = is_grad(work.op)](int turn) {
    const Inputs& in = ring[size_t(turn)];
    return gradients ? backward(compute, in) : compute(in);
  };
}

}  // namespace bench
