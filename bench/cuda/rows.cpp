// The list of rows, and the ops that they are made of.
#include <algorithm>
#include <map>

#include "bench/cuda/work.h"

namespace bench {
namespace {

// ── Ops ──────────────────────────────────────────────────────────────────────────────────────────
using Tensors = std::vector<Tensor>;

struct Inputs {
  Tensor x;             // tracked in rows that end in _grad
  Tensor weight, bias;  // of norms: of the last axis
  Tensor seed;          // the gradient that arrives at the output
  Tensor targets;       // of cross_entropy
  Tensor a, b, c;       // of matmul: a, b and a bias; of abc_exp
};

Tensor chain(const Tensor& x) { return (x * 0.5 + 0.25).sin().abs(); }

Tensor forward(const std::string& op, const Inputs& in) {
  if (op == "softmax") return softmax(in.x);
  if (op == "layer_norm") return layer_norm(in.x, 1, {.weight = in.weight, .bias = in.bias});
  if (op == "rms_norm") return rms_norm(in.x, {.weight = in.weight});
  return cross_entropy(in.x, in.targets);
}

// The output, and the gradients of all that is tracked.
Tensors backward(const std::string& op, const Inputs& in) {
  const Tensor y = forward(op, in);
  Tensors tracked, results{y.detach()};
  for (const Tensor& input : {in.x, in.weight, in.bias}) {
    if (input.defined()) tracked.push_back(input);
  }
  GradOptions how;
  if (in.seed.defined()) how.seeds = {in.seed};
  for (Tensor& gradient : grad({y}, tracked, how)) results.push_back(std::move(gradient));
  return results;
}

using Function = std::function<Tensors(const Inputs&)>;
const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> map = {
      {"copy", [](const Inputs& in) { return Tensors{in.x + 1}; }},
      {"chain8", [](const Inputs& in) { return Tensors{chain(chain(in.x))}; }},
      {"abc_exp", [](const Inputs& in) { return Tensors{(in.a * in.b + in.c).exp()}; }},
      {"sum0", [](const Inputs& in) { return Tensors{in.x.sum(0)}; }},
      {"sum1", [](const Inputs& in) { return Tensors{in.x.sum(1)}; }},
      {"sum_all", [](const Inputs& in) { return Tensors{in.x.sum()}; }},
      {"matmul_nn", [](const Inputs& in) { return Tensors{in.a.matmul(in.b)}; }},
      {"matmul_nt", [](const Inputs& in) { return Tensors{in.a.matmul(in.b.transpose())}; }},
      {"matmul_nn_gelu",
       [](const Inputs& in) { return Tensors{gelu_tanh(in.a.matmul(in.b) + in.c)}; }},
      {"matmul_nt_gelu",
       [](const Inputs& in) { return Tensors{gelu_tanh(in.a.matmul(in.b.transpose()) + in.c)}; }},
      {"small_adds",
       [](const Inputs& in) {
         Tensor y = in.x;
         for (int i = 0; i < 1000; i++) y = y + in.b;
         return Tensors{y};
       }},
  };
  return map;
}

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }
bool is_grad(const std::string& op) { return op.ends_with("_grad"); }
std::string without_grad(const std::string& op) {
  return is_grad(op) ? op.substr(0, op.size() - 5) : op;
}

// ── Inputs: input k of turn t has seed 16 k + t ──────────────────────────────────────────────────
Inputs matmul_inputs(const Row& row, uint32_t turn, DType dtype, Device device) {
  const int64_t m = row.shape[0], k = row.shape[1], n = row.shape[2];
  const bool transposed = starts_with(row.op, "matmul_nt");
  Inputs in;
  in.a = values(turn, {m, k}, dtype, device);
  in.b = values(16 + turn, transposed ? std::vector{n, k} : std::vector{k, n}, dtype, device);
  if (row.op.ends_with("_gelu")) in.c = values(32 + turn, {n}, dtype, device);
  return in;
}

Inputs row_inputs(const Row& row, uint32_t turn, DType dtype, Device device) {
  const std::string op = without_grad(row.op);
  Inputs in;
  in.x = values(turn, row.shape, dtype, device);
  if (op == "layer_norm" || op == "rms_norm") {
    in.weight = values(16 + turn, {row.shape[1]}, dtype, device);
    if (op == "layer_norm") in.bias = values(32 + turn, {row.shape[1]}, dtype, device);
  }
  if (op == "cross_entropy") {
    in.targets = classes(64 + turn, {row.shape[0]}, row.shape[1], device);
  } else if (is_grad(row.op)) {
    in.seed = values(48 + turn, row.shape, dtype, device);
  }
  if (is_grad(row.op)) {
    for (Tensor* input : {&in.x, &in.weight, &in.bias}) {
      if (input->defined()) *input = input->require_grad();
    }
  }
  return in;
}

Inputs inputs(const Row& row, uint32_t turn, Device device) {
  DType dtype = DType::f32;
  parse_dtype(row.dtype, dtype);
  if (starts_with(row.op, "matmul")) return matmul_inputs(row, turn, dtype, device);
  Inputs in = row_inputs(row, turn, dtype, device);
  if (row.op == "abc_exp") {
    in.a = in.x;
    in.b = values(16 + turn, row.shape, dtype, device);
    in.c = values(32 + turn, row.shape, dtype, device);
  }
  if (starts_with(row.op, "small_adds")) in.b = values(16 + turn, row.shape, dtype, device);
  return in;
}

// ── The list ─────────────────────────────────────────────────────────────────────────────────────
constexpr double kMatmulBar = 1 / 0.95, kRowShare = 0.78, kSumShare = 0.85;

struct List {
  bool tiny;
  std::vector<Row> rows;

  double size_of(const std::string& dtype) const { return dtype == "bf16" ? 2 : 4; }

  Row& add(const std::string& op, const std::string& dtype, std::vector<int64_t> shape) {
    if (tiny) {
      for (int64_t& size : shape) size = std::max<int64_t>(size / 64, 4);
    }
    Row& row = rows.emplace_back();
    row.name = op + "/" + dtype;
    for (size_t axis = 0; axis < shape.size(); axis++) {
      row.name += (axis ? "x" : "/") + std::to_string(shape[axis]);
    }
    row.op = op;
    row.dtype = dtype;
    row.shape = std::move(shape);
    return row;
  }

  // `moved`: how often a call must read or write all elements of the shape; `read` of them inputs.
  void memory(const std::string& op, const std::string& dtype, std::vector<int64_t> shape,
              double moved, double share) {
    Row& row = add(op, dtype, std::move(shape));
    const double once = double(row.shape[0]) * double(row.shape[1]) * size_of(dtype);
    row.bytes = once * moved;
    row.ring = std::clamp(int(256e6 / once), 1, tiny ? 2 : 8);
    row.of_copy = share;
    row.peers = {"compile"};
  }

  void matmul(const std::string& op, const std::string& dtype, int64_t size) {
    Row& row = add(op, dtype, {size, size, size});
    const double side = double(row.shape[0]);
    row.flops = 2 * side * side * side;
    row.ring = std::clamp(int(128e6 / (side * side * size_of(dtype))), 1, 4);
    row.bar = kMatmulBar;
    row.peers = {"cublaslt"};
    if (op.ends_with("_gelu")) row.peers.push_back("compile");
  }

  // torch.compile takes seconds a row, so that only the first shape has it.
  void row_kernels(int64_t height, int64_t width, bool compiled = false) {
    const size_t before = rows.size();
    for (const char* dtype : {"bf16", "f32"}) {
      for (const char* op : {"softmax", "layer_norm", "rms_norm", "cross_entropy"}) {
        // Forward reads and writes; backward reads two and writes one.  A loss writes no elements,
        // and its backward reads one.
        const bool loss = std::string_view(op) == "cross_entropy";
        memory(op, dtype, {height, width}, loss ? 1 : 2, kRowShare);
        memory(std::string(op) + "_grad", dtype, {height, width}, loss ? 3 : 5, kRowShare);
      }
    }
    for (size_t i = before; i < rows.size() && !compiled; i++) rows[i].peers.clear();
  }
};

// A model's name is short and its shape its own.
Row model(const char* name, std::vector<int64_t> shape, double most) {
  Row row;
  row.name = row.op = name;
  row.dtype = "f32";
  row.shape = std::move(shape);
  row.check_calls = 5;
  row.most = most;
  return row;
}

}  // namespace

std::vector<Row> rows(bool tiny) {
  List list{tiny, {}};
  list.memory("copy", "f32", {16384, 16384}, 2, 0);
  list.rows.back().of_copy.reset();
  for (const int64_t size : {4096, 16384, 2048}) {
    list.memory("chain8", "f32", {size, size}, 2, size == 16384 ? 0.92 : 0.84);
    if (size == 2048) list.rows.back().of_copy.reset();
  }
  list.memory("abc_exp", "f32", {4096, 4096}, 4, 0.84);
  for (const char* op : {"matmul_nn", "matmul_nt", "matmul_nn_gelu", "matmul_nt_gelu"}) {
    for (const int64_t size : {4096, 8192}) list.matmul(op, "bf16", size);
  }
  list.matmul("matmul_nn", "f32", 4096);
  Row mlp = model("mlp_step", {128, 784, 512, 10}, 60);
  mlp.peers = {"graph"};
  list.rows.push_back(mlp);
  Row gpt = model("gpt_step", {16, 128, 128, 6, 4, 96}, 1200);
  if (tiny) gpt.shape = {2, 16, 32, 2, 4, 96};
  gpt.peers = {"graph"};
  list.rows.push_back(gpt);
  for (const char* op : {"small_adds", "small_adds_eager"}) {
    Row& row = list.rows.emplace_back();
    row.name = row.op = op;
    row.dtype = "f32";
    row.shape = {16};
    row.per = 1000;
  }
  list.row_kernels(4096, 4096, true);
  for (const char* op : {"sum0", "sum1", "sum_all"}) {
    for (const char* dtype : {"f32", "bf16"}) list.memory(op, dtype, {8192, 32768}, 1, kSumShare);
  }
  list.row_kernels(32768, 1024);
  list.row_kernels(8192, 32768);
  list.row_kernels(64, 1048576);
  return list.rows;
}

Call make(const Row& row, Device device) {
  if (row.op == "mlp_step") return train_mlp(row, device);
  if (row.op == "gpt_step") return train_gpt(row, device);
  if (row.op == "small_adds_eager") device = device.eager();
  std::vector<Inputs> ring;
  for (int turn = 0; turn < row.ring; turn++) {
    ring.push_back(inputs(row, uint32_t(turn), device));
  }
  if (is_grad(row.op)) {
    return [ring, op = without_grad(row.op)](int turn) { return backward(op, ring[size_t(turn)]); };
  }
  const auto function = functions().find(row.op == "small_adds_eager" ? "small_adds" : row.op);
  if (function == functions().end()) {
    return [ring, op = row.op](int turn) { return Tensors{forward(op, ring[size_t(turn)])}; };
  }
  return [ring, compute = function->second](int turn) { return compute(ring[size_t(turn)]); };
}

}  // namespace bench
