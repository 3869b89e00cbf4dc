#include "backends/cube/hopper.h"

#include <algorithm>

#include "backends/cube/splits.h"
#include "base/error.h"
#include "kernel/library/matmul.h"

namespace fornax::cube {
namespace {

using kernel::HopperMatmul;
using kernel::kHopperDepth;

constexpr int64_t kAligned = 8;       // elements of 16 bits in 16 bytes
constexpr int kSharedBytes = 232448;  // of a block
constexpr int kBoxBytes = 64 * 64 * 2;
constexpr int kMostStages = 8;

bool whole_rows(const MatrixOperand& x) {
  return x.column_stride == 1 && x.row_stride % kAligned == 0 && x.row_stride >= x.columns;
}
MatrixOperand transposed(const MatrixOperand& x) {
  return {x.place, x.columns, x.rows, x.column_stride, x.row_stride, x.batch};
}

HopperSize size_of(const MatrixProduct& p) {
  return {product(p.batch), p.a.rows, p.b.columns, p.a.columns};
}

// What a turn of a tile takes on a processor of an H200 while all of them work in step, and a part
// for the processor that adds it up, in microseconds.  Blocks at other places of k read a and b by
// themselves, for which the turns take kOutOfStep as long.  Fitted to whole and shared tiles with
// k = 16384, m = 768 and n = 768, 2304, 3072.
struct TileKind {
  int rows, columns;
  double turn, part;
};
constexpr TileKind kTiles[] = {
    {128, 256, 0.70, 7}, {128, 128, 0.33, 2}, {64, 128, 0.25, 2}, {64, 64, 0.15, 2}};
constexpr double kOutOfStep = 2.1;
constexpr double kSharing = 4;          // beside turns and parts
constexpr double kWorthSharing = 0.85;  // of the time that it takes otherwise

// Equal shares that go on from tile to tile; or some to each tile, which then read the same of a
// and b at the same time, where that leaves few processors without work.
HopperPlan shared_plan(const HopperSize& size, const TileKind& kind, int processors) {
  const int64_t tiles = size.tiles(kind.rows, kind.columns), turns = size.turns();
  HopperPlan plan{kind.rows, kind.columns, ceiling(tiles * turns, processors), turns};
  const int64_t splits = processors / tiles;
  if (splits < 2) return plan;
  const int64_t share = ceiling(turns, splits);
  if (share * 10 > plan.share * 11) return plan;
  return {kind.rows, kind.columns, share, ceiling(turns, share) * share};
}
double microseconds(const HopperPlan& plan, const TileKind& kind) {
  const double parts =
      double(ceiling(plan.padded, plan.share)) + (plan.padded % plan.share ? 1 : 0);
  const double pace = plan.padded % plan.share ? kOutOfStep : 1;
  return double(plan.share) * kind.turn * pace + kSharing + parts * kind.part;
}

HopperMatmul settings_for(const MatrixProduct& p, const HopperPlan& plan) {
  HopperMatmul best;
  best.dtype = p.dtype;
  best.a_transposed = !whole_rows(p.a);
  best.b_transposed = !whole_rows(p.b);
  best.rows = plan.rows, best.columns = plan.columns;
  const int stage = (best.rows + best.columns) * kHopperDepth * 2;
  const int staging = best.rows / 64 * 2 * kBoxBytes;
  best.stages = std::min((kSharedBytes - staging - 1024) / stage, kMostStages);
  return best;
}

// The map of an operand that lies in rows.  Axes of the batch along which it is the same have
// extent 1.
runtime::TensorMapRequest map_of(const MatrixOperand& x, const std::vector<int64_t>& batch,
                                 int box_rows) {
  runtime::TensorMapRequest request;
  request.element_bytes = 2;
  request.rank = 2;
  request.extents = {uint64_t(x.columns), uint64_t(x.rows), 1, 1};
  request.pitches = {uint64_t(x.row_stride) * 2, 0, 0};
  request.box = {uint32_t(kHopperDepth), uint32_t(box_rows), 1, 1};
  for (size_t axis = batch.size(); axis-- > 0; request.rank++) {
    const bool varies = x.batch[axis] != 0;
    request.extents[size_t(request.rank)] = varies ? uint64_t(batch[axis]) : 1;
    request.pitches[size_t(request.rank) - 1] =
        varies ? uint64_t(x.batch[axis]) * 2 : uint64_t(x.row_stride) * 2;
  }
  return request;
}

std::vector<bool> varies(const Strides& batch) {
  std::vector<bool> list;
  for (const int64_t stride : batch) list.push_back(stride != 0);
  return list;
}

// All that the kernel's text follows from.
struct HopperClass {
  HopperMatmul tiles;
  bool shared = false;  // blocks have shares of tiles
  std::vector<bool> a_varies, b_varies;
  EpilogueClass after;
  DType index = DType::i32;
  int m_divisor = 1, n_divisor = kHopperVector;

  std::string key() const {
    std::string key = fmt::format("hopper{} {} {}x{}x{} {}{} {} m{} n{}", shared ? " shared" : "",
                                  name_of(tiles.dtype), tiles.rows, tiles.columns, tiles.stages,
                                  tiles.a_transposed ? "t" : "n", tiles.b_transposed ? "t" : "n",
                                  name_of(index), m_divisor, n_divisor);
    for (size_t axis = 0; axis < a_varies.size(); axis++) {
      key += fmt::format(" b{:d}{:d}", bool(a_varies[axis]), bool(b_varies[axis]));
    }
    return key + after.key();
  }
};

std::vector<int64_t> result_extents(const MatrixProduct& p) {
  std::vector<int64_t> extents = p.batch;
  extents.insert(extents.end(), {p.a.rows, p.b.columns});
  return extents;
}

HopperClass class_of(const MatrixProduct& p, const HopperPlan& plan) {
  const std::vector<int64_t> extents = result_extents(p);
  HopperClass known;
  known.tiles = settings_for(p, plan);
  known.shared = plan.share > 0;
  known.a_varies = varies(p.a.batch), known.b_varies = varies(p.b.batch);
  known.after = p.after.described(extents, kHopperVector);
  known.index = index_dtype(product(extents), p.after.spans(extents));
  const std::vector<int>& writes = known.after.write_steps;
  for (size_t i = 0; i < writes.size() && known.after.deposited < 0; i++) {
    const ViewClass& view = known.after.views[known.after.read_steps.size() + i];
    const bool small = view.dtype == DType::bf16 || view.dtype == DType::f16;
    if (small && view.alignment == kHopperVector) known.after.deposited = int(i);
  }
  // The copy engine knows where the result ends; only other accesses ask for masks.
  const bool masks = !known.after.reads_nothing() || writes.size() > 1 || known.after.deposited < 0;
  if (masks && p.a.rows % known.tiles.rows == 0) known.m_divisor = known.tiles.rows;
  if (masks && p.b.columns % known.tiles.columns == 0) known.n_divisor = known.tiles.columns;
  return known;
}

kernel::Kernel build(const HopperClass& known) {
  Builder k("matmul", kernel::hopper_settings(known.tiles));
  kernel::HopperOperands given;
  given.a = k.map("a", known.tiles.dtype), given.b = k.map("b", known.tiles.dtype);
  if (known.after.deposited >= 0) {
    const int step = known.after.write_steps[size_t(known.after.deposited)];
    given.result = k.map("c", known.after.steps[size_t(step)].type.dtype);
  }
  given.m = k.number("m", DType::i32, {.divisor = known.m_divisor});
  given.n = k.number("n", DType::i32, {.divisor = known.n_divisor});
  given.k = k.number("k", DType::i32);
  for (size_t axis = 0; axis < known.a_varies.size(); axis++) {
    given.batch.push_back(k.number(fmt::format("batch{}", axis), DType::i32));
  }
  given.a_varies = known.a_varies, given.b_varies = known.b_varies;
  const std::vector<View> views = declare_epilogue(k, known.after, known.index);
  const auto finish = [&](Value sums, const Position& position) {
    const size_t rank = position.size();
    TilePlace place{{},
                    kernel::within(k, known.tiles.rows, position[rank - 2], given.m),
                    kernel::within(k, known.tiles.columns, position[rank - 1], given.n)};
    for (const Value& axis : position) place.position.push_back(k.cast(axis, known.index));
    return run_epilogue(k, known.after, views, sums, place);
  };
  if (!known.shared) {
    kernel::hopper_matmul(k, known.tiles, given, finish);
    return k.finish();
  }
  const Value share = k.number("share", DType::i32), padded = k.number("padded", DType::i32);
  const Splits splits = declare_splits(k, DType::f32);
  const auto add = [&](const kernel::TilePart& part, FunctionRef<void(Value)> then) {
    add_up(k, splits, part, then);
  };
  kernel::hopper_matmul(k, known.tiles, given, {share, padded, add}, finish);
  return k.finish();
}

}  // namespace

bool hopper_takes(const Device& device, const MatrixProduct& p) {
  const bool small = p.dtype == DType::bf16 || p.dtype == DType::f16;
  if (device.capabilities().compute != 90 || !small || p.batch.size() > 2) return false;
  if (product(result_extents(p)) == 0 || p.a.columns == 0) return false;
  const auto lies_well = [](const MatrixOperand& x) {
    return (whole_rows(x) || whole_rows(transposed(x))) &&
           std::all_of(x.batch.begin(), x.batch.end(),
                       [](int64_t stride) { return stride % kAligned == 0; });
  };
  return lies_well(p.a) && lies_well(p.b) && p.b.columns % kAligned == 0;
}

int64_t HopperSize::tiles(int rows, int columns) const {
  return products * ceiling(m, rows) * ceiling(n, columns);
}
int64_t HopperSize::turns() const { return ceiling(k, kHopperDepth); }

// Of the largest tile of which there are enough for every processor: small ones read more, but a
// processor without a tile does nothing.  Shared, where that is clearly less.
HopperPlan plan_hopper(const HopperSize& size, int processors) {
  constexpr auto* kLast = std::end(kTiles) - 1;
  const TileKind* whole = std::find_if(std::begin(kTiles), kLast, [&](const TileKind& kind) {
    return size.tiles(kind.rows, kind.columns) >= processors * 3 / 4;
  });
  HopperPlan best{whole->rows, whole->columns};
  const int64_t waves = ceiling(size.tiles(best.rows, best.columns), processors);
  double least = double(waves * size.turns()) * whole->turn * kWorthSharing;
  for (const TileKind& kind : kTiles) {
    const int64_t tiles = size.tiles(kind.rows, kind.columns);
    if (tiles > Device::kTickets || tiles * size.turns() > INT32_MAX / 2) continue;
    const HopperPlan plan = shared_plan(size, kind, processors);
    if (const double time = microseconds(plan, kind); time < least) best = plan, least = time;
  }
  return best;
}

void add_hopper(Device& device, LaunchList& list, const MatrixProduct& p) {
  const int processors = device.capabilities().processors;
  const HopperPlan plan = plan_hopper(size_of(p), processors);
  const HopperClass known = class_of(p, plan);
  const HopperMatmul& s = known.tiles;
  Arguments arguments;
  arguments.map(p.a.place, s.dtype,
                s.a_transposed ? map_of(transposed(p.a), p.batch, kHopperDepth)
                               : map_of(p.a, p.batch, s.rows));
  arguments.map(p.b.place, s.dtype,
                s.b_transposed ? map_of(transposed(p.b), p.batch, s.columns)
                               : map_of(p.b, p.batch, kHopperDepth));
  if (known.after.deposited >= 0) {
    const Epilogue::Operand& c = p.after.operands[p.after.reads + size_t(known.after.deposited)];
    const Strides batch(c.strides.begin(), c.strides.end() - 2);
    const int64_t pitch = c.strides[c.strides.size() - 2];
    arguments.map(c.place, p.after.dtype_of(c),
                  map_of({c.place, p.a.rows, p.b.columns, pitch, 1, batch}, p.batch, 64));
  }
  for (const int64_t extent : {p.a.rows, p.b.columns, p.a.columns}) {
    arguments.number(DType::i32, extent);
  }
  for (const int64_t extent : p.batch) arguments.number(DType::i32, extent);
  p.after.pass(arguments, known.after, result_extents(p), known.index);
  const int64_t tiles = size_of(p).tiles(s.rows, s.columns);
  int64_t blocks = std::min<int64_t>(tiles, processors);
  if (known.shared) {
    blocks = ceiling(tiles * plan.padded, plan.share);
    arguments.number(DType::i32, plan.share);
    arguments.number(DType::i32, plan.padded);
    pass_splits(arguments, list, DType::f32, tiles, 2 * blocks, int64_t(s.rows) * s.columns);
  }
  list.add(Launch(device, {known.key(), [known] { return build(known); }}, blocks_for(blocks, 1),
                  std::move(arguments)));
}

}  // namespace fornax::cube
