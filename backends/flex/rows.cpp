// RowsKernel: the rows of a row program, some at a time.
#include "backends/flex/rows.h"

#include <algorithm>
#include <cstring>

#include "backends/flex/gather.h"
#include "backends/flex/gemm_pack.h"
#include "backends/flex/index.h"
#include "backends/flex/pool.h"
#include "base/error.h"

namespace fornax::flex {
namespace {

constexpr double kChunk = 20000;  // nanoseconds of work that a thread takes at a time

using Feed = RowCode::Feed;
using Give = RowCode::Give;

size_t rounded(int64_t bytes) { return (size_t(bytes) + 63) / 64 * 64; }

char* element_of(const Argument& argument, DType dtype, int64_t element) {
  return static_cast<char*>(argument.buffer->data) +
         (argument.offset + element) * int64_t(size_of(dtype));
}

// to[i * times + k] = from[i]
template <class T>
void repeat_each(const T* from, int64_t count, int64_t times, T* to) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < count; i++, to += times) {
    T line[kLine];
    for (T& element : line) element = from[i];
    int64_t k = 0;
    for (; k + kLine <= times; k += kLine) std::memcpy(to + k, line, 64);
    std::memcpy(to + k, line, size_t(times - k) * sizeof(T));
  }
}
void repeat(const char* from, size_t size, int64_t count, int64_t times, char* to) {
  with_bytes(size, [&]<class T>(T) {
    repeat_each(reinterpret_cast<const T*>(from), count, times, reinterpret_cast<T*>(to));
  });
}

void cast(const Code& code, const char* from, char* to, int64_t count) {
  const Workspace memory(Pipeline::bytes(code));
  Pipeline(code, memory.as<char>()).run(&from, &to, 0, count);
}

// A thread's memory, and the rows that it computes with it.
class Task {
 public:
  Task(const RowCode& code, std::span<const Argument> inputs, std::span<const Argument> outputs);
  void run(int64_t begin, int64_t end);
  // What run() has folded of columns, the code's column k to to[k] + element.
  void finish_columns(std::span<char* const> to, int64_t element);

 private:
  // A part at work.
  struct Working {
    const RowCode::Part* part;
    Pipeline pipeline;
    std::vector<const char*> from;
    std::vector<char*> to;
    std::vector<int> moving;                       // inputs that lie elsewhere for each line
    std::vector<std::vector<Operand*>> constants;  // per input that is a kept value
  };
  // What was folded of a column.
  struct Column {
    std::unique_ptr<Folder> folder;
    char* into = nullptr;  // the next row goes
    int rows = 0;          // that went there
  };
  void add(const RowCode::Part& part, std::vector<Working>& list);
  char* take(size_t bytes) {
    char* memory = free_;
    free_ += rounded(int64_t(bytes));
    return memory;
  }
  // Rows [begin, begin + count); count is at most code.rows.
  void run_some(int64_t begin, int64_t count);
  void read_kept(int64_t begin, int64_t count);
  void run_kept(Working& working, int64_t begin, int64_t count);
  // The line of `count` elements from element `start` on: of row `row` of those under way, the
  // `other`th, or all of them.
  void run_line(size_t level, int64_t row, int64_t other, int64_t start, int64_t count);
  const char* feed(Working& working, size_t i, int64_t row, int64_t other, int64_t start,
                   int64_t count);
  char* give(const Give& give, int64_t row, int64_t other, int64_t start);
  void run_blocks(Working& working, size_t level, int64_t other, int64_t count);
  void push_row(Column& column);
  char* saved_line(int index, int64_t row, int64_t other) const;
  void write_out(const Working& working, int64_t count);
  void run_pass(size_t level, int64_t begin, int64_t count);
  const char* folded(const RowCode::Folding& folding, int64_t row, int64_t other,
                     int64_t start) const;
  void cast_results(size_t level, int64_t count);

  const RowCode& code_;
  std::span<const Argument> inputs_, outputs_;
  Workspace memory_;
  char* free_;
  std::vector<char*> slots_, buffers_, saved_;
  std::vector<Working> kept_, passes_;  // per level
  std::vector<std::vector<RowFolder>> folders_;
  std::vector<Column> columns_;
};

size_t bytes_of(const RowCode& code) {
  size_t bytes = size_t(code.slots) * rounded(code.rows * 8) +
                 size_t(code.buffers) * rounded(code.buffer_elements() * 8) +
                 code.saved.size() * rounded(code.rows * code.row_elements() * 8);
  for (const RowCode::Level& level : code.levels) {
    bytes += Pipeline::bytes(level.kept.code) + Pipeline::bytes(level.pass.code);
  }
  return bytes;
}

Task::Task(const RowCode& code, std::span<const Argument> inputs, std::span<const Argument> outputs)
    : code_(code),
      inputs_(inputs),
      outputs_(outputs),
      memory_(bytes_of(code)),
      free_(memory_.as<char>()) {
  const auto take_all = [&](size_t count, int64_t bytes) {
    std::vector<char*> all(count);
    for (char*& memory : all) memory = take(size_t(bytes));
    return all;
  };
  slots_ = take_all(size_t(code.slots), code.rows * 8);
  buffers_ = take_all(size_t(code.buffers), code.buffer_elements() * 8);
  saved_ = take_all(code.saved.size(), code.rows * code.row_elements() * 8);
  kept_.reserve(code.levels.size());
  passes_.reserve(code.levels.size());
  for (const RowCode::Level& level : code.levels) {
    add(level.kept, kept_);
    add(level.pass, passes_);
    folders_.emplace_back();
    for (const RowCode::Folding& folding : level.foldings) {
      folders_.back().emplace_back(folding.computed, code.walk, folding.fold);
    }
  }
  for (const RowCode::Column& column : code.columns) {
    columns_.push_back({make_folder(column.computed, column.fold, code.walk.length)});
  }
}

void Task::add(const RowCode::Part& part, std::vector<Working>& list) {
  list.push_back({&part,
                  Pipeline(part.code, take(Pipeline::bytes(part.code))),
                  std::vector<const char*>(part.feeds.size()),
                  std::vector<char*>(part.gives.size()),
                  {},
                  std::vector<std::vector<Operand*>>(part.feeds.size())});
  Working& working = list.back();
  Pipeline& pipeline = working.pipeline;
  for (size_t i = 0; i < part.feeds.size(); i++) {
    const Feed& feed = part.feeds[i];
    const Argument& argument = inputs_[size_t(feed.index)];
    if (feed.kind == Feed::Kind::number) {
      pipeline.set_constant(int(i), feed.dtype, word_of(feed.dtype, argument.scalar));
    } else if (feed.kind == Feed::Kind::constant) {
      pipeline.set_constant(int(i), feed.dtype, element_of(argument, feed.dtype, 0));
    } else if (feed.kind == Feed::Kind::fixed) {
      working.from[i] = element_of(argument, feed.dtype, 0);
    } else {
      working.moving.push_back(int(i));
      if (feed.kind == Feed::Kind::kept)
        working.constants[i] = pipeline.operands_of_constant(int(i));
    }
  }
}

// Brings inputs that have one value per row to their slots.
void Task::read_kept(int64_t begin, int64_t count) {
  for (size_t i = 0; i < code_.kept_inputs.size(); i++) {
    const Feed& feed = code_.kept_inputs[i];
    const size_t size = size_of(feed.dtype);
    char* to = slots_[size_t(code_.kept_slots[i])];
    for (int64_t row = 0; row < count; row++) {
      const int64_t element = feed.spread.at(code_.walk.start(begin + row, 0));
      std::memcpy(to + size_t(row) * size,
                  element_of(inputs_[size_t(feed.index)], feed.dtype, element), size);
    }
  }
}

void Task::run_kept(Working& working, int64_t begin, int64_t count) {
  const RowCode::Part& part = *working.part;
  if (part.gives.empty()) return;
  for (size_t i = 0; i < part.feeds.size(); i++) {
    if (part.feeds[i].kind == Feed::Kind::kept) {
      working.from[i] = slots_[size_t(part.feeds[i].index)];
    }
  }
  for (size_t i = 0; i < part.gives.size(); i++) {
    const Give& give = part.gives[i];
    const size_t index = size_t(give.index);
    working.to[i] = give.kind == Give::Kind::slot ? slots_[index]
                                                  : element_of(outputs_[index], give.dtype, begin);
  }
  working.pipeline.run(working.from.data(), working.to.data(), 0, count);
}

char* Task::saved_line(int index, int64_t row, int64_t other) const {
  const int64_t element = row * code_.row_elements() + other * code_.walk.length;
  return saved_[size_t(index)] + element * int64_t(size_of(code_.saved[size_t(index)]));
}

// Where the line of a pass's input number i begins.
const char* Task::feed(Working& working, size_t i, int64_t row, int64_t other, int64_t start,
                       int64_t count) {
  const Feed& feed = working.part->feeds[i];
  const size_t index = size_t(feed.index), size = size_of(feed.dtype);
  switch (feed.kind) {
    case Feed::Kind::element:
      working.pipeline.set_constant(int(i), feed.dtype,
                                    element_of(inputs_[index], feed.dtype, feed.spread.at(start)));
      return nullptr;
    case Feed::Kind::direct:
      return element_of(inputs_[index], feed.dtype, feed.spread.at(start));
    case Feed::Kind::gathered: {
      char* buffer = buffers_[size_t(feed.buffer)];
      // What is repeated stays as it was brought for the first rows, which are no fewer.
      if (!feed.repeated || !working.from[i]) {
        gather(element_of(inputs_[index], feed.dtype, 0), int(size), feed.spread.rank,
               feed.spread.sizes, feed.spread.strides, start, count, buffer);
      }
      return buffer;
    }
    case Feed::Kind::kept:
      if (code_.together) return buffers_[size_t(feed.buffer)];
      if (feed.buffer >= 0) {
        for (Operand* operand : working.constants[i]) {
          operand->base = buffers_[size_t(feed.buffer)] + row * kMaxVectorBytes;
        }
      } else {
        working.pipeline.set_constant(int(i), feed.dtype, slots_[index] + size_t(row) * size);
      }
      return nullptr;
    case Feed::Kind::saved:
      return saved_line(feed.index, row, other);
    default:
      fail(ErrorKind::internal, "flex: an input of kind {} does not move", int(feed.kind));
  }
}

// Writes out the kept values of rows: for each element, or a vector of each.
void Task::write_out(const Working& working, int64_t count) {
  for (const Feed& feed : working.part->feeds) {
    if (feed.kind != Feed::Kind::kept || feed.buffer < 0) continue;
    const size_t size = size_of(feed.dtype);
    repeat(slots_[size_t(feed.index)], size, count,
           code_.together ? code_.walk.length : kMaxVectorBytes / int64_t(size),
           buffers_[size_t(feed.buffer)]);
  }
}

// Where an output of a pass goes; what is folded has its own place.
char* Task::give(const Give& give, int64_t row, int64_t other, int64_t start) {
  const size_t index = size_t(give.index);
  switch (give.kind) {
    case Give::Kind::folded:
      return nullptr;
    case Give::Kind::column: {
      Column& column = columns_[index];
      if (!column.into) column.into = column.folder->next_rows();
      return column.into;
    }
    case Give::Kind::buffer:
      return buffers_[index];
    case Give::Kind::saved:
      return saved_line(give.index, row, other);
    default:
      return element_of(outputs_[index], give.dtype, start);
  }
}

void Task::run_line(size_t level, int64_t row, int64_t other, int64_t start, int64_t count) {
  Working& working = passes_[level];
  const RowCode::Part& part = *working.part;
  if (part.gives.empty()) return;
  for (const int i : working.moving) {
    working.from[size_t(i)] = feed(working, size_t(i), row, other, start, count);
  }
  for (size_t i = 0; i < part.gives.size(); i++) {
    working.to[i] = give(part.gives[i], row, other, start);
  }
  if (code_.levels[level].folds) return run_blocks(working, level, other, count);
  working.pipeline.run(working.from.data(), working.to.data(), 0, count, part.stores);
}

// The same where rows are folded in passing, a block of them at a time.
void Task::run_blocks(Working& working, size_t level, int64_t other, int64_t count) {
  const RowCode::Part& part = *working.part;
  std::vector<RowFolder>& folders = folders_[level];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    for (size_t i = 0; i < part.gives.size() && part.gives[i].kind == Give::Kind::folded; i++) {
      working.to[i] = folders[size_t(part.gives[i].index)].next_vector();
    }
    working.pipeline.run(working.from.data(), working.to.data(), begin, end, part.stores);
    for (size_t i = 0; i < part.gives.size() && part.gives[i].kind == Give::Kind::folded; i++) {
      folders[size_t(part.gives[i].index)].push_vector(other, end);
    }
  }
}

void Task::push_row(Column& column) {
  if (++column.rows < kRowsAtOnce) return;
  column.folder->push_rows();
  column.into = nullptr;
  column.rows = 0;
}

void Task::finish_columns(std::span<char* const> to, int64_t element) {
  for (size_t i = 0; i < columns_.size(); i++) {
    if (columns_[i].rows > 0) columns_[i].folder->push_rows();
    columns_[i].into = nullptr;
    columns_[i].rows = 0;
    columns_[i].folder->finish(to[i] + element * int64_t(size_of(code_.columns[i].computed)));
  }
}

const char* Task::folded(const RowCode::Folding& folding, int64_t row, int64_t other,
                         int64_t start) const {
  if (folding.buffer >= 0) return buffers_[size_t(folding.buffer)];
  const Feed& from = folding.from;
  if (from.kind == Feed::Kind::saved) return saved_line(from.index, row, other);
  return element_of(inputs_[size_t(from.index)], from.dtype, from.spread.at(start));
}

void Task::run_pass(size_t level, int64_t begin, int64_t count) {
  write_out(passes_[level], count);
  const std::vector<RowCode::Folding>& foldings = code_.levels[level].foldings;
  std::vector<RowFolder>& folders = folders_[level];
  if (code_.together) {
    const int64_t start = begin * code_.walk.length;
    run_line(level, 0, 0, start, count * code_.walk.length);
    for (size_t i = 0; i < foldings.size(); i++) {
      folders[i].rows(folded(foldings[i], 0, 0, start), count, slots_[size_t(foldings[i].slot)]);
    }
    return;
  }
  for (int64_t row = 0; row < count; row++) {
    for (int64_t other = 0; other < code_.walk.others; other++) {
      const int64_t start = code_.walk.start(begin + row, other);
      run_line(level, row, other, start, code_.walk.length);
      for (size_t i = 0; i < foldings.size(); i++) {
        if (foldings[i].in_passing) continue;
        folders[i].line(other, folded(foldings[i], row, other, start));
      }
    }
    for (const Give& give : passes_[level].part->gives) {
      if (give.kind == Give::Kind::column) push_row(columns_[size_t(give.index)]);
    }
    for (size_t i = 0; i < foldings.size(); i++) {
      folders[i].finish(slots_[size_t(foldings[i].slot)], row);
    }
  }
}

void Task::run(int64_t begin, int64_t end) {
  for (; begin < end; begin += code_.rows) run_some(begin, std::min(code_.rows, end - begin));
}

void Task::run_some(int64_t begin, int64_t count) {
  read_kept(begin, count);
  for (size_t level = 0; level < code_.levels.size(); level++) {
    run_kept(kept_[level], begin, count);
    run_pass(level, begin, count);
    cast_results(level, count);
  }
}

void Task::cast_results(size_t level, int64_t count) {
  for (const RowCode::Folding& folding : code_.levels[level].foldings) {
    if (!folding.cast) continue;
    char* slot = slots_[size_t(folding.slot)];
    // Narrower numbers do not reach what has not been read: a block is read before it is written.
    cast(*folding.cast, slot, slot, count);
  }
}

class RowsKernel : public Kernel {
 public:
  explicit RowsKernel(const RowPlan& plan) : code_(plan) {}

  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override {
    if (!code_.columns.empty()) return run_parts(inputs, outputs);
    const auto grain = int64_t(kChunk / (code_.cost * double(code_.row_elements()))) + 1;
    parallel(code_.walk.kept, grain,
             [&](int64_t begin, int64_t end) { Task(code_, inputs, outputs).run(begin, end); });
  }

 private:
  void run_parts(std::span<const Argument> inputs, std::span<const Argument> outputs) const;

  const RowCode code_;
};

// Columns are folded in the parts that reductions over columns alone have, to the same bits.
void RowsKernel::run_parts(std::span<const Argument> inputs,
                           std::span<const Argument> outputs) const {
  const int64_t rows = code_.walk.kept, width = code_.walk.length;
  const int64_t parts = (rows + kPartRows - 1) / kPartRows;
  const Workspace memory(code_.columns.size() * rounded(width * 8));
  std::vector<Folding> foldings;
  for (const RowCode::Column& column : code_.columns) {
    const Argument& output = outputs[size_t(column.output)];
    char* wide = memory.as<char>() + foldings.size() * rounded(width * 8);
    foldings.push_back({column.fold, column.computed,
                        column.cast ? wide : element_of(output, column.computed, 0)});
  }
  Parts partial(foldings, parts, width);
  const double cost = code_.cost * double(width * std::min(rows, kPartRows));
  parallel(parts, int64_t(kChunk / cost) + 1, [&](int64_t begin, int64_t end) {
    Task task(code_, inputs, outputs);
    for (int64_t part = begin; part < end; part++) {
      task.run(part * kPartRows, std::min(rows, (part + 1) * kPartRows));
      task.finish_columns(partial.to(), part * width);
    }
  });
  partial.fold_columns();
  for (size_t i = 0; i < foldings.size(); i++) {
    const RowCode::Column& column = code_.columns[i];
    const Argument& output = outputs[size_t(column.output)];
    if (column.cast)
      cast(*column.cast, foldings[i].result, element_of(output, column.dtype, 0), width);
  }
}

}  // namespace

std::unique_ptr<Kernel> prepare_rows(const RowPlan& plan) {
  return std::make_unique<RowsKernel>(plan);
}

}  // namespace fornax::flex
