// IDX files: whole, cut, lying and of other kinds.
#include <fornax/data.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

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
  EXPECT_THROW(read_idx("/tmp"), Error);
  try {
    fashion_mnist("test", "/nowhere");
    FAIL();
  } catch (const Error& error) {
    EXPECT_SAYS(error.what(), "dataset-fashion-mnist");
  }
  EXPECT_THROW(fashion_mnist("validation"), Error);
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
