// Safetensors files: little-endian u64 N, N bytes of JSON, data.  An open file is a private
// mapping.
#include <fcntl.h>
#include <fornax/io.h>
#include <fornax/ops.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/join.h"
#include "io/header.h"

namespace fornax::io {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are stored little-endian");

// A whole file in memory, read-only.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      fail(ErrorKind::io, "safetensors: cannot open {}: {}", path, std::strerror(errno));
    }
    struct stat status;
    const bool is_file = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    size_ = is_file ? size_t(status.st_size) : 0;
    if (size_ > 0) {
      void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (memory != MAP_FAILED) data_ = static_cast<const char*>(memory);
    }
    close(descriptor);
    if (!is_file) fail(ErrorKind::io, "safetensors: {} is not a file", path);
    if (size_ > 0 && !data_) {
      fail(ErrorKind::io, "safetensors: cannot map the {} bytes of {} to memory", size_, path);
    }
  }
  ~Mapping() {
    if (data_) munmap(const_cast<char*>(data_), size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// What a file that is not safetensors seems to be, for the error's end.
std::string_view resemblance(std::string_view bytes) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"PK\x03\x04", "; it looks like a zip archive, as PyTorch's .pt files are"},
      {"\x80\x02", "; it looks like a pickle, as old PyTorch files are"},
      {"GGUF", "; it looks like a GGUF file"},
      {"version https://git-lfs", "; it is a git-lfs pointer: fetch the file itself"},
      {"<", "; it looks like a web page"},
      {"\x1f\x8b", "; it is compressed by gzip: unpack it first"},
  };
  for (const auto& [start, words] : kKinds) {
    if (bytes.starts_with(start)) return words;
  }
  return "";
}

std::string_view header_of(std::string_view bytes, const std::string& path, size_t limit) {
  const std::string_view likely = resemblance(bytes);
  if (bytes.size() < 8) {
    fail(ErrorKind::io, "safetensors: {} has {} bytes, too few for any safetensors file{}", path,
         bytes.size(), likely);
  }
  uint64_t size;
  std::memcpy(&size, bytes.data(), 8);
  if (size > bytes.size() - 8) {
    fail(ErrorKind::io, "safetensors: {} says that its header has {} bytes, and {} follow{}", path,
         size, bytes.size() - 8, likely);
  }
  if (size > limit) {
    fail(ErrorKind::io,
         "safetensors: {} has a header of {} bytes, more than the limit of {}; raise header_limit "
         "if you trust the file",
         path, size, limit);
  }
  return bytes.substr(8, size);
}

// Raw bytes of a tensor, as it stores them.
std::vector<char> bytes_of(const Tensor& tensor) {
  std::vector<char> bytes(size_t(tensor.element_count()) * size_of(tensor.dtype()));
  switch (tensor.dtype()) {
#define FORNAX_DTYPE(name, type, ...)                                                              \
  case DType::name:                                                                                \
    tensor.copy_to(std::span(reinterpret_cast<type*>(bytes.data()), bytes.size() / sizeof(type))); \
    break;
#include <fornax/dtypes.def>
  }
  return bytes;
}

}  // namespace

struct Safetensors::File {
  std::string path;
  Mapping mapping;
  Header header;
  std::string_view data;
  std::map<std::string_view, const Entry*> by_name;

  static File* open(const std::string& path, SafetensorsOptions o, Site site) {
    const Call call("safetensors", site);
    return new File(path, o);
  }
  File(const std::string& name, SafetensorsOptions o) : path(name), mapping(name) {
    const std::string_view json = header_of(mapping.bytes(), path, o.header_limit);
    header = parse_header(json, path);
    data = mapping.bytes().substr(8 + json.size());
    check_layout(header.entries, data.size(), o.allow_trailing, path);
    for (const Entry& entry : header.entries) by_name.emplace(entry.name, &entry);
  }
  Tensor read(const Entry& entry, const Device& device) const {
    return from_bytes(data.data() + entry.begin, entry.dtype, entry.shape, device);
  }
};

Safetensors::Safetensors(const std::string& path, SafetensorsOptions o, Site site)
    : file_(File::open(path, o, site)) {}
Safetensors::~Safetensors() { delete file_; }

const std::vector<Entry>& Safetensors::entries() const { return file_->header.entries; }
const Metadata& Safetensors::metadata() const { return file_->header.metadata; }

std::optional<std::string> Safetensors::metadata(std::string_view key) const {
  for (const auto& [name, value] : metadata()) {
    if (name == key) return value;
  }
  return std::nullopt;
}

bool Safetensors::contains(std::string_view name) const { return file_->by_name.contains(name); }

Tensor Safetensors::read(std::string_view name, Device device, Site site) const {
  const Call call("safetensors", site);
  const auto found = file_->by_name.find(name);
  if (found == file_->by_name.end()) {
    std::vector<std::string_view> some;
    for (size_t i = 0; i < std::min<size_t>(5, entries().size()); i++) {
      some.push_back(entries()[i].name);
    }
    fail(ErrorKind::io, "safetensors: {} has no tensor \"{}\" among its {}, such as {}",
         file_->path, name, entries().size(), join(some, ", "));
  }
  return file_->read(*found->second, device);
}

State Safetensors::state(std::string_view prefix, Device device, Site site) const {
  const Call call("safetensors", site);
  State state;
  for (const Entry& entry : entries()) {
    if (!entry.name.starts_with(prefix)) continue;
    state.push_back({entry.name.substr(prefix.size()), file_->read(entry, device)});
  }
  return state;
}

State read_safetensors(const std::string& path, Device device, SafetensorsOptions o, Site site) {
  return Safetensors(path, o, site).state("", device, site);
}

namespace {
// The format has objects, whose names must differ.
void check_writing(const State& state, const Metadata& metadata) {
  std::set<std::string_view> names, keys;
  for (const NamedTensor& item : state) {
    if (!item.value.defined()) {
      fail(ErrorKind::value, "safetensors: cannot write \"{}\": the tensor is undefined",
           item.path);
    }
    if (item.path == "__metadata__") {
      fail(ErrorKind::value, "safetensors: no tensor can be called __metadata__, which is taken");
    }
    if (!names.insert(item.path).second) {
      fail(ErrorKind::value, "safetensors: cannot write two tensors called \"{}\"", item.path);
    }
  }
  for (const auto& [key, value] : metadata) {
    if (!keys.insert(key).second) {
      fail(ErrorKind::value, "safetensors: cannot write two metadata with the key \"{}\"", key);
    }
  }
}
}  // namespace

void write_safetensors(const std::string& path, const State& state, const Metadata& metadata,
                       Site site) {
  const Call call("safetensors", site);
  check_writing(state, metadata);
  // Widest elements first keeps each tensor aligned for its type.
  std::vector<const NamedTensor*> items;
  for (const NamedTensor& item : state) items.push_back(&item);
  std::stable_sort(items.begin(), items.end(), [](const auto* a, const auto* b) {
    return size_of(a->value.dtype()) > size_of(b->value.dtype());
  });
  std::vector<Entry> entries;
  std::vector<std::vector<char>> data;
  uint64_t at = 0;
  for (const NamedTensor* item : items) {
    data.push_back(bytes_of(item->value));
    entries.push_back(
        {item->path, item->value.dtype(), item->value.shape(), at, at + data.back().size()});
    at = entries.back().end;
  }
  std::string header = write_header(entries, metadata);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t size = header.size();
  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&size), 8}, header};
  for (const auto& bytes : data) parts.emplace_back(bytes.data(), bytes.size());
  write_file(path, parts);
}

}  // namespace fornax::io
