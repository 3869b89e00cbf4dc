#include "kernel/control_steps.h"

#include <algorithm>
#include <limits>

#include "graph/evaluate.h"

namespace fornax::kernel {
namespace {

[[noreturn]] void fail_at(const Context& c, const Step& s, const std::string& what) {
  fail(ErrorKind::internal, "{}: {}", where(c, s), what);
}

uint64_t word(const Context& c, const Place& place, uint32_t row, uint32_t column) {
  return c.words[place.at + size_t(row) * place.row + size_t(column) * place.column];
}

// A bit for each lane on which the bool holds.
uint32_t lanes_of(const Context& c, const Place& condition) {
  const uint32_t lanes = c.machine.simt ? kWarp : 1;
  uint32_t bits = 0;
  for (uint32_t i = 0; i < lanes; i++) {
    bits |= uint32_t(get<bool>(c.words[condition.at + i * condition.column])) << i;
  }
  return bits;
}

void go_if_none(Context& c, const Step& s) {
  if (c.mask == 0) c.next = s.target;
}

template <class Body>
void each_lane(const Context& c, Body&& body) {
  for (uint32_t lane = 0; lane < kWarp; lane++) {
    if (c.mask >> lane & 1) body(lane);
  }
}

template <class T>
void run_loop_head(Context& c, const Step& s) {
  each_lane(c, [&](uint32_t lane) {
    if (get<T>(word(c, s.operands[1], 0, lane)) <= 0) {
      fail_at(c, s,
              fmt::format("the step is {}, not above 0", get<T>(word(c, s.operands[1], 0, lane))));
    }
    if (get<T>(c.words[s.result + lane]) >= get<T>(word(c, s.operands[0], 0, lane))) {
      c.mask &= ~(1u << lane);
    }
  });
  go_if_none(c, s);
}

template <class T>
void run_loop_next(Context& c, const Step& s) {
  each_lane(c, [&](uint32_t lane) {
    uint64_t& counter = c.words[s.result + lane];
    T next{};
    if (__builtin_add_overflow(get<T>(counter), get<T>(word(c, s.operands[0], 0, lane)), &next)) {
      fail_at(c, s, fmt::format("the counter goes beyond {}", std::numeric_limits<T>::max()));
    }
    counter = put(next);
  });
  c.next = s.target;
}

// Places.
void fill(Context& c, const Step& s, int32_t number) {
  const size_t count = size_t(s.rows) * s.columns;
  std::fill_n(c.words.begin() + s.result, count, put(number));
}
size_t axis_of(const Step& s) { return size_t(s.instruction->attributes[0]); }
void run_block(Context& c, const Step& s) { fill(c, s, c.machine.block[axis_of(s)]); }
void run_blocks(Context& c, const Step& s) { fill(c, s, c.machine.launch.grid[axis_of(s)]); }
void run_thread(Context& c, const Step& s) {
  for (uint32_t lane = 0; lane < kWarp; lane++) {
    c.words[s.result + lane] = put(int32_t(uint32_t(c.warp) * kWarp + lane));
  }
}
void run_iota(Context& c, const Step& s) {
  for (uint32_t i = 0; i < s.rows * s.columns; i++) c.words[s.result + i] = put(int32_t(i));
}

// Warps.
void need_all_lanes(const Context& c, const Step& s) {
  if (c.mask != c.full) {
    fail_at(c, s, fmt::format("reached by lanes {:#x} of {:#x} of a warp", c.mask, c.full));
  }
}
void run_warp_barrier(Context& c, const Step& s) { need_all_lanes(c, s); }
// Blocks run one after another, and threads see at once what others write.
void run_fence(Context&, const Step&) {}
void run_barrier(Context& c, const Step& s) {
  need_all_lanes(c, s);
  c.state = Context::State::waiting;
}
template <class Source>
void exchange(Context& c, const Step& s, Source&& source) {
  need_all_lanes(c, s);
  std::vector<uint64_t> taken(size_t(s.rows) * kWarp);
  for (uint32_t lane = 0; lane < kWarp; lane++) {
    if (!(c.full >> lane & 1)) continue;
    const uint32_t from = source(lane);
    if (!(c.full >> from & 1)) fail_at(c, s, fmt::format("lane {} does not exist", from));
    for (uint32_t row = 0; row < s.rows; row++) {
      taken[row * kWarp + lane] = word(c, s.operands[0], row, from);
    }
  }
  std::ranges::copy(taken, c.words.begin() + s.result);
}
void run_shuffle(Context& c, const Step& s) {
  exchange(c, s,
           [&](uint32_t lane) { return get<uint32_t>(word(c, s.operands[1], 0, lane)) % kWarp; });
}
void run_shuffle_xor(Context& c, const Step& s) {
  exchange(c, s, [&](uint32_t lane) { return lane ^ uint32_t(s.instruction->attributes[0]); });
}
void run_ballot(Context& c, const Step& s) {
  need_all_lanes(c, s);
  const uint32_t bits = lanes_of(c, s.operands[0]) & c.full;
  for (uint32_t lane = 0; lane < kWarp; lane++) c.words[s.result + lane] = put(bits);
}

// Aids.
Word number(const Context& c, const Step& s, size_t operand, uint32_t row, uint32_t column) {
  const uint64_t bits = word(c, s.operands[operand], row, column);
  const Kernel& kernel = c.machine.program.kernel;
  return load(kernel.type(s.instruction->operands[operand]).dtype, &bits, 0);
}
// body(row, column) where the lane takes part.
template <class Body>
void each_position(const Context& c, const Step& s, Body&& body) {
  for (uint32_t row = 0; row < s.rows; row++) {
    for (uint32_t column = 0; column < s.columns; column++) {
      if (!c.machine.simt || s.columns == 1 || (c.mask >> column & 1)) body(row, column);
    }
  }
}
void run_assert(Context& c, const Step& s) {
  each_position(c, s, [&](uint32_t row, uint32_t column) {
    if (get<bool>(word(c, s.operands[0], row, column))) return;
    const int64_t index = s.operands.size() > 1 ? int64_t(number(c, s, 1, row, column).bits) : 0;
    c.machine.note(s.id, index, 0);
  });
}
std::string shown(DType dtype, Word value) {
  const Scalar scalar = scalar_of(dtype, value);
  if (is_floating(dtype)) return fmt::format("{}", scalar.as_double());
  return is_signed(dtype) ? fmt::format("{}", scalar.as_int64())
                          : fmt::format("{}", scalar.as_uint64());
}
void run_print(Context& c, const Step& s) {
  const Kernel& kernel = c.machine.program.kernel;
  each_position(c, s, [&](uint32_t row, uint32_t column) {
    std::string line = s.instruction->text;
    for (size_t i = 0; i < s.operands.size(); i++) {
      const DType dtype = kernel.type(s.instruction->operands[i]).dtype;
      const std::string text = shown(dtype, number(c, s, i, row, column));
      const size_t at = line.find("{}");
      at == std::string::npos ? line += ' ' + text : line.replace(at, 2, text);
    }
    c.machine.write_log(line);
  });
}
void copy(Context& c, const Place& from, const Place& to, uint32_t count) {
  const uint32_t step = from.row + from.column, to_step = to.row + to.column;
  for (uint32_t i = 0; i < count; i++) c.words[to.at + i * to_step] = c.words[from.at + i * step];
}

}  // namespace

void step_begin(Context& c, const Step&) { c.frames.push_back({c.mask, 0}); }
void step_end(Context& c, const Step&) {
  c.mask = c.frames.back().saved;
  c.frames.pop_back();
}
void step_if(Context& c, const Step& s) {
  const uint32_t lanes = lanes_of(c, s.operands[0]);
  c.frames.push_back({c.mask, c.mask & ~lanes});
  c.mask &= lanes;
  go_if_none(c, s);
}
void step_else(Context& c, const Step& s) {
  c.mask = c.frames.back().other;
  go_if_none(c, s);
}
void step_test(Context& c, const Step& s) {
  c.mask &= lanes_of(c, s.operands[0]);
  go_if_none(c, s);
}
void step_refuse(Context& c, const Step& s) {
  fail_at(c, s, "belongs to one target and has no meaning here");
}
void step_jump(Context& c, const Step& s) { c.next = s.target; }

Run loop_head(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return run_loop_head<int32_t>;
    case DType::u32:
      return run_loop_head<uint32_t>;
    case DType::i64:
      return run_loop_head<int64_t>;
    default:
      return run_loop_head<uint64_t>;
  }
}
Run loop_next(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return run_loop_next<int32_t>;
    case DType::u32:
      return run_loop_next<uint32_t>;
    case DType::i64:
      return run_loop_next<int64_t>;
    default:
      return run_loop_next<uint64_t>;
  }
}

// Goes along one axis, all elements of the other at once.
void step_combine(Context& c, const Step& s) {
  const size_t count = s.instruction->operands.size();
  const bool down = s.instruction->attributes[0] == 0;
  const uint32_t length = down ? s.rows : s.columns, others = down ? s.columns : s.rows;
  const bool prefixes = s.instruction->code == Code::scan;
  // Element `i` along the axis, as a column of the other elements.
  const auto slice = [&](const Place& tile, uint32_t i) {
    return Place{tile.at + i * (down ? tile.row : tile.column), 0, down ? tile.column : tile.row};
  };
  for (uint32_t i = 0; i < length; i++) {
    for (size_t k = 0; k < count; k++) {
      copy(c, slice(s.operands[k], i), s.region_places[i == 0 ? k : count + k], others);
    }
    if (i > 0) {
      for (const Step& step : s.region) step.run(c, step);
      for (size_t k = 0; k < count; k++) {
        copy(c, s.region_places[2 * count + k], s.region_places[k], others);
      }
    }
    if (!prefixes && i + 1 < length) continue;
    for (size_t k = 0; k < count; k++) {
      copy(c, s.region_places[k], slice(s.operands[count + k], prefixes ? i : 0), others);
    }
  }
}

Run control_step(Code code) {
  switch (code) {
    case Code::block:
      return run_block;
    case Code::blocks:
      return run_blocks;
    case Code::thread:
      return run_thread;
    case Code::iota:
      return run_iota;
    case Code::fence:
      return run_fence;
    case Code::barrier:
      return run_barrier;
    case Code::warp_barrier:
      return run_warp_barrier;
    case Code::shuffle:
      return run_shuffle;
    case Code::shuffle_xor:
      return run_shuffle_xor;
    case Code::ballot:
      return run_ballot;
    case Code::assert_:
      return run_assert;
    case Code::print:
      return run_print;
    case Code::extract:
      return copy_all;
    default:
      return nullptr;
  }
}

}  // namespace fornax::kernel
