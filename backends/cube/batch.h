// Launches of a list of groups that is run again and again: collected, then run as one recording of
// the runtime, whose arguments are changed where they are not what they were.
//
// Nothing runs before end(), so memory that is given back meanwhile would be given to others too
// early: scratch memory is kept until then.  Launches that touch nothing in common run at the same
// time, so scratch memory and tickets go round in a few ways, from group to group.
//
// Thread-safety: a batch is for one thread at a time, and collects what that thread launches.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "backends/cube/device.h"

namespace fornax::cube {

class LaunchBatch : public Batch {
 public:
  explicit LaunchBatch(Device& device) : device_(device) {}
  ~LaunchBatch() override;

  void begin();
  void end();
  // The batch of the device that this thread has begun, or nullptr.
  static LaunchBatch* begun(const Device& device);
  // Which of the device's ways the group under way takes.
  static int way(const Device& device);

  void add(const std::shared_ptr<const runtime::Program>& program, runtime::Grid grid,
           std::span<const uint64_t> arguments, std::span<const Touch> touches,
           const std::shared_ptr<const Explain>& explain);
  // For the launches of the group under way.
  runtime::Address scratch(size_t bytes);
  // A group under way; one that is left by an exception is not launched in part.
  class Group {
   public:
    Group();
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

   private:
    const int exceptions_;
    size_t entries_ = 0, words_ = 0, touches_ = 0, requests_ = 0;  // before it
  };

 private:
  // Arguments lie one after another, tensor maps in place of their addresses.
  struct Entry {
    std::shared_ptr<const runtime::Program> program;
    runtime::Grid grid;
    size_t first, count;  // words
    size_t first_touch, touches;
    bool reports;  // the last word is the address of a status
    bool operator==(const Entry&) const = default;
  };
  struct Known {
    std::vector<Entry> entries;
    std::vector<uint64_t> words;
    std::vector<Touch> touches;
    Order order;
    std::unique_ptr<runtime::Recording> recording;
    uint64_t used = 0;  // when
  };
  struct Block {
    runtime::Address memory = 0;  // 0: none at the moment
    size_t bytes = 0;             // what it should have
  };
  // Scratch memory, in the order in which groups ask for it.
  struct Blocks {
    std::vector<Block> blocks;
    size_t next = 0;
  };

  void launch();
  void launch_each();
  void launch_recorded();
  void run(const Entry& entry);
  Known* fitting();
  Known* recorded();
  std::unique_ptr<runtime::Recording> record();
  const Order& order();
  void change(Known& known);
  // Whether a launch has other arguments than the recording's.
  bool differs(const Known& known, const Entry& entry) const;
  std::span<const uint64_t> arguments_of(const Entry& entry);
  void forget();

  Device& device_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> words_;
  std::vector<Touch> touches_;
  Order order_;                      // of the launches, once somebody asks for it
  size_t at_once_ = 4;               // launches; more are hardly faster, and dearer to start
  int remade_ = 0;                   // recordings of launches of which there was one already
  std::vector<uint64_t> arguments_;  // of the launch under way, and its maps
  std::vector<runtime::TensorMap> maps_;
  std::vector<Reports::Request> requests_;
  std::vector<Known> known_;
  bool can_record_ = true;
  uint64_t uses_ = 0;
  int way_ = 0;
  std::array<Blocks, Device::kWays> small_;  // by way
  Blocks large_;                             // which all ways share
  std::vector<runtime::Address> outgrown_;
};

// Scratch memory of a group while it runs.
class ScratchMemory {
 public:
  explicit ScratchMemory(Device& device) : device_(device) {}
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  runtime::Address allocate(size_t bytes);

 private:
  Device& device_;
  std::vector<runtime::Address> memory_;  // given back at once: who gets it next comes later
};

}  // namespace fornax::cube
