// IDX files: whole, cut, lying and of other kinds.
#include <fornax/data.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "base/sanitizer.h"
#include "tests/errors.h"

namespace fornax::data {
namespace {

std::string packed(const std::string& bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, uLong(bytes.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string head(char type, const std::vector<uint32_t>& sizes) {
  std::string out = {0, 0, type, char(sizes.size())};
  for (const uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) out += char(size >> shift);
  }
  return out;
}

struct File {
  std::string path;
  explicit File(const std::string& bytes) {
    std::string name = "/tmp/fornax-idx-XXXXXX";
    close(mkstemp(name.data()));
    path = name;
    std::ofstream(path, std::ios::binary) << bytes;
  }
  ~File() { std::filesystem::remove(path); }
};

std::string complaint(const std::string& bytes) {
  const File file(bytes);
  try {
    read_idx(file.path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return error.what();
  }
  return "";
}
#define EXPECT_SAYS(text, words) EXPECT_PRED_FORMAT2(::testing::IsSubstring, words, text)

TEST(Idx, reads_plain_and_packed) {
  const std::string bytes = head(8, {2, 3}) + "abcdef";
  for (const std::string& form : {bytes, packed(bytes)}) {
    const File file(form);
    const IdxArray array = read_idx(file.path);
    EXPECT_EQ(array.shape, (Shape{2, 3}));
    EXPECT_EQ(array.dtype, DType::u8);
    EXPECT_EQ(std::string(array.bytes.begin(), array.bytes.end()), "abcdef");
  }
}

TEST(Idx, wide_elements_are_turned_to_native_order) {
  const File file(head(0x0c, {1}) + std::string("\x00\x00\x01\x02", 4));
  const IdxArray array = read_idx(file.path);
  int32_t value;
  memcpy(&value, array.bytes.data(), 4);
  EXPECT_EQ(value, 258);
}

TEST(Idx, empty_array) {
  const File file(head(8, {0, 28}));
  EXPECT_EQ(read_idx(file.path).bytes.size(), 0u);
}

TEST(Idx, refuses_what_is_broken) {
  const std::string good = head(8, {2, 3}) + "abcdef", zipped = packed(good);
  EXPECT_SAYS(complaint(good + "g"), "left over");
  EXPECT_SAYS(complaint(packed(good + "g")), "left over");
  EXPECT_SAYS(complaint(head(8, {0xffffffff, 0xffffffff, 0xffffffff})),
              "more than a file of its size");
  EXPECT_SAYS(complaint(packed(head(8, {0xffffffff, 4}))), "more than a file of its size");
  EXPECT_SAYS(complaint(packed(head(8, {60000}) + "abc")), "more than a file of its size");
  EXPECT_SAYS(complaint(packed(head(8, {600}) + "abc")), "truncated");
  EXPECT_SAYS(complaint(head(7, {1}) + "a"), "unknown type 0x07");
  EXPECT_SAYS(complaint(head(8, {})), "0 axes");
  EXPECT_SAYS(complaint(head(8, std::vector<uint32_t>(9, 1)) + "a"), "9 axes");
  EXPECT_SAYS(complaint("<html>not found</html>"), "neither an IDX file nor compressed");
  EXPECT_SAYS(complaint(""), "neither");
  EXPECT_SAYS(complaint(packed("hello, world")), "instead of two zeros");
  std::string damaged = zipped;
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  EXPECT_SAYS(complaint(damaged), "damaged");
}

TEST(Idx, every_cut_is_refused) {
  const std::string plain = head(8, {2, 3}) + "abcdef", zipped = packed(plain);
  for (const std::string& whole : {plain, zipped}) {
    for (size_t size = 0; size < whole.size(); size++) {
      EXPECT_NE(complaint(whole.substr(0, size)), "") << size;
    }
  }
}

TEST(Idx, missing_files_say_what_to_install) {
  const auto refusal = [](const auto& work) { return message_of(ErrorKind::io, work); };
  expect_words(refusal([] { read_idx("/nowhere"); }), "idx: cannot open /nowhere: No such file");
  expect_words(refusal([] { read_idx("/tmp"); }), "idx: /tmp is not a file");
  expect_words(refusal([] { fashion_mnist("test", "/nowhere"); }),
               "fashion_mnist: there is no /nowhere/t10k-images-idx3-ubyte.gz; install the package "
               "dataset-fashion-mnist or name the folder that has it");
  expect_words(message_of(ErrorKind::value, [] { fashion_mnist("validation"); }),
               "fashion_mnist: there is no split \"validation\"; choose \"train\" or \"test\"");
}

// What a folder with these files as its test set is refused for.
std::string complaint(const std::string& images, const std::string& labels) {
  std::string folder = "/tmp/fornax-idx-XXXXXX";
  EXPECT_TRUE(mkdtemp(folder.data()));
  std::ofstream(folder + "/t10k-images-idx3-ubyte", std::ios::binary) << images;
  std::ofstream(folder + "/t10k-labels-idx1-ubyte", std::ios::binary) << labels;
  const std::string message = message_of(ErrorKind::io, [&] { fashion_mnist("test", folder); });
  std::filesystem::remove_all(folder);
  return message;
}

TEST(FashionMnist, files_that_do_not_match_are_refused) {
  const std::string images = head(8, {2, 1, 3}) + "abcdef", labels = head(8, {2}) + "\1\2";
  expect_words(complaint(images, head(8, {3}) + "\1\2\3"),
               "has pictures u8 [2,1,3] and labels u8 [3], which do not match");
  expect_words(complaint(head(8, {2, 3}) + "abcdef", labels), "has pictures u8 [2,3] and labels");
  expect_words(complaint(head(9, {2, 1, 3}) + "abcdef", labels), "has pictures i8 [2,1,3]");
  expect_words(complaint(head(8, {0, 1, 3}), head(8, {0})), "u8 [0,1,3] and labels u8 [0]");
  expect_words(complaint(images, head(8, {2}) + "\1\12"), "has the label 10; labels are 0 to 9");
}

// Bytes that gzip cannot make smaller.
std::string noise(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) byte = char((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST(Idx, takes_memory_for_what_arrives_not_for_what_is_claimed) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "they take memory of their own";
  const auto peak = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  const std::string bytes = packed(head(8, {1 << 15, 1 << 15}) + noise(1 << 21));
  const auto before = peak();
  EXPECT_SAYS(complaint(bytes), "truncated: it ends within its elements, 1071644672 bytes early");
  EXPECT_LT(peak() - before, 64 << 10);
}

// In a process of its own, which may take 128 MiB more than it has.
[[noreturn]] void read_without_memory(const std::string& path) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * size_t(sysconf(_SC_PAGESIZE)) + (rlim_t(128) << 20);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
  expect_words(message_of(ErrorKind::out_of_memory, [&] { read_idx(path); }),
               "idx: no memory for the 1073741824 bytes of elements of " + path);
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(Idx, more_than_memory_holds_is_an_error) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "they need more than the bound";
  const std::string start = head(8, {1 << 15, 1 << 15}) + noise(1 << 21);
  const File file(packed(start + std::string(size_t(126) << 20, '\0')));
  EXPECT_EXIT(read_without_memory(file.path), testing::ExitedWithCode(0), "");
}

TEST(FashionMnist, whole_test_set) {
  if (!std::filesystem::exists(kFashionMnistFolder))
    GTEST_SKIP() << kFashionMnistFolder << " is not installed";
  const Pictures test = fashion_mnist("test");
  EXPECT_EQ(test.count, 10000);
  EXPECT_EQ(test.pixels.size(), 7840000u);
  std::vector<int> counts(10);
  for (const uint8_t label : test.labels) counts[label]++;
  EXPECT_EQ(counts, std::vector<int>(10, 1000));
  EXPECT_EQ(test.labels[0], 9);  // an ankle boot
}

}  // namespace
}  // namespace fornax::data
