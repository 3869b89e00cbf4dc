#include "backends/cube/splits.h"

#include "backends/cube/tickets.h"

namespace fornax::cube {

Splits declare_splits(Builder& k, DType sums) {
  Splits splits;
  splits.count = k.number("splits", DType::i32);
  splits.parts = k.output("parts", sums, {.divisor = 256});
  splits.tickets = declare_tickets(k);
  return splits;
}

void pass_splits(Arguments& arguments, LaunchList& list, DType sums, int64_t tiles, int64_t count,
                 int64_t elements) {
  arguments.number(DType::i32, count);
  const int64_t all = tiles * count * elements;
  arguments.buffer(list.scratch(size_t(all) * size_of(sums)), sums, 0, all);
  pass_tickets(arguments, tiles);
}

void add_up(Builder& k, const Splits& splits, Value tile, Value split, Value part,
            FunctionRef<void(Value sum)> finish) {
  const int rows = part.type().rows, columns = part.type().columns;
  const Value within = k.iota(0, rows) * columns + k.iota(1, columns);
  const Value first = tile * splits.count * (rows * columns);
  k.store(splits.parts, first + split * (rows * columns) + within, part);
  when_last(k, splits.tickets, tile, splits.count, [&] {
    kernel::Variable sum(k.spread(k.constant(part.dtype(), 0), rows, columns));
    k.loop(0, splits.count, 1, [&](Value i) {
      sum = sum.get() + k.load(splits.parts, first + i * (rows * columns) + within);
    });
    finish(sum);
  });
}

}  // namespace fornax::cube
