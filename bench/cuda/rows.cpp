// The list of rows.
#include <algorithm>

#include "bench/cuda/work.h"

namespace bench {
namespace {

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
    row.name = op + "/" + dtype + "/" + shape_name(shape);
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

  // A weight's gradient: a is [k, m].
  void weight_gradient(int64_t m, int64_t n, int64_t k) {
    Row& row = add("matmul_tn", "bf16", {m, k, n});
    const std::vector<double> s(row.shape.begin(), row.shape.end());
    row.flops = 2 * s[0] * s[1] * s[2];
    row.ring = tiny ? 2 : 4;
  }

  // Rows are looked up and written, then their gradients added up in a table.
  void embedding_gradient(int64_t rows_, int64_t width, int64_t count) {
    Row& row = add("embedding_grad", "f32", {rows_, width, count});
    const std::vector<double> s(row.shape.begin(), row.shape.end());
    row.bytes = (s[0] + 3 * s[2]) * s[1] * 4;
    row.ring = 2;
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

  // GPT-2 124M; its vocabulary of 50257 is filled up to a multiple of 128, on every side.
  void gpt2() {
    for (const char* op : {"gpt2_step", "gpt2_forward", "gpt2_losses"}) {
      Row& row = rows.emplace_back();
      row.name = row.op = op;
      row.dtype = "bf16";
      row.shape = {16, 1024, 768, 12, 12, 50304};
      if (tiny) row.shape = {2, 32, 64, 2, 4, 192};
      row.peers = {"compile"};
      // Twice for each weight of a product and each pair of positions; backward is twice forward.
      const std::vector<double> s(row.shape.begin(), row.shape.end());
      const double weights = s[2] * (12 * s[2] * s[3] + s[5]), pairs = 2 * s[1] * s[2] * s[3];
      row.flops = 2 * s[0] * s[1] * (weights + pairs) * (row.op == "gpt2_forward" ? 1 : 3);
    }
  }
};

// A model's name is short and its shape its own.
Row model(const char* name, std::vector<int64_t> shape, double most) {
  Row row;
  row.name = row.op = name;
  row.dtype = "f32";
  row.shape = std::move(shape);
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
  for (const int64_t columns : {768, 2304, 3072}) list.weight_gradient(768, columns, 16384);
  list.embedding_gradient(50304, 768, 16384);
  Row mlp = model("mlp_step", {128, 784, 512, 10}, 60);
  mlp.peers = {"graph"};
  list.rows.push_back(mlp);
  Row gpt = model("gpt_step", {16, 128, 128, 6, 4, 96}, 1200);
  if (tiny) gpt.shape = {2, 16, 32, 2, 4, 96};
  gpt.peers = {"graph"};
  list.rows.push_back(gpt);
  list.gpt2();
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

}  // namespace bench
