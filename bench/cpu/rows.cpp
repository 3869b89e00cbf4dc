// The list of rows, and the bars that they have to meet.
#include <algorithm>

#include "bench/cpu/cpu.h"

namespace bench {
namespace {

// ── Bars ─────────────────────────────────────────────────────────────────────────────────────────
struct Demand {
  const char* prefix;  // of the row's name; the first that fits has all demands of that prefix
  const char* peer;    // "": the fastest
  double ratio;
};
constexpr Demand kDemands[] = {
    {"chain8/", "compile", 1 / 1.8},
    {"chain8/", "torch", 1 / 3.2},
    {"abc_exp/", "", 1 / 1.35},
    {"add/", "torch", 1 / 1.5},
    {"softmax/", "", 1 / 1.25},
    {"log_softmax/", "", 1 / 1.25},
    {"cross_entropy/", "", 1 / 1.25},
    {"softmax_grad/", "", 1 / 1.25},
    {"log_softmax_grad/", "", 1 / 1.25},
    {"cross_entropy_grad/", "", 1 / 1.25},
    {"layer_norm/", "", 1 / 1.05},
    {"rms_norm/", "", 1 / 1.05},
    {"batch_norm/", "", 1 / 1.05},
    {"layer_norm_grad/", "", 1 / 1.25},
    {"rms_norm_grad/", "", 1 / 1.25},
    {"batch_norm_grad/", "", 1 / 1.25},
    {"sum", "", 1},
    {"max1/", "", 1},
    {"argmax1/", "", 1},
    {"matmul_nn/64x64x64", "", 1 / 1.3},
    {"matmul", "", 1},
    {"conv/", "", 1 / 1.2},
    {"resnet18", "", 1 / 1.2},
    {"mlp_step/", "", 1 / 1.15},
    {"cnn_step/", "", 1 / 1.3},
    {"gpt_step/", "", 1 / 1.3},
};
struct Limit {
  const char* prefix;
  double most;  // in the row's unit
};
constexpr Limit kLimits[] = {
    {"small_add/", 40},  {"small_add_recorded/", 100}, {"small_add_chain8/", 320},
    {"fork_join/", 0.5}, {"first_add/", 10},
};

void demand(Row& row) {
  const std::string name = row.name();
  const auto fits = [&](const auto& entry) { return name.starts_with(entry.prefix); };
  const auto first = std::find_if(std::begin(kDemands), std::end(kDemands), fits);
  for (auto entry = first; entry != std::end(kDemands); ++entry) {
    if (std::string_view(entry->prefix) == first->prefix) {
      row.bars.push_back({entry->peer, entry->ratio});
    }
  }
  const auto limit = std::find_if(std::begin(kLimits), std::end(kLimits), fits);
  if (limit != std::end(kLimits)) row.most = limit->most;
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────
constexpr double kFloat = 4;  // bytes

double elements(const std::vector<int64_t>& shape) {
  double count = 1;
  for (const int64_t size : shape) count *= double(size);
  return count;
}

struct List {
  std::vector<Row> rows;

  Row& add(const std::string& op, std::vector<int64_t> shape) {
    Row& row = rows.emplace_back();
    row.op = op;
    row.shape = std::move(shape);
    return row;
  }

  // `moved`: how often a call must read or write all elements of the shape.
  void memory(const std::string& op, std::vector<int64_t> shape, double moved, bool compiled) {
    Row& row = add(op, std::move(shape));
    row.bytes = moved * kFloat * elements(row.shape);
    row.compiled = compiled;
  }

  // Nanoseconds of one of a call's thousand repeats.
  void small(const std::string& op, std::vector<int64_t> shape) {
    Row& row = add(op, std::move(shape));
    row.unit = "ns";
    row.scale = 1e9 / 1000;
  }

  void floors() {
    memory("floor_copy", {4096, 4096}, 2, false);
    memory("floor_copy_stream", {4096, 4096}, 2, false);
    memory("floor_read", {4096, 4096}, 1, false);
    add("floor_fma", {1 << 28}).flops = 2.0 * (1 << 28);
    add("floor_chain8_l1", {2048, 2048});
  }

  void product(const std::string& op, std::vector<int64_t> shape) {
    Row& row = add(op, std::move(shape));
    row.flops = 2 * elements(row.shape);
  }

  void convolution(std::vector<int64_t> s) {
    Row& row = add("conv", std::move(s));
    const auto& shape = row.shape;
    const double places = double(shape[2] / shape[6]) * double(shape[3] / shape[6]);
    const double taps = double(shape[5] * shape[5]) * double(shape[1] / shape[7]);
    row.flops = 2 * double(shape[0] * shape[4]) * places * taps;
  }

  void model(const std::string& op, std::vector<int64_t> shape, bool compiled) {
    add(op, std::move(shape)).compiled = compiled;
  }

  // Forward reads and writes; backward reads two and writes one.  A loss writes no elements, and
  // its backward reads one.
  void row_ops(std::initializer_list<const char*> ops) {
    for (const std::string op : ops) {
      const bool loss = op == "cross_entropy";
      memory(op, {4096, 1024}, loss ? 1 : 2, true);
      memory(op + "_grad", {4096, 1024}, loss ? 3 : 5, true);
    }
  }

  void first(const std::string& op, std::vector<int64_t> shape) {
    add(op, std::move(shape)).fresh = true;
  }
};

}  // namespace

std::string Row::name() const { return (fresh ? "first_" : "") + op + "/" + shape_name(shape); }

std::vector<Row> rows() {
  List list;
  list.floors();
  list.memory("chain8", {2048, 2048}, 2, true);
  list.memory("abc_exp", {4096, 4096}, 4, true);
  list.memory("add", {4096, 4096}, 3, true);
  for (const char* op : {"small_add", "small_add_recorded", "small_add_chain8"}) {
    list.small(op, {16});
  }
  list.small("fork_join", {1});
  list.rows.back().unit = "us";
  list.rows.back().scale = 1e6 / 1000;
  list.first("add", {16});
  list.first("matmul_nn", {1024, 1024, 1024});
  list.model("mlp_step", {128, 784, 512, 10}, true);
  list.model("cnn_step", {128, 28, 32, 64, 128, 10}, true);
  list.model("gpt_step", {16, 128, 128, 6, 4, 96}, true);
  for (const int64_t size : {64, 128, 256, 512, 1024}) {
    list.product("matmul_nn", {size, size, size});
  }
  list.row_ops({"softmax", "layer_norm", "cross_entropy", "rms_norm", "log_softmax", "batch_norm"});
  list.convolution({8, 64, 56, 56, 64, 3, 1, 1});
  list.convolution({8, 128, 28, 28, 128, 3, 1, 1});
  list.convolution({8, 256, 14, 14, 256, 3, 1, 1});
  list.convolution({8, 3, 224, 224, 64, 7, 2, 1});
  list.convolution({8, 256, 56, 56, 64, 1, 1, 1});
  list.convolution({8, 32, 112, 112, 32, 3, 1, 32});
  list.convolution({1, 64, 56, 56, 64, 3, 1, 1});
  list.convolution({64, 1, 28, 28, 8, 3, 1, 1});
  for (const char* op : {"sum0", "sum1", "sum_all", "max1", "argmax1"}) {
    list.memory(op, {4096, 4096}, 1, false);
  }
  for (const int64_t m : {1, 8, 32}) list.product("matmul_nn", {m, 4096, 4096});
  list.product("matmul_batch", {96, 128, 128, 64});
  list.product("matmul_batch", {1024, 16, 16, 16});
  list.product("matmul_nn_gelu", {1024, 1024, 1024});
  list.product("matmul_nn", {2048, 2048, 2048});
  list.model("resnet18", {8, 224}, false);
  list.model("resnet18_grad", {8, 224}, false);
  list.product("matmul_nn", {4096, 4096, 4096});
  for (Row& row : list.rows) demand(row);
  return list.rows;
}

}  // namespace bench
