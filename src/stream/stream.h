// Streams: where recorded nodes pend, one per thread and physical device.
//
// Invariants
//  (1) The operands of a pending node are constant, ready, failed, or pending in the same stream
//      before it; an operand that pends elsewhere is computed first.
//  (2) Flushing computes every pending node that somebody can still read, in the calling thread and
//      under the stream's lock, and leaves the stream empty.  Nodes whose work failed, and those
//      that depend on them, are failed; all others are ready.  What fails later (stream/doubt.h)
//      fails the nodes that are waited for, and those that are computed from then on.
//  (3) Streams live as long as the process.
// Any thread may flush any stream.
#pragma once
#include <memory>
#include <vector>

#include "base/lock.h"
#include "graph/node.h"

namespace fornax {

class Flush;

class Stream {
 public:
  explicit Stream(int device);
  ~Stream();

  // The calling thread's stream for the device.
  static Stream& of_this_thread(int device) {
    return last_ && last_->device_ == device ? *last_ : find(device);
  }
  // Flushes every thread's stream of the device.
  static void flush_all(int device);

  // Appends the node, and flushes if too much is pending.
  void record(Ref<Node> node);
  void flush();

 private:
  static Stream& find(int device);
  void flush_locked();

  // The stream that the thread asked for last.  Without a destructor, so that access takes no
  // initialisation.
  static constinit thread_local Stream* last_;

  const int64_t most_ops_, most_bytes_;
  const int device_;
  Lock lock_;
  std::vector<Ref<Node>> pending_;
  int64_t pending_bytes_ = 0;
  std::unique_ptr<Flush> flush_;
};

// Keeps a failure until it is thrown.
void note_failure(int device, const std::shared_ptr<const Error>& failure);
// Throws a failed node's error, which thereby counts as read.
[[noreturn]] void throw_failure(const std::shared_ptr<const Error>& failure);
// Throws the first failure on the device that nobody has read, and forgets the others.
void throw_unread_failure(int device);

}  // namespace fornax
