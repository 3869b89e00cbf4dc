// The modes of the conformance program.  The first four register tests of a device; the last
// two print a table of all devices.
#pragma once
#include <fornax/device.h>

#include <functional>
#include <string>

#include "graph/op.h"

namespace fornax::conformance {

void register_values(Device device);     // against the reference, fused against eager
void register_gradients(Device device);  // against central differences in f64
void register_graphs(Device device);     // random graphs, fused, eager and replayed
void register_repeats(Device device);    // the same bits in a hundred runs
void print_speed();                      // ns per element, eager and fused
void print_support();                    // ops x dtypes, as Markdown

// Adds a test named suite.name that runs `body`.
void add_test(const std::string& suite, const std::string& name, std::function<void()> body);
// "cpu" of "cpu:0", for names of suites: a colon separates filters.
std::string short_name(Device device);

}  // namespace fornax::conformance
