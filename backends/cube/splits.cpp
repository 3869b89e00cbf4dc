#include "backends/cube/splits.h"

#include "backends/cube/tickets.h"

namespace fornax::cube {

Splits declare_splits(Builder& k, DType sums) {
  Splits splits;
  splits.parts = k.output("parts", sums, {.divisor = 256});
  splits.tickets = declare_tickets(k);
  return splits;
}

void pass_splits(Arguments& arguments, LaunchList& list, DType sums, int64_t tiles, int64_t parts,
                 int64_t elements) {
  const int64_t all = parts * elements;
  arguments.buffer(list.scratch(size_t(all) * size_of(sums)), sums, 0, all);
  pass_tickets(arguments, tiles);
}

void add_up(Builder& k, const Splits& splits, const kernel::TilePart& part,
            FunctionRef<void(Value sum)> finish) {
  const int rows = part.sums.type().rows, columns = part.sums.type().columns;
  const Value within = k.iota(0, rows) * columns + k.iota(1, columns);
  const auto at = [&](Value number) { return part.slot(number) * (rows * columns) + within; };
  k.store(splits.parts, at(part.number), part.sums);
  when_last(k, splits.tickets, part.tile, part.count, [&] {
    kernel::Variable sum(k.spread(k.constant(part.sums.dtype(), 0), rows, columns));
    k.loop(0, part.count, 1, [&](Value i) { sum = sum.get() + k.load(splits.parts, at(i)); });
    finish(sum);
  });
}

}  // namespace fornax::cube
