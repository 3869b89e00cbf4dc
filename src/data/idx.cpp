// IDX files, plain or gzipped, and the data sets that come as such.
//
// Nothing in a file is trusted: sizes are compared with what the file can hold, memory is taken as
// bytes arrive, and every byte must be accounted for.
#include <fcntl.h>
#include <fornax/data.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.h"

namespace fornax::data {
namespace {

// Deflate cannot do better than this.
constexpr uint64_t kMostCompression = 1032;

// A file as a stream of its uncompressed bytes.
class Input {
 public:
  explicit Input(const std::string& path) : path_(path) {
    struct stat status;
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      fail(ErrorKind::io, "idx: cannot open {}: {}", path, std::strerror(errno));
    }
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
      close(descriptor);
      fail(ErrorKind::io, "idx: {} is not a file", path);
    }
    uint8_t magic[2] = {};
    const bool has_magic = pread(descriptor, magic, 2, 0) == 2;
    compressed_ = has_magic && magic[0] == 0x1f && magic[1] == 0x8b;
    size_ = uint64_t(status.st_size);
    file_ = gzdopen(descriptor, "rb");  // reads files that are not compressed as they are
    if (!file_) {
      close(descriptor);
      fail(ErrorKind::out_of_memory, "idx: no memory to read {}", path);
    }
    gzbuffer(file_, 1 << 17);
    if (!compressed_ && (!has_magic || magic[0] != 0 || magic[1] != 0)) {
      gzclose(file_);
      fail(ErrorKind::io, "idx: {} is neither an IDX file nor compressed by gzip", path);
    }
  }
  ~Input() { gzclose(file_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // The most bytes there can be.
  uint64_t bound() const { return compressed_ ? size_ * kMostCompression : size_; }

  // Reads exactly `size` bytes, of `wanted` that are to come.
  void read(void* out, size_t size, size_t wanted, const char* what) {
    uint8_t* at = static_cast<uint8_t*>(out);
    while (size > 0) {
      const int count = gzread(file_, at, unsigned(std::min<size_t>(size, 1 << 30)));
      if (count <= 0) {
        if (count < 0) refuse();
        fail(ErrorKind::io, "idx: {} is truncated: it ends within {}, {} bytes early", path_, what,
             wanted);
      }
      at += count;
      size -= size_t(count);
      wanted -= size_t(count);
    }
  }

  // Whether no byte is left.  Also checks the checksum of a compressed file.
  bool at_end() {
    uint8_t byte;
    const int count = gzread(file_, &byte, 1);
    int code = Z_OK;  // a missing checksum is an error that gzread keeps to itself
    if (count == 0) gzerror(file_, &code);
    if (count < 0 || code != Z_OK) refuse();
    return count == 0;
  }

 private:
  [[noreturn]] void refuse() {
    int code = 0;
    const char* words = gzerror(file_, &code);
    fail(ErrorKind::io, "idx: {} is {}: {}", path_, code == Z_BUF_ERROR ? "truncated" : "damaged",
         words);
  }

  std::string path_;
  gzFile file_ = nullptr;
  uint64_t size_ = 0;
  bool compressed_ = false;
};

DType element_type(uint8_t code, const std::string& path) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0b:
      return DType::i16;
    case 0x0c:
      return DType::i32;
    case 0x0d:
      return DType::f32;
    case 0x0e:
      return DType::f64;
    default:
      fail(ErrorKind::io, "idx: {} has elements of the unknown type 0x{:02x}", path, code);
  }
}

// The `size` bytes that the header claims: memory is taken as they arrive, not on its word.
void read_all(Input& input, std::vector<uint8_t>& bytes, size_t size, const std::string& path) {
  constexpr size_t kFirst = size_t(1) << 20;
  while (bytes.size() < size) {
    const size_t before = bytes.size();
    try {
      bytes.resize(std::min(size, std::max(kFirst, before * 2)));
    } catch (const std::bad_alloc&) {
      fail(ErrorKind::out_of_memory, "idx: no memory for the {} bytes of elements of {}", size,
           path);
    }
    input.read(&bytes[before], bytes.size() - before, size - before, "its elements");
  }
}

// Files are big-endian.
void to_native(std::vector<uint8_t>& bytes, size_t width) {
  if (std::endian::native == std::endian::big || width == 1) return;
  for (size_t i = 0; i < bytes.size(); i += width) {
    std::reverse(bytes.begin() + std::ptrdiff_t(i), bytes.begin() + std::ptrdiff_t(i + width));
  }
}

constexpr const char* kClasses[] = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                    "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};

}  // namespace

IdxArray read_idx(const std::string& path, Site site) {
  const Call call("idx", site);
  Input input(path);
  uint8_t head[4];
  input.read(head, 4, 4, "its first four bytes");
  if (head[0] != 0 || head[1] != 0) {
    fail(ErrorKind::io, "idx: {} starts with 0x{:02x}{:02x} instead of two zeros", path, head[0],
         head[1]);
  }
  IdxArray array;
  array.dtype = element_type(head[2], path);
  if (head[3] < 1 || head[3] > kMaxRank) {
    fail(ErrorKind::io, "idx: {} has {} axes; 1 to {} are possible", path, head[3], kMaxRank);
  }
  uint64_t size = size_of(array.dtype);
  for (int axis = 0; axis < head[3]; axis++) {
    uint8_t word[4];
    input.read(word, 4, 4, "its list of sizes");
    const uint64_t length = uint64_t(word[0]) << 24 | uint64_t(word[1]) << 16 |
                            uint64_t(word[2]) << 8 | uint64_t(word[3]);
    array.shape.push_back(int64_t(length));
    if (__builtin_mul_overflow(size, length, &size)) size = UINT64_MAX;
  }
  if (size > input.bound()) {
    fail(ErrorKind::io, "idx: {} says it holds {}, more than a file of its size can", path,
         text_of(array.shape));
  }
  read_all(input, array.bytes, size_t(size), path);
  if (!input.at_end()) {
    fail(ErrorKind::io, "idx: {} has bytes left over after the {} bytes of {}", path, size,
         text_of(array.shape));
  }
  to_native(array.bytes, size_of(array.dtype));
  return array;
}

Pictures fashion_mnist(const std::string& split, const std::string& folder, Site site) {
  const Call call("fashion_mnist", site);
  if (split != "train" && split != "test") {
    fail(ErrorKind::value, "fashion_mnist: there is no split \"{}\"; choose \"train\" or \"test\"",
         split);
  }
  const std::string prefix = folder + (split == "train" ? "/train" : "/t10k");
  const auto existing = [&](const std::string& name) {
    const std::string packed = prefix + name + ".gz";
    if (access(packed.c_str(), R_OK) == 0) return packed;
    if (access((prefix + name).c_str(), R_OK) == 0) return prefix + name;
    fail(ErrorKind::io,
         "fashion_mnist: there is no {}; install the package dataset-fashion-mnist or name the "
         "folder that has it",
         packed);
  };
  IdxArray images = read_idx(existing("-images-idx3-ubyte"));
  IdxArray labels = read_idx(existing("-labels-idx1-ubyte"));
  if (images.dtype != DType::u8 || labels.dtype != DType::u8 || images.shape.rank() != 3 ||
      labels.shape.rank() != 1 || images.shape[0] != labels.shape[0] || images.bytes.empty()) {
    fail(ErrorKind::io, "fashion_mnist: {} has pictures {} {} and labels {} {}, which do not match",
         folder, name_of(images.dtype), text_of(images.shape), name_of(labels.dtype),
         text_of(labels.shape));
  }
  for (const uint8_t label : labels.bytes) {
    if (label >= std::size(kClasses)) {
      fail(ErrorKind::io, "fashion_mnist: {} has the label {}; labels are 0 to 9", folder, label);
    }
  }
  return {.count = images.shape[0],
          .channels = 1,
          .height = images.shape[1],
          .width = images.shape[2],
          .mean = 0.2860f,
          .deviation = 0.3530f,
          .pixels = std::move(images.bytes),
          .labels = std::move(labels.bytes)};
}

std::span<const char* const> fashion_mnist_classes() { return kClasses; }

}  // namespace fornax::data
