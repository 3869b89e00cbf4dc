// The runtime "interpreter": a device that runs the text form of kernels step by step, on this
// thread, in the memory of this process.  It is there for tests, where the setting `interpreter`
// says so.
//
// Everything is done when the call returns, but for what is recorded.  Each allocation is known, so
// that the interpreter can tell where a kernel leaves it.
#include <fornax/function.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "kernel/interpret.h"
#include "runtime/registry.h"

namespace fornax::runtime {
namespace {

constexpr size_t kAlignment = 256;

// The allocations of the device.
class Memory {
 public:
  Address allocate(size_t bytes) {
    const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* made = std::aligned_alloc(kAlignment, std::max(whole, kAlignment));
    if (!made) {
      fail(ErrorKind::out_of_memory,
           "interpreter: no memory for {} bytes; free tensors or use smaller batches", bytes);
    }
    // What nobody has written is seen at once: a NaN as a float, an odd number otherwise.
    std::memset(made, 0xff, bytes);
    std::lock_guard lock(mutex_);
    blocks_[reinterpret_cast<Address>(made)] = bytes;
    use_.in_use += bytes;
    use_.peak = std::max(use_.peak, use_.in_use);
    return reinterpret_cast<Address>(made);
  }
  void release(Address memory) {
    {
      std::lock_guard lock(mutex_);
      const auto found = blocks_.find(memory);
      use_.in_use -= found->second;
      blocks_.erase(found);
    }
    std::free(reinterpret_cast<void*>(memory));
  }
  MemoryUse use() {
    std::lock_guard lock(mutex_);
    return {use_.in_use, use_.in_use, use_.peak};
  }
  // The allocation that `pointer` lies in.
  kernel::MemoryExtent around(const void* pointer) {
    const auto address = reinterpret_cast<Address>(pointer);
    std::lock_guard lock(mutex_);
    auto found = blocks_.upper_bound(address);
    if (found == blocks_.begin()) return {};
    --found;
    if (address > found->first + found->second) return {};
    return {reinterpret_cast<const void*>(found->first), int64_t(found->second)};
  }

 private:
  std::mutex mutex_;
  std::map<Address, size_t> blocks_;
  MemoryUse use_;
};

struct InterpretedProgram : Program {
  kernel::Interpreted kernel;
  explicit InterpretedProgram(Source from) : kernel(kernel::parse_kernel(from.text)) {
    source = std::move(from);
  }
};

struct RecordedLaunch {
  kernel::Interpreted code;
  Grid grid;
  std::vector<uint64_t> arguments;
  std::vector<uint32_t> after;
};
// What may run in several orders runs in the one that is farthest from that of recording, so that a
// launch which does not wait for what it needs is found out.
struct RecordedLaunches : Recording {
  std::vector<RecordedLaunch> launches;

  void run(FunctionRef<void(const RecordedLaunch&)> each) const {
    std::vector<char> done(launches.size());
    const auto ready = [&](size_t i) {
      return !done[i] && std::all_of(launches[i].after.begin(), launches[i].after.end(),
                                     [&](uint32_t before) { return done[before]; });
    };
    for (size_t count = 0; count < launches.size(); count++) {
      size_t next = launches.size() - 1;
      while (!ready(next)) next--;
      each(launches[next]);
      done[next] = true;
    }
  }
};

// What this thread is recording.
thread_local std::unique_ptr<RecordedLaunches> under_way;

struct Moment : Mark {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
};

class Interpreter : public Runtime {
 public:
  std::string_view name() const override { return "interpreter"; }
  const std::vector<RuntimeDevice>& devices(std::string& absence) override {
    static const std::vector<RuntimeDevice> one = {
        {"interpreter", "interpreter", "device kernels step by step, one thread", capabilities()}};
    static const std::vector<RuntimeDevice> none;
    if (settings().interpreter) return one;
    absence = "for tests alone; set FORNAX_INTERPRETER=1 to have it";
    return none;
  }

  Address allocate(int, size_t bytes) override { return memory_.allocate(bytes); }
  void release(int, Address memory) noexcept override { memory_.release(memory); }
  MemoryUse memory(int) override { return memory_.use(); }
  void trim(int) override {}

  void write(int, Address to, const void* from, size_t bytes) override {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  }
  void read(int, void* to, Address from, size_t bytes) override {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  }
  void copy(int, Address to, int, Address from, size_t bytes) override {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  }

  std::shared_ptr<Program> find(int, const Recipe&) override { return nullptr; }
  std::shared_ptr<Program> compile(int, const Recipe& recipe) override {
    return std::make_shared<InterpretedProgram>(recipe.make());
  }
  void launch(int, const Program& program, Grid grid,
              std::span<const uint64_t> arguments) override {
    const kernel::Interpreted& code = static_cast<const InterpretedProgram&>(program).kernel;
    if (!under_way) return interpret(code, grid, arguments);
    const auto last = uint32_t(under_way->launches.size()) - 1;
    record(0, program, grid, arguments, {&last, under_way->launches.empty() ? 0u : 1u});
  }
  TensorMap tensor_map(int, const TensorMapRequest&) override {
    fail(ErrorKind::internal, "interpreter: there is no copy engine here");
  }
  void synchronize(int) override {}

  std::unique_ptr<Mark> mark(int) override { return std::make_unique<Moment>(); }
  double milliseconds(const Mark& from, const Mark& to) override {
    const auto taken = static_cast<const Moment&>(to).time - static_cast<const Moment&>(from).time;
    return std::chrono::duration<double, std::milli>(taken).count();
  }

  void begin_recording(int) override { under_way = std::make_unique<RecordedLaunches>(); }
  void record(int, const Program& program, Grid grid, std::span<const uint64_t> arguments,
              std::span<const uint32_t> after) override {
    under_way->launches.push_back({static_cast<const InterpretedProgram&>(program).kernel,
                                   grid,
                                   {arguments.begin(), arguments.end()},
                                   {after.begin(), after.end()}});
  }
  std::unique_ptr<Recording> end_recording(int) override { return std::move(under_way); }
  void run(int, const Recording& recording) override {
    static_cast<const RecordedLaunches&>(recording).run(
        [this](const RecordedLaunch& one) { interpret(one.code, one.grid, one.arguments); });
  }
  void change(int, Recording& recording, size_t launch,
              std::span<const uint64_t> arguments) override {
    static_cast<RecordedLaunches&>(recording).launches[launch].arguments.assign(arguments.begin(),
                                                                                arguments.end());
  }

 private:
  void interpret(const kernel::Interpreted& code, Grid grid, std::span<const uint64_t> arguments) {
    kernel::Launch launch;
    for (size_t axis = 0; axis < grid.size(); axis++) launch.grid[axis] = int(grid[axis]);
    launch.arguments.assign(arguments.begin(), arguments.end());
    launch.memory = [this](const void* pointer) { return memory_.around(pointer); };
    launch.checked = settings().check;
    std::string printed;
    launch.log = &printed;
    code.run(launch);
    if (!printed.empty()) log(0, "{}", printed);
  }
  static Capabilities capabilities() {
    Capabilities c;
    c.language = Language::kernel;
    c.target = "kernel";
    return c;
  }

  Memory memory_;
};

const Registered kInterpreter(1000, []() -> std::unique_ptr<Runtime> {
  return std::make_unique<Interpreter>();
});

}  // namespace
}  // namespace fornax::runtime
