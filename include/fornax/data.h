// Data: datasets, files of pictures, and a loader that prepares batches on threads of its own.
//
//   data::Loader loader(data::fashion_mnist("train"), {.batch_size = 128, .shuffle = true});
//   for (int64_t epoch = 0; epoch < 5; epoch++) {
//     for (const data::Batch& batch : loader.epoch(epoch)) { ... batch.inputs, batch.targets ... }
//   }
//
// A dataset is any type with size() and get(i), which must be safe from several threads at once.
#pragma once
#include <fornax/ops.h>

#include <concepts>
#include <string>
#include <utility>
#include <vector>

namespace fornax::data {

struct Example {
  Tensor input, target;
};
struct Batch {
  Tensor inputs, targets;  // a first axis over the examples
};

template <class D>
concept Dataset = requires(const D& dataset, int64_t i) {
  { dataset.size() } -> std::convertible_to<int64_t>;
  { dataset.get(i) } -> std::convertible_to<Example>;
};
// A dataset that makes whole batches itself, faster than one by one.
template <class D>
concept BatchDataset = Dataset<D> &&
    requires(const D& dataset, std::span<const int64_t> positions, const Device& device) {
  { dataset.batch(positions, device) } -> std::convertible_to<Batch>;
};
// Examples stacked, on `device`.  Error(shape): they differ in shape.
Batch stacked(const std::vector<Example>& examples, const Device& device, Site site = Site::here());
// What get(i) and batch(positions, device) of a dataset give; those that name a line in their
// errors take it last.
template <class D>
Example example_of(const D& dataset, int64_t i, Site site) {
  if constexpr (requires { dataset.get(i, site); }) {
    return dataset.get(i, site);
  } else {
    return dataset.get(i);
  }
}
template <class D>
Batch batch_of(const D& dataset, std::span<const int64_t> positions, const Device& device,
               Site site) {
  if constexpr (requires { dataset.batch(positions, device, site); }) {
    return dataset.batch(positions, device, site);
  } else if constexpr (BatchDataset<D>) {
    return dataset.batch(positions, device);
  } else {
    std::vector<Example> examples;
    for (const int64_t position : positions)
      examples.push_back(example_of(dataset, position, site));
    return stacked(examples, device, site);
  }
}

// Tensors whose first axes belong together, in memory.
class InMemory {
 public:
  // Error(shape): the first axes differ.
  InMemory(Tensor inputs, Tensor targets, Site site = Site::here());
  int64_t size() const { return inputs_.shape(0); }
  Example get(int64_t i, Site site = Site::here()) const;  // Error(index)
  Batch batch(std::span<const int64_t> positions, const Device& device,
              Site site = Site::here()) const;

 private:
  Tensor inputs_, targets_;
};

// Labelled pictures of one size, kept as bytes.  Inputs are f32[channels, height, width] with the
// value (byte / 255 - mean) / deviation, targets i64 numbers.
struct Pictures {
  int64_t count = 0, channels = 1, height = 0, width = 0;
  float mean = 0, deviation = 1;
  std::vector<uint8_t> pixels;  // [count, channels, height, width]
  std::vector<uint8_t> labels;  // [count]

  int64_t size() const { return count; }
  int64_t size_of_one() const { return channels * height * width; }
  Example get(int64_t i, Site site = Site::here()) const;  // Error(index)
  Batch batch(std::span<const int64_t> positions, const Device& device,
              Site site = Site::here()) const;
};

// `function` applied to each example when it is asked for.
template <Dataset D, class Function>
struct Mapped {
  D dataset;
  Function function;  // Example(Example), safe from several threads
  int64_t size() const { return dataset.size(); }
  Example get(int64_t i, Site site = Site::here()) const {
    return function(example_of(dataset, i, site));
  }
};
template <Dataset D, class Function>
Mapped<D, Function> map(D dataset, Function function) {
  return {std::move(dataset), std::move(function)};
}

// An array from an IDX file, plain or compressed by gzip.  Error(io): not such a file, truncated,
// with bytes left over, or larger than the file could hold.  Error(out_of_memory): more than there
// is.
struct IdxArray {
  DType dtype = DType::u8;
  Shape shape;
  std::vector<uint8_t> bytes;  // row-major, in this machine's byte order
};
IdxArray read_idx(const std::string& path, Site site = Site::here());

inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";
// "train": 60,000 pictures of clothes, 1x28x28, in 10 classes; "test": 10,000 more.  Inputs are
// scaled to mean 0 and deviation 1.  Error(io): no such files; Error(value): another split.
Pictures fashion_mnist(const std::string& split, const std::string& folder = kFashionMnistFolder,
                       Site site = Site::here());
// The names of its classes, ten of them.
std::span<const char* const> fashion_mnist_classes();

struct LoaderOptions {
  int64_t batch_size = 32;
  bool shuffle = false;  // in an order of the epoch's own, fixed by `seed` and the epoch's number
  uint64_t seed = 0;
  bool drop_last = false;  // leave out a last batch that is not full
  int workers = 1;         // threads that prepare batches; 0: the caller does.  Changes no result
  int prefetch = 4;        // batches ready or in work at the most
  Device device = {};      // where batches are put
};

// Any dataset, by three functions.
class Source {
 public:
  template <Dataset D>
  explicit Source(D dataset)
      : size_(int64_t(dataset.size())),
        object_(new D(std::move(dataset))),
        batch_([](const void* object, std::span<const int64_t> positions, const Device& device,
                  Site site) {
          return batch_of(*static_cast<const D*>(object), positions, device, site);
        }),
        destroy_([](void* object) { delete static_cast<D*>(object); }) {}
  Source(Source&& other) noexcept
      : size_(other.size_),
        object_(std::exchange(other.object_, nullptr)),
        batch_(other.batch_),
        destroy_(other.destroy_) {}
  Source& operator=(Source&&) = delete;
  ~Source() {
    if (object_) destroy_(object_);
  }

  int64_t size() const { return size_; }
  Batch batch(std::span<const int64_t> positions, const Device& device,
              Site site = Site::here()) const {
    return batch_(object_, positions, device, site);
  }

 private:
  int64_t size_;
  void* object_;
  Batch (*batch_)(const void*, std::span<const int64_t>, const Device&, Site);
  void (*destroy_)(void*);
};

// The batches of one pass over the data, in order.  May be destroyed at any time.
class Epoch {
 public:
  // The next batch; false at the end.  Throws what preparing it threw; the epoch is over then.
  bool next(Batch& batch);

  class Iterator {
   public:
    explicit Iterator(Epoch* epoch) : epoch_(epoch) { ++*this; }
    const Batch& operator*() const { return batch_; }
    Iterator& operator++() {
      if (!epoch_->next(batch_)) epoch_ = nullptr;
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return epoch_ != nullptr; }

   private:
    Epoch* epoch_;
    Batch batch_;
  };
  Iterator begin() { return Iterator(this); }  // once
  std::nullptr_t end() { return nullptr; }

  Epoch(Epoch&& other) noexcept : run_(std::exchange(other.run_, nullptr)) {}
  Epoch& operator=(Epoch&&) = delete;
  ~Epoch();

 private:
  friend class Loader;
  struct Run;
  explicit Epoch(Run* run) : run_(run) {}
  Run* run_;
};

// Cuts a dataset into batches.  Epochs keep the dataset alive and may run at the same time.
class Loader {
 public:
  template <Dataset D>
  explicit Loader(D dataset, LoaderOptions o = {}, Site site = Site::here())
      : Loader(Source(std::move(dataset)), o, site) {}
  // Error(value): an option out of its range.
  Loader(Source source, LoaderOptions o, Site site = Site::here());
  Loader(Loader&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  Loader& operator=(Loader&&) = delete;
  ~Loader();

  // The pass with this number: the same batches each time it is asked for.  Errors of making
  // batches name this call; those within a dataset's own get() name its lines.
  Epoch epoch(int64_t number, Site site = Site::here()) const;
  int64_t batches() const;   // per epoch
  int64_t examples() const;  // per epoch
  // The order of an epoch's examples.
  std::vector<int64_t> order(int64_t epoch) const;

 private:
  struct Shared;
  Shared* shared_;
};

}  // namespace fornax::data
