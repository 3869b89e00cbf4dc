// The rows of bench cuda: what each computes, and the bars that it has to meet.
//
// A row is data that the driver (bench/cuda_peers.py) reads as well, to build the same work of its
// peers.  For one thread.
#pragma once
#include "bench/common/work.h"

namespace bench {

struct Row : Work {
  std::string name;
  double bytes = 0, flops = 0;     // that a call must move and compute; 0: no such figure
  int per = 1;                     // ops of a call: times are divided by it
  std::optional<double> bar;       // the largest ratio to the fastest peer
  std::optional<double> of_copy;   // the least share of the bandwidth of copying
  std::optional<double> most;      // the largest value, in the row's unit
  std::vector<std::string> peers;  // beside torch and jax
};

// `tiny`: every axis a sixty-fourth, for a look at the protocol on a processor.
std::vector<Row> rows(bool tiny);

}  // namespace bench
