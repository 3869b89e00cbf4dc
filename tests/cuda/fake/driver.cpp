// A stand-in for libcuda.  fake.h says how it behaves.  One lock around everything.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/fake/fake.h"
#include "tests/cuda/fake/objects.h"

using namespace fornax::cuda;
#define FORNAX_CUDA(name, symbol, ...) extern "C" Result symbol(__VA_ARGS__);
#include "runtimes/cuda/driver.def"

namespace {

std::recursive_mutex mutex;
FakeDriver state;
std::array<ContextObject, 8> contexts;
std::set<void*> pinned;
std::map<void*, std::shared_ptr<void>> objects;  // a broken device's are never given back
float now = 0;                                   // a program takes a millisecond
thread_local ContextObject* current = nullptr;

template <class T>
T* make() {
  const auto object = std::make_shared<T>();
  objects[object.get()] = object;
  return object.get();
}

#define LOCK const std::lock_guard lock(mutex)
#define NEED_CONTEXT                \
  LOCK;                             \
  if (!current) return Result(201); \
  if (current->broken != Result::success) return current->broken

Result run(Stream stream, uint64_t position) {
  while (stream->done < position) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->done++;
    const Result result = work();
    if (result != Result::success) return stream->context->broken = result;
  }
  return Result::success;
}

Result queue(Stream stream, Work work) {
  if (stream->context != current) return Result(400);
  stream->queue.push_back(std::move(work));
  stream->queued++;
  return Result::success;
}

// Whether a range lies in one block of the device.
bool lies_in(const ContextObject& context, Address address, size_t bytes) {
  auto after = context.memory.upper_bound(address);
  if (after == context.memory.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}

template <class T>
T value_of(void* parameter) {
  T value;
  std::memcpy(&value, parameter, sizeof value);
  return value;
}

uint32_t* words(Address address) { return reinterpret_cast<uint32_t*>(address); }

Result fill(ContextObject* c, Address to, unsigned threads, uint32_t count, uint32_t value) {
  count = std::min(count, threads);
  if (!lies_in(*c, to, count * 4)) return Result::illegal_address;
  for (uint32_t i = 0; i < count; i++) words(to)[i] = value;
  return Result::success;
}

Result add(ContextObject* c, Address to, Address from, unsigned threads, uint32_t count) {
  count = std::min(count, threads);
  if (!lies_in(*c, to, count * 4) || !lies_in(*c, from, count * 4)) return Result::illegal_address;
  for (uint32_t i = 0; i < count; i++) words(to)[i] += words(from)[i];
  return Result::success;
}

// What a launch does, its arguments read now.
Result work_of(const LaunchNode& launch, Work& work) {
  const unsigned block = launch.block[0];
  if (block > 1024 || launch.shared_bytes > unsigned(launch.function->shared_bytes)) {
    return Result::invalid_value;
  }
  const unsigned threads = launch.grid[0] * launch.grid[1] * launch.grid[2] * block;
  ContextObject* c = current;
  void** p = launch.parameters;
  Work body;
  if (launch.function->name == "fill") {
    body = [=, to = value_of<Address>(p[0]), count = value_of<uint32_t>(p[1]),
            value = value_of<uint32_t>(p[2])] { return fill(c, to, threads, count, value); };
  } else if (launch.function->name == "add") {
    body = [=, to = value_of<Address>(p[0]), from = value_of<Address>(p[1]),
            count = value_of<uint32_t>(p[2])] { return add(c, to, from, threads, count); };
  } else if (launch.function->name == "fault") {
    body = [] { return Result::illegal_address; };
  } else {
    body = [] { return Result::success; };
  }
  work = [body] {
    now += 1;
    return body();
  };
  return Result::success;
}

// Which of the graph's nodes it is; as many as there are where it is none.
size_t number_of(const GraphObject& graph, GraphNode node) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const auto& known) { return known.get() == node; });
  return size_t(found - graph.nodes.begin());
}

}  // namespace

extern "C" {

FakeDriver* fake_driver() { return &state; }

void fake_driver_reset() {
  LOCK;
  for (ContextObject& context : contexts) {
    context.drop_memory();
    context = {};
  }
  objects.clear();
  state = {};
}

Result cuInit(unsigned) { return Result(state.init); }
Result cuDriverGetVersion(int* version) {
  *version = state.version;
  return Result::success;
}
Result cuGetErrorName(Result result, const char** name) {
  *name = result == Result::no_device            ? "CUDA_ERROR_NO_DEVICE"
          : result == Result::illegal_address    ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == Result::invalid_value      ? "CUDA_ERROR_INVALID_VALUE"
          : result == Result::device_unavailable ? "CUDA_ERROR_DEVICE_UNAVAILABLE"
                                                 : "CUDA_ERROR_OTHER";
  return Result::success;
}
Result cuGetErrorString(Result, const char** text) {
  *text = "as the driver puts it";
  return Result::success;
}

Result cuDeviceGetCount(int* count) {
  *count = state.devices;
  return Result::success;
}
Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return Result::success;
}
Result cuDeviceGetName(char* name, int bytes, Device) {
  std::strncpy(name, "Fake Accelerator", size_t(bytes));
  return Result::success;
}
Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  for (int i = 0; i < 16; i++) uuid->bytes[i] = static_cast<unsigned char>(16 * device + i);
  return Result::success;
}
Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, Device) {
  *value = attribute == DeviceAttribute::most_threads    ? 1024
           : attribute == DeviceAttribute::warp          ? 32
           : attribute == DeviceAttribute::processors    ? 132
           : attribute == DeviceAttribute::compute_major ? 9
           : attribute == DeviceAttribute::compute_minor ? 0
                                                         : 232448;
  return Result::success;
}
Result cuDeviceTotalMem_v2(size_t* bytes, Device) {
  *bytes = state.memory;
  return Result::success;
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  LOCK;
  if (state.retain) return Result(state.retain);
  *context = &contexts[size_t(device)];
  (*context)->device = device;
  (*context)->users++;
  state.contexts++;
  return Result::success;
}
Result cuDevicePrimaryCtxRelease_v2(Device) {
  LOCK;
  state.contexts--;
  return Result::success;
}
Result cuCtxSetCurrent(Context context) {
  current = context;
  return Result::success;
}

Result cuMemAlloc_v2(Address* memory, size_t bytes) {
  NEED_CONTEXT;
  if (current->used + bytes > state.memory) return Result::out_of_memory;
  void* block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(block, 0xa5, bytes);
  *memory = reinterpret_cast<Address>(block);
  current->memory[*memory] = bytes;
  current->used += bytes;
  state.allocations++;
  return Result::success;
}
Result cuMemFree_v2(Address memory) {
  NEED_CONTEXT;
  for (Stream stream : current->streams) state.early_frees += !stream->queue.empty();
  const auto found = current->memory.find(memory);
  if (found == current->memory.end()) return Result::invalid_value;
  current->used -= found->second;
  current->memory.erase(found);
  std::free(reinterpret_cast<void*>(memory));
  state.frees++;
  return Result::success;
}
Result cuMemGetInfo_v2(size_t* left, size_t* total) {
  NEED_CONTEXT;
  *left = state.memory - current->used;
  *total = state.memory;
  return Result::success;
}
Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  NEED_CONTEXT;
  *memory = std::malloc(bytes);
  pinned.insert(*memory);
  state.pinned++;
  return Result::success;
}
Result cuMemFreeHost(void* memory) {
  NEED_CONTEXT;
  if (!pinned.erase(memory)) return Result::invalid_value;
  state.pinned--;
  std::free(memory);
  return Result::success;
}

Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream stream) {
  NEED_CONTEXT;
  if (!lies_in(*current, to, bytes)) return Result::invalid_value;
  return queue(stream, [=] {
    std::memcpy(words(to), from, bytes);
    return Result::success;
  });
}
Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream stream) {
  NEED_CONTEXT;
  if (!lies_in(*current, from, bytes)) return Result::invalid_value;
  return queue(stream, [=] {
    std::memcpy(to, words(from), bytes);
    return Result::success;
  });
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream stream) {
  NEED_CONTEXT;
  if (!lies_in(*current, to, bytes) || !lies_in(*current, from, bytes))
    return Result::invalid_value;
  return queue(stream, [=] {
    std::memmove(words(to), words(from), bytes);
    return Result::success;
  });
}
Result cuMemcpyPeerAsync(Address to, Context to_context, Address from, Context from_context,
                         size_t bytes, Stream stream) {
  NEED_CONTEXT;
  if (!lies_in(*to_context, to, bytes) || !lies_in(*from_context, from, bytes)) {
    return Result::invalid_value;
  }
  return queue(stream, [=] {
    std::memcpy(words(to), words(from), bytes);
    return Result::success;
  });
}

Result cuStreamCreate(Stream* stream, unsigned) {
  NEED_CONTEXT;
  *stream = make<StreamObject>();
  (*stream)->context = current;
  current->streams.insert(*stream);
  state.streams++;
  return Result::success;
}
Result cuStreamDestroy_v2(Stream stream) {
  NEED_CONTEXT;
  current->streams.erase(stream);
  objects.erase(stream);
  state.streams--;
  return Result::success;
}
Result cuStreamSynchronize(Stream stream) {
  NEED_CONTEXT;
  return run(stream, stream->queued);
}
Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  NEED_CONTEXT;
  const Stream other = event->stream;
  const uint64_t position = event->position;
  return queue(stream, [=] { return run(other, position); });
}

Result cuEventCreate(Event* event, unsigned) {
  NEED_CONTEXT;
  *event = make<EventObject>();
  (*event)->context = current;
  state.events++;
  return Result::success;
}
Result cuEventDestroy_v2(Event event) {
  LOCK;
  state.events--;
  objects.erase(event);
  return Result::success;
}
Result cuEventRecord(Event event, Stream stream) {
  NEED_CONTEXT;
  if (event->context != stream->context) return Result(400);
  event->stream = stream;
  event->position = stream->queued;
  return Result::success;
}
Result cuEventSynchronize(Event event) {
  NEED_CONTEXT;
  const Result result = event->stream ? run(event->stream, event->position) : Result::success;
  if (event->time == 0) event->time = now;
  return result;
}
Result cuEventElapsedTime(float* milliseconds, Event from, Event to) {
  NEED_CONTEXT;
  *milliseconds = to->time - from->time;
  return Result::success;
}

Result cuModuleLoadData(Module* module, const void* image) {
  NEED_CONTEXT;
  const std::string text = static_cast<const char*>(image);
  if (!text.starts_with("FAKE sm_90a\n")) return Result::invalid_image;
  *module = make<ModuleObject>();
  (*module)->text = text;
  state.modules++;
  return Result::success;
}
Result cuModuleUnload(Module module) {
  NEED_CONTEXT;
  objects.erase(module);
  state.modules--;
  return Result::success;
}
Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  NEED_CONTEXT;
  if (module->text.find(std::string(" ") + name + "(") == std::string::npos) {
    return Result::not_found;
  }
  module->functions.push_back(std::make_unique<FunctionObject>(FunctionObject{name}));
  *function = module->functions.back().get();
  return Result::success;
}
Result cuFuncSetAttribute(Function function, FunctionAttribute, int value) {
  NEED_CONTEXT;
  if (value > 232448) return Result::invalid_value;
  function->shared_bytes = value;
  return Result::success;
}

Result cuLaunchKernelEx(const LaunchConfig* c, Function function, void** p, void**) {
  NEED_CONTEXT;
  LaunchNode launch{function, {}, {}, c->shared_bytes, p};
  std::copy_n(c->grid, 3, launch.grid);
  std::copy_n(c->block, 3, launch.block);
  Work work;
  const Result result = work_of(launch, work);
  if (result != Result::success) return result;
  state.launches++;
  return queue(c->stream, work);
}

// Keeps what it was asked, for the test to look at.
Result cuTensorMapEncodeTiled(void* map, TensorMapType type, uint32_t rank, void* base,
                              const uint64_t* extents, const uint64_t* pitches, const uint32_t* box,
                              const uint32_t*, int, TensorMapSwizzle swizzle, int, int) {
  NEED_CONTEXT;
  const std::array<uint64_t, 8> kept = {uint64_t(type),
                                        rank,
                                        reinterpret_cast<uint64_t>(base),
                                        extents[0],
                                        extents[1],
                                        pitches[0],
                                        box[0],
                                        uint64_t(swizzle)};
  std::memcpy(map, kept.data(), sizeof kept);
  return Result::success;
}

extern "C" int nvtxRangePushA(const char*) {
  const std::lock_guard lock(mutex);
  state.ranges++;
  return state.open_ranges++;
}
extern "C" int nvtxRangePop() {
  const std::lock_guard lock(mutex);
  return --state.open_ranges;
}

Result cuGraphCreate(Graph* graph, unsigned) {
  NEED_CONTEXT;
  *graph = make<GraphObject>();
  state.graphs++;
  return Result::success;
}
// A chain: each launch comes after the one before, by what it is added with or told then.
Result cuGraphAddKernelNode_v2(GraphNode* node, Graph graph, const GraphNode* after, size_t count,
                               const LaunchNode* launch) {
  NEED_CONTEXT;
  auto made = std::make_unique<GraphNodeObject>();
  made->function = launch->function;
  const Result result = work_of(*launch, made->work);
  if (result != Result::success) return result;
  for (size_t i = 0; i < count; i++) {
    if (number_of(*graph, after[i]) == graph->nodes.size()) return Result::invalid_value;
    made->after.push_back(after[i]);
  }
  *node = made.get();
  graph->nodes.push_back(std::move(made));
  return Result::success;
}
Result cuGraphAddDependencies_v2(Graph graph, const GraphNode* from, const GraphNode* to,
                                 const Dependency*, size_t count) {
  NEED_CONTEXT;
  for (size_t i = 0; i < count; i++) {
    const size_t node = number_of(*graph, to[i]);
    if (node == graph->nodes.size() || number_of(*graph, from[i]) >= node) {
      return Result::invalid_value;
    }
    to[i]->after.push_back(from[i]);
  }
  return Result::success;
}
// The nodes in an order that they allow: of those that may come next, the last one made.
Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  NEED_CONTEXT;
  *exec = make<GraphExecObject>();
  std::set<const GraphNodeObject*> done;
  const auto ready = [&](const GraphNodeObject& node) {
    return !done.contains(&node) &&
           std::all_of(node.after.begin(), node.after.end(),
                       [&](auto* before) { return done.contains(before); });
  };
  while (done.size() < graph->nodes.size()) {
    size_t next = graph->nodes.size() - 1;
    while (!ready(*graph->nodes[next])) next--;
    GraphNodeObject& node = *graph->nodes[next];
    (*exec)->work.emplace_back(&node, node.work);
    done.insert(&node);
  }
  state.graphs++;
  return Result::success;
}
Result cuGraphExecKernelNodeSetParams_v2(GraphExec exec, GraphNode node, const LaunchNode* launch) {
  NEED_CONTEXT;
  for (auto& [known, work] : exec->work) {
    if (known != node || launch->function != node->function) continue;
    state.changes++;
    return work_of(*launch, work);
  }
  return Result::invalid_value;
}
Result cuGraphDestroy(Graph graph) {
  NEED_CONTEXT;
  objects.erase(graph);
  state.graphs--;
  return Result::success;
}
Result cuGraphLaunch(GraphExec exec, Stream stream) {
  NEED_CONTEXT;
  state.graph_launches++;
  for (const auto& [node, work] : exec->work) queue(stream, work);
  return Result::success;
}
Result cuGraphExecDestroy(GraphExec exec) {
  NEED_CONTEXT;
  objects.erase(exec);
  state.graphs--;
  return Result::success;
}
}
