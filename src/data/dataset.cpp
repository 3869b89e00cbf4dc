// Datasets in memory and how their examples become batches.
#include <fornax/data.h>

#include <array>
#include <cstring>

#include "base/error.h"

namespace fornax::data {
namespace {

void check_position(const char* op, int64_t position, int64_t size) {
  if (position < 0 || position >= size) {
    fail(ErrorKind::index, "{}: there is no example {}; there are {}", op, position, size);
  }
}

}  // namespace

Batch stacked(const std::vector<Example>& examples, const Device& device, Site site) {
  const Call call("stacked", site);
  std::vector<Tensor> inputs, targets;
  for (const Example& example : examples) {
    inputs.push_back(example.input);
    targets.push_back(example.target);
  }
  return {stack(inputs).to(device), stack(targets).to(device)};
}

InMemory::InMemory(Tensor inputs, Tensor targets, Site site)
    : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  const Call call("in_memory", site);
  if (inputs_.rank() == 0 || targets_.rank() == 0 || inputs_.shape(0) != targets_.shape(0)) {
    fail(ErrorKind::shape,
         "in_memory: inputs are {}, targets {}; both need a first axis, of the same size",
         text_of(inputs_.shape()), text_of(targets_.shape()));
  }
}

Example InMemory::get(int64_t i, Site site) const {
  const Call call("in_memory", site);
  check_position("in_memory", i, size());
  return {inputs_.select(0, i), targets_.select(0, i)};
}

Batch InMemory::batch(std::span<const int64_t> positions, const Device& device, Site site) const {
  const Call call("in_memory", site);
  for (const int64_t position : positions) check_position("in_memory", position, size());
  const Tensor index = from(positions, {int64_t(positions.size())}, inputs_.device());
  return {inputs_.take(index).to(device), targets_.take(index.to(targets_.device())).to(device)};
}

Example Pictures::get(int64_t i, Site site) const {
  const Batch one = batch(std::span(&i, 1), Device("cpu"), site);
  return {one.inputs.select(0, 0), one.targets.select(0, 0)};
}

Batch Pictures::batch(std::span<const int64_t> positions, const Device& device, Site site) const {
  const Call call("pictures", site);
  std::array<float, 256> scaled;
  for (size_t byte = 0; byte < scaled.size(); byte++) {
    scaled[byte] = (float(byte) / 255 - mean) / deviation;
  }
  const size_t size = size_t(size_of_one());
  std::vector<float> inputs(positions.size() * size);
  std::vector<int64_t> targets(positions.size());
  for (size_t i = 0; i < positions.size(); i++) {
    check_position("pictures", positions[i], count);
    const uint8_t* picture = &pixels[size_t(positions[i]) * size];
    for (size_t pixel = 0; pixel < size; pixel++) inputs[i * size + pixel] = scaled[picture[pixel]];
    targets[i] = labels[size_t(positions[i])];
  }
  const int64_t batch = int64_t(positions.size());
  return {from(inputs, {batch, channels, height, width}, device), from(targets, device)};
}

}  // namespace fornax::data
