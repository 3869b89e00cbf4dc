// Numbers from a counter, made on the host so that they depend on nothing that is measured, and
// what of results is compared.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/common/work.h"

namespace bench {
namespace {

// bench/peers/rows.py has the same.
uint32_t mix(uint32_t seed, uint64_t i) {
  uint32_t h = uint32_t(i) * 2654435761u + seed * 2246822519u + 1u;
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return h ^ (h >> 16);
}

template <class T, class Make>
std::vector<T> fill(size_t count, Make make) {
  std::vector<T> data(count);
  const size_t workers = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
  const size_t share = (count + workers - 1) / workers;
  std::vector<std::thread> threads;
  for (size_t begin = 0; begin < count; begin += share) {
    threads.emplace_back([&, begin] {
      for (size_t i = begin; i < std::min(count, begin + share); i++) data[i] = make(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return data;
}

size_t product(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= size_t(size);
  return count;
}

Shape as_shape(const std::vector<int64_t>& sizes) { return Shape(std::span<const int64_t>(sizes)); }

}  // namespace

Tensor values(uint32_t seed, const std::vector<int64_t>& shape, DType dtype, Device device) {
  const auto data = fill<float>(product(shape), [seed](size_t i) {
    return float(int32_t(mix(seed, i) >> 8) - (1 << 23)) / float(1 << 23);  // exact
  });
  const Tensor result =
      from(std::span<const float>(data), as_shape(shape), device).cast(dtype).contiguous();
  device.sync();
  return result;
}

Tensor classes(uint32_t seed, const std::vector<int64_t>& shape, int64_t classes, Device device) {
  const auto data = fill<int64_t>(
      product(shape), [&](size_t i) { return int64_t(mix(seed, i) % uint64_t(classes)); });
  const Tensor result = from(std::span<const int64_t>(data), as_shape(shape), device).contiguous();
  device.sync();
  return result;
}

Summary summary(const Tensor& tensor) {
  const std::vector<double> data = tensor.to_vector<double>();
  Summary result;
  result.count = data.size();
  for (const double value : data) {
    result.sum += value;
    result.squares += value * value;
  }
  for (uint64_t i = 0; i < std::min<size_t>(1000, data.size()); i++) {
    result.samples.push_back(data[size_t(i * 2654435761u % data.size())]);
  }
  return result;
}

int check_calls(const std::string& op) { return op.ends_with("_step") ? 5 : 1; }
bool is_training(const std::string& op) { return op.ends_with("_step") || op.ends_with("_losses"); }

std::vector<Tensor> checked(const Work& work, const Call& call, Device device) {
  if (!is_training(work.op)) {
    // Leaves blocks of the outputs' sizes full of NaN for the allocator to hand out again.
    std::vector<Tensor> outputs = call(0), poisoned;
    device.sync();
    for (const Tensor& output : outputs) {
      if (is_floating(output.dtype())) {
        const Options like{.dtype = output.dtype(), .device = device};
        poisoned.push_back(uniform(output.shape(), 1, 2, like) * std::nan(""));
      }
    }
    outputs.clear();
    device.sync();
  }
  std::vector<Tensor> outputs;
  for (int i = 0; i < check_calls(work.op); i++) outputs = call(0);
  return outputs;
}

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::string shape_name(const std::vector<int64_t>& shape) {
  std::string name;
  for (const int64_t size : shape) name += (name.empty() ? "" : "x") + std::to_string(size);
  return name;
}

}  // namespace bench
