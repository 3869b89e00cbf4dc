// The interpreter's accesses to memory: loads, stores, atomics and the products of matrices, with
// their checks.
#include <algorithm>
#include <cmath>

#include "graph/evaluate.h"
#include "kernel/machine.h"

namespace fornax::kernel {
namespace {

[[noreturn]] void fail_at(const Context& c, const Step& s, const std::string& what) {
  fail(ErrorKind::internal, "{}: {}", where(c, s), what);
}

// Whether the elements from `index` on may be accessed, as one.  Where not: false in the checked
// mode, else an error.
bool inside(Context& c, const Step& s, const BoundMemory& memory, int64_t index,
            int64_t elements = 1) {
  const auto holds = [&](int64_t count) {
    return index >= 0 && index <= count && elements <= count - index;
  };
  const bool claimed = holds(memory.count);
  if (claimed && holds(memory.elements)) [[likely]]
    return true;
  if (c.machine.launch.checked && !claimed) {
    c.machine.note(s.id, index, memory.count);
    return false;
  }
  const int64_t count = std::min(memory.count, memory.elements);
  fail(ErrorKind::internal, "{}", describe(c.machine.program.kernel, {1, s.id, index, count}));
}

void watch(Context& c, const Step& s, const BoundMemory& memory, int64_t index, Touch how) {
  if (!memory.watched) return;
  InstructionId other = -1;
  if (!c.machine.races.touch(memory.shadow, index * memory.size, c.warp, s.id, how, other)) return;
  fail_at(c, s,
          fmt::format("races at element {} with another warp's {}: no barrier between them", index,
                      place_of(c.machine.program.kernel.at(other))));
}

// Devices access a vector as one, or in pieces of 16 bytes.
void check_alignment(const Context& c, const Step& s, const std::byte* address, int64_t size) {
  const int64_t wanted = std::min<int64_t>(size * s.rows, 16);
  if (reinterpret_cast<uintptr_t>(address) % uintptr_t(wanted) == 0) return;
  fail_at(c, s,
          fmt::format("a vector of {} x {} bytes is not aligned to {}", s.rows, size, wanted));
}

// body(number of the row and column, address, index) for each element of the lanes that take part
// and that lies inside the memory.
template <class Body>
void each_element(Context& c, const Step& s, Body&& body) {
  const BoundMemory& memory = c.machine.memories[size_t(s.memory)];
  const Place& index = s.operands[1];
  for (uint32_t column = 0; column < s.columns; column++) {
    if (c.machine.simt && !(c.mask >> column & 1)) continue;
    for (uint32_t row = 0; row < s.rows; row++) {
      const auto word = [&](const Place& place) {
        return c.words[place.at + size_t(row) * place.row + size_t(column) * place.column];
      };
      if (s.mask >= 0 && !get<bool>(word(s.operands[size_t(s.mask)]))) continue;
      int64_t at = s.wide_index ? get<int64_t>(word(index)) : get<int32_t>(word(index));
      if (s.consecutive) {
        if (row == 0 && !inside(c, s, memory, at, s.rows)) break;
        at += row;
      } else if (!inside(c, s, memory, at)) {
        continue;
      }
      std::byte* address = memory.base + at * memory.size;
      if (s.consecutive && row == 0) check_alignment(c, s, address, memory.size);
      body(row, column, address, at);
    }
  }
}

uint64_t operand(const Context& c, const Place& place, uint32_t row, uint32_t column) {
  return c.words[place.at + size_t(row) * place.row + size_t(column) * place.column];
}
uint64_t& result(Context& c, const Step& s, uint32_t row, uint32_t column) {
  return c.words[s.result + size_t(row) * s.columns + column];
}

bool same_element(const std::byte* address, uint64_t word, int64_t size) {
  return std::memcmp(address, &word, size_t(size)) == 0;
}

// `how` of two numbers, by the elementwise functions' rules.
template <class T>
T combined(Atomic how, T old, T value) {
  switch (how) {
    case Atomic::add:
      if constexpr (std::is_integral_v<T>) {
        return T(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(value));
      } else {
        return old + value;
      }
    case Atomic::min:
      return value < old || old != old ? value : old;
    case Atomic::max:
      return old < value || old != old ? value : old;
    case Atomic::bit_or:
      if constexpr (std::is_integral_v<T>) return T(old | value);
      return old;
    default:
      return value;
  }
}

template <class T>
uint64_t combined_word(Atomic how, uint64_t old, uint64_t value) {
  return put(combined(how, get<T>(old), get<T>(value)));
}

uint64_t combined_word(DType dtype, Atomic how, uint64_t old, uint64_t value) {
  if (how == Atomic::exchange) return value;
  switch (dtype) {
    case DType::f32:
      return combined_word<float>(how, old, value);
    case DType::f64:
      return combined_word<double>(how, old, value);
    case DType::i32:
      return combined_word<int32_t>(how, old, value);
    case DType::u32:
      return combined_word<uint32_t>(how, old, value);
    case DType::i64:
      return combined_word<int64_t>(how, old, value);
    default:
      return combined_word<uint64_t>(how, old, value);
  }
}

// Fills rows x columns with the elements at first + row * strides[0] + column * strides[1].
template <class T>
void read_matrix(Context& c, const Step& s, int memory_number, int64_t first,
                 const int64_t* strides, int64_t rows, int64_t columns, std::vector<T>& matrix) {
  const BoundMemory& memory = c.machine.memories[size_t(memory_number)];
  matrix.resize(size_t(rows * columns));
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t column = 0; column < columns; column++) {
      const int64_t at = first + row * strides[0] + column * strides[1];
      T& element = matrix[size_t(row * columns + column)];
      element = 0;
      if (!inside(c, s, memory, at)) continue;
      const Word found = load(memory.dtype, memory.base, at);
      if constexpr (std::is_floating_point_v<T>) {
        element = T(as<double>(found));
      } else {
        element = T(found.bits);
      }
    }
  }
}

template <class T>
void multiply(Context& c, const Step& s) {
  const std::vector<int64_t>& attributes = s.instruction->attributes;
  const Kernel& kernel = c.machine.program.kernel;
  const int64_t k = attributes[0], slices = attributes[5];
  const auto first = [&](size_t operand) {
    const uint64_t word = c.words[s.operands[operand].at];
    const bool wide = kernel.type(s.instruction->operands[operand]).dtype == DType::i64;
    return wide ? get<int64_t>(word) : get<int32_t>(word);
  };
  const uint32_t height = s.rows / uint32_t(slices);
  std::vector<T> a, b;
  for (uint32_t row = 0; row < s.rows; row++) {
    if (row % height == 0) {
      const int64_t slice = row / height;
      read_matrix(c, s, s.memory, first(2) + slice * attributes[6], &attributes[1], height, k, a);
      read_matrix(c, s, s.memory_b, first(4) + slice * attributes[7], &attributes[3], k, s.columns,
                  b);
    }
    for (uint32_t column = 0; column < s.columns; column++) {
      T sum = get<T>(operand(c, s.operands[0], row, column));
      for (int64_t i = 0; i < k; i++) {
        const T x = a[size_t(row % height * k + i)], y = b[size_t(i * s.columns + column)];
        if constexpr (std::is_floating_point_v<T>) {
          sum = std::fma(x, y, sum);
        } else {
          sum = sum + x * y;
        }
      }
      result(c, s, row, column) = put(sum);
    }
  }
}

}  // namespace

uint64_t read_element(DType dtype, const void* memory) {
  uint64_t word = 0;
  std::memcpy(&word, memory, size_of(dtype));
  return dtype == DType::bool_ ? word != 0 : word;
}

void write_element(DType dtype, void* memory, uint64_t word) {
  std::memcpy(memory, &word, size_of(dtype));
}

void run_load(Context& c, const Step& s) {
  const BoundMemory& memory = c.machine.memories[size_t(s.memory)];
  for (uint32_t row = 0; row < s.rows; row++) {
    for (uint32_t column = 0; column < s.columns; column++) {
      // What is accessed begins as 0, which stays where the checked mode refuses the access.
      const bool masked_out =
          s.mask >= 0 && !get<bool>(operand(c, s.operands[size_t(s.mask)], row, column));
      result(c, s, row, column) =
          masked_out ? operand(c, s.operands[size_t(s.otherwise)], row, column) : 0;
    }
  }
  each_element(c, s, [&](uint32_t row, uint32_t column, const std::byte* address, int64_t index) {
    watch(c, s, memory, index, Touch::read);
    result(c, s, row, column) = read_element(memory.dtype, address);
  });
}

void run_store(Context& c, const Step& s) {
  const BoundMemory& memory = c.machine.memories[size_t(s.memory)];
  c.machine.races.next_store();
  each_element(c, s, [&](uint32_t row, uint32_t column, std::byte* address, int64_t index) {
    uint64_t word = operand(c, s.operands[2], row, column);
    if (memory.dtype == DType::bool_) word = get<bool>(word);
    watch(c, s, memory, index, Touch::write);
    if (memory.watched && c.machine.races.stored_twice(memory.shadow, index * memory.size) &&
        !same_element(address, word, memory.size)) {
      fail_at(c, s, fmt::format("lanes write different values to element {}", index));
    }
    write_element(memory.dtype, address, word);
  });
}

void run_atomic(Context& c, const Step& s) {
  const BoundMemory& memory = c.machine.memories[size_t(s.memory)];
  const auto how = Atomic(s.instruction->attributes[0]);
  each_element(c, s, [&](uint32_t row, uint32_t column, std::byte* address, int64_t index) {
    watch(c, s, memory, index, Touch::atomic);
    const uint64_t old = read_element(memory.dtype, address);
    const uint64_t value = operand(c, s.operands[2], row, column);
    write_element(memory.dtype, address, combined_word(memory.dtype, how, old, value));
    result(c, s, row, column) = old;
  });
}

void run_compare_exchange(Context& c, const Step& s) {
  const BoundMemory& memory = c.machine.memories[size_t(s.memory)];
  each_element(c, s, [&](uint32_t row, uint32_t column, std::byte* address, int64_t index) {
    watch(c, s, memory, index, Touch::atomic);
    const uint64_t old = read_element(memory.dtype, address);
    if (same_element(address, operand(c, s.operands[2], row, column), memory.size)) {
      write_element(memory.dtype, address, operand(c, s.operands[3], row, column));
    }
    result(c, s, row, column) = old;
  });
}

void run_mma(Context& c, const Step& s) {
  if (s.dtype == DType::f32) return multiply<float>(c, s);
  if (s.dtype == DType::f64) return multiply<double>(c, s);
  // Whole numbers wrap, whatever their sign.
  size_of(s.dtype) == 8 ? multiply<uint64_t>(c, s) : multiply<uint32_t>(c, s);
}

}  // namespace fornax::kernel
