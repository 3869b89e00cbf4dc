#include "backends/cube/tickets.h"

#include "base/error.h"

namespace fornax::cube {

Value declare_tickets(Builder& k) { return k.output("tickets", DType::i32); }

void pass_tickets(Arguments& arguments, int64_t tiles) {
  FORNAX_CHECK(tiles <= Device::kTickets);
  arguments.buffer(Place::tickets(), DType::i32, 0, Device::kTickets);
}

void when_last(Builder& k, Value tickets, Value tile, Value blocks, FunctionRef<void()> then) {
  k.fence();
  k.barrier();
  // One thread takes the ticket, and tells the others.
  const Value told = k.shared(DType::i32, 1);
  k.store(told, 0, k.atomic(kernel::Atomic::add, tickets, tile, 1));
  k.barrier();
  k.when(k.cast(k.load(told, 0), blocks.dtype()) == blocks - 1, [&] {
    k.fence();
    k.store(tickets, tile, 0);
    then();
  });
}

}  // namespace fornax::cube
