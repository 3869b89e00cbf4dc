// Safetensors files, sound and broken, by the numbers of the case collection.
#include <fornax/fornax.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sanitizer.h"
#include "tests/errors.h"

namespace fornax {
namespace {

// A file in a folder of its own that goes with the test.
class Place {
 public:
  Place() {
    std::string name = "/tmp/fornax-io-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~Place() { std::filesystem::remove_all(folder_); }
  std::string operator/(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

std::string file_of(const std::string& header, const std::string& data, uint64_t size) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + data;
}
std::string file_of(const std::string& header, const std::string& data = "") {
  return file_of(header, data, header.size());
}

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The message of the Error(io) that opening these bytes throws; "" where it opens.
std::string complaint(const std::string& bytes, io::SafetensorsOptions o = {}) {
  const Place place;
  const std::string path = place / "x.safetensors";
  write_bytes(path, bytes);
  try {
    const io::Safetensors file(path, o);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return error.what();
  }
  return "";
}

std::string tensor_header(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }

#define EXPECT_SAYS(text, words) EXPECT_PRED_FORMAT2(::testing::IsSubstring, words, text)

TEST(Safetensors, C146_duplicate_name_is_named) {
  const std::string one = "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}";
  EXPECT_SAYS(complaint(file_of("{" + one + "," + one + "}", "1234")),
              "of \"a\" has this tensor twice");
}

TEST(Safetensors, C148_header_sizes) {
  EXPECT_SAYS(complaint(file_of("{}", "", uint64_t(1) << 63)),
              "header has 9223372036854775808 bytes");
  EXPECT_SAYS(complaint(file_of("{}", "", 3)), "and 2 follow");
  const std::string large = file_of("{}" + std::string(1000, ' '));
  EXPECT_SAYS(complaint(large, {.header_limit = 1000}), "more than the limit of 1000");
  EXPECT_EQ(complaint(large, {.header_limit = 1002}), "");
  EXPECT_SAYS(complaint("1234567"), "has 7 bytes");
}

struct Broken {
  const char* header;
  size_t data;
  const char* words;
};

TEST(Safetensors, C149_offsets) {
  const Broken cases[] = {
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "\"b\" overlaps \"a\""},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})",
       16, "hole before \"b\""},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "\"a\" ends at byte 8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8,
       "begins at 8 and ends before"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 8, "negative data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 10, "2 bytes are left over"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "needs 12 bytes for f32[3]"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8,
       "size overflows"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})", 8,
       "too large"},
  };
  for (const Broken& broken : cases) {
    const std::string text = complaint(file_of(broken.header, std::string(broken.data, 'x')));
    EXPECT_SAYS(text, broken.words);
  }
  EXPECT_EQ(complaint(file_of(cases[5].header, std::string(10, 'x')), {.allow_trailing = true}),
            "");
}

TEST(Safetensors, C150_empty_and_scalar) {
  const Place place;
  const std::string data("\x00\x00\x80\x3f", 4);
  const std::string header = R"({"e":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
                             R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  write_bytes(place / "a", file_of(header, data));
  const State state = io::read_safetensors(place / "a");
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(find(state, "e")->shape(), (Shape{0, 4}));
  EXPECT_EQ(find(state, "s")->rank(), 0);
  EXPECT_EQ(find(state, "s")->item<float>(), 1.0f);
  io::write_safetensors(place / "b", state);
  const std::string again = read_bytes(place / "b");
  EXPECT_EQ(again.substr(again.size() - 4), data);
  EXPECT_EQ(io::read_safetensors(place / "b").size(), 2u);
}

TEST(Safetensors, C152_not_as_expected) {
  const std::string good_tail = "\"shape\":[],\"data_offsets\":[0,4]";
  const std::pair<std::string, const char*> cases[] = {
      {"[]", "must start with {"},
      {"{\"a\":1}", "of \"a\" needs an object"},
      {tensor_header("\"dtype\":\"F32\",\"data_offsets\":[0,4]"), "lacks the field shape"},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[]"), "lacks the field data_offsets"},
      {tensor_header(good_tail), "lacks the field dtype"},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[\"0\",\"4\"]"),
       "whole numbers"},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0.0,4.0]"), "whole numbers"},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0]"), "not two numbers"},
      {tensor_header("\"dtype\":\"F7\"," + good_tail), "unknown dtype \"F7\""},
      {tensor_header("\"dtype\":3," + good_tail), "dtype that is not a string"},
      {tensor_header("\"dtype\":\"F32\",\"x\":0," + good_tail), "unknown field \"x\""},
      {tensor_header("\"dtype\":\"F32\",\"dtype\":\"F32\"," + good_tail), "dtype twice"},
      {"{\"\xff\xfe\":{}}", "not valid UTF-8"},
      {"{\"\xc0\xaf\":{}}", "not valid UTF-8"},
      {"{\"\xed\xa0\x80\":{}}", "not valid UTF-8"},
      {" {}", "must start with {"},
      {"{} x", "goes on after"},
      {"", "must start with {"},
      {"{\"a\":" + std::string(100000, '['), "of \"a\" needs an object"},
      {"{\"a\":" + std::string(100000, '{'), "name that is not a string"},
      {"{\"__metadata__\":{\"k\":1}}", "has metadata whose value is not a string"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", "has __metadata__ twice"},
      {R"({"__metadata__":{"k":"1","j":"2","k":"1"}})", "has the metadata key \"k\" twice"},
      {R"({"a" {}})", "lacks a colon after a name"},
      {R"({"__metadata__":{})", "has an object that does not end"},
      {tensor_header("\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":3"),
       "has a shape that is not an array"},
      {tensor_header("\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":[1 1]"),
       "has an array that does not end"},
      {tensor_header("\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":[1,1,1,1,1,1,1,1,1]"),
       "has more than 8 axes"},
      {tensor_header("\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":[9223372036854775808]"),
       "has a size that is too large"},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":4"),
       "has data_offsets that are not an array"},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4,8]"), "not two numbers"},
      {"{\"a\nb\":{}}", "has a control character in a string"},
      {"{\"a", "string that does not end"},
  };
  for (const auto& [header, words] : cases) EXPECT_SAYS(complaint(file_of(header, "1234")), words);
  EXPECT_EQ(complaint(file_of("{}   ")), "");
}

TEST(Safetensors, C158_says_what_it_looks_like) {
  EXPECT_SAYS(complaint("PK\x03\x04" + std::string(100, 'x')), "zip archive");
  EXPECT_SAYS(complaint("<!DOCTYPE html><html></html>"), "web page");
  EXPECT_SAYS(complaint("\x80\x02" + std::string(100, 'x')), "a pickle, as old PyTorch files");
  EXPECT_SAYS(complaint("GGUF" + std::string(100, 'x')), "it looks like a GGUF file");
  EXPECT_SAYS(complaint("\x1f\x8b" + std::string(100, 'x')), "compressed by gzip: unpack it first");
  EXPECT_SAYS(complaint("version https://git-lfs.github.com/spec/v1\n"), "git-lfs pointer");
}

TEST(Safetensors, every_cut_of_a_file_is_refused) {
  const std::string whole = file_of(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "abc");
  EXPECT_EQ(complaint(whole), "");
  for (size_t size = 0; size < whole.size(); size++) {
    EXPECT_NE(complaint(whole.substr(0, size)), "") << size;
  }
}

TEST(Safetensors, any_flipped_byte_is_harmless) {
  const std::string whole =
      file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
              R"("b\u00e9":{"dtype":"F32","shape":[1,1],"data_offsets":[3,7]}})",
              "abcdefg");
  for (size_t at = 0; at < whole.size(); at++) {
    for (const int flip : {1, 2, 4, 8, 16, 32, 64, 128}) {
      std::string bytes = whole;
      bytes[at] = char(bytes[at] ^ flip);
      complaint(bytes);
    }
  }
}

TEST(Safetensors, escapes_and_metadata_survive) {
  const Place place;
  const io::Metadata metadata = {{"quote\"d", "back\\slash\n\x01"},
                                 {"\xc3\xa9\xf0\x9f\x94\xa5", ""}};
  io::write_safetensors(place / "a", {{"t\t", ones({2})}}, metadata);
  const io::Safetensors file(place / "a");
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_TRUE(file.contains("t\t"));
  const std::string escaped = R"({"__metadata__":{"\u00e9\ud83d\udd25":"\u0041\u07ff\u20ac\/"}})";
  write_bytes(place / "b", file_of(escaped));
  const io::Metadata want = {{"\xc3\xa9\xf0\x9f\x94\xa5", "A\xdf\xbf\xe2\x82\xac/"}};
  EXPECT_EQ(io::Safetensors(place / "b").metadata(), want);
  EXPECT_SAYS(complaint(file_of(R"({"\ud83d":{}})")), "surrogate");
  EXPECT_SAYS(complaint(file_of(R"({"\x":{}})")), "escape");
}

TEST(Safetensors, every_dtype_comes_back) {
  const Place place;
  State state;
  for (int i = 0; i < kDTypeCount; i++) {
    const DType dtype = DType(i);
    state.push_back({std::string(name_of(dtype)), tensor({0, 1, 1, 0, 1}).cast(dtype)});
  }
  io::write_safetensors(place / "a", state);
  const State back = io::read_safetensors(place / "a");
  ASSERT_EQ(back.size(), state.size());
  for (const NamedTensor& item : state) {
    const Tensor* found = find(back, item.path);
    ASSERT_TRUE(found) << item.path;
    EXPECT_EQ(found->dtype(), item.value.dtype());
    EXPECT_EQ(found->cast(DType::f32).to_vector<float>(), (std::vector<float>{0, 1, 1, 0, 1}));
  }
}

TEST(Safetensors, missing_tensor_names_some_that_exist) {
  const Place place;
  io::write_safetensors(place / "a", {{"weight", ones({2})}});
  const io::Safetensors file(place / "a");
  const auto refusal = [](const auto& work) { return message_of(ErrorKind::io, work); };
  expect_words(refusal([&] { file.read("wieght"); }),
               "has no tensor \"wieght\" among its 1, such as weight");
  expect_words(refusal([&] { io::Safetensors(place / "nothing"); }),
               "safetensors: cannot open " + place / "nothing" + ": No such file");
  expect_words(refusal([] { io::Safetensors("/tmp"); }), "safetensors: /tmp is not a file");
}

// In a process of its own, which may take 64 MiB more than it has.
[[noreturn]] void open_without_memory(const std::string& path) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * size_t(sysconf(_SC_PAGESIZE)) + (rlim_t(64) << 20);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
  expect_words(message_of(ErrorKind::io, [&] { io::Safetensors file(path); }),
               "safetensors: cannot map the 1073741824 bytes of " + path + " to memory");
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(Safetensors, one_that_cannot_be_mapped_is_an_error) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "they need more than the bound";
  const Place place;
  write_bytes(place / "large", "x");
  std::filesystem::resize_file(place / "large", size_t(1) << 30);
  EXPECT_EXIT(open_without_memory(place / "large"), testing::ExitedWithCode(0), "");
}

TEST(Safetensors, writing_refuses_what_could_not_be_read_again) {
  const Place place;
  const auto refusal = [&](const State& state, const io::Metadata& metadata) {
    return message_of(ErrorKind::value,
                      [&] { io::write_safetensors(place / "a", state, metadata); });
  };
  expect_words(refusal({{"a", ones({1})}, {"a", ones({2})}}, {}),
               "safetensors: cannot write two tensors called \"a\"");
  expect_words(refusal({{"__metadata__", ones({1})}}, {}),
               "safetensors: no tensor can be called __metadata__, which is taken");
  expect_words(refusal({{"layer.bias", Tensor()}}, {}),
               "safetensors: cannot write \"layer.bias\": the tensor is undefined");
  expect_words(refusal({}, {{"k", "1"}, {"k", "1"}}),
               "safetensors: cannot write two metadata with the key \"k\"");
  EXPECT_FALSE(std::filesystem::exists(place / "a"));
}

TEST(Files, a_failed_write_leaves_the_old_file_and_no_other) {
  const Place place;
  io::write_file(place / "a", {"old"});
  const auto refusal = [&](const std::string& name) {
    const std::string path = place / name;
    const std::string early = message_of(ErrorKind::io, [&] { io::check_writable(path); });
    const std::string late = message_of(ErrorKind::io, [&] { io::write_file(path, {"new"}); });
    EXPECT_EQ(early.substr(0, early.find(" (at ")), late.substr(0, late.find(" (at ")));
    return late;
  };
  expect_words(refusal("missing/a"), "write_file: cannot create a file beside " +
                                         place / "missing/a" + ": No such file or directory");
  std::filesystem::create_directory(place / "folder");
  expect_words(refusal("folder"), "write_file: " + place / "folder" +
                                      " is not a file that could be replaced; name another path");
  io::check_writable(place / "a");
  io::check_writable(place / "new");
  EXPECT_EQ(read_bytes(place / "a"), "old");
  const auto entries = std::filesystem::directory_iterator(place / "");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2);
}

TEST(Files, a_full_disk_is_told_and_leaves_nothing) {
  const Place place;
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{16, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &little);
  const std::string message =
      message_of(ErrorKind::io, [&] { io::write_file(place / "a", {std::string(100, 'x')}); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  expect_words(message, "write_file: cannot write " + place / "a" + ": File too large");
  EXPECT_TRUE(std::filesystem::is_empty(place / ""));
}

TEST(Files, only_files_are_replaced) {
  const Place place;
  ASSERT_EQ(mkfifo((place / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", place / "null");
  std::filesystem::create_symlink("loop", place / "loop");
  const auto refusal = [&](const std::string& path) {
    return message_of(ErrorKind::io, [&] { io::write_file(path, {"new"}); });
  };
  expect_words(refusal(place / "pipe"), "pipe is not a file that could be replaced");
  expect_words(refusal(place / "null"), "null is not a file that could be replaced");
  expect_words(refusal(place / "loop"), "loop names itself by symbolic links");
  EXPECT_TRUE(std::filesystem::is_fifo(place / "pipe"));
}

TEST(Files, what_a_link_names_is_replaced) {
  const Place place;
  std::filesystem::create_directory(place / "folder");
  std::filesystem::create_symlink("folder/file", place / "link");
  std::filesystem::create_symlink(place / "link", place / "other");
  for (const char* text : {"made", "replaced"}) {
    io::write_file(place / "other", {text});
    EXPECT_EQ(read_bytes(place / "folder/file"), text);
    EXPECT_TRUE(std::filesystem::is_symlink(place / "link"));
    EXPECT_TRUE(std::filesystem::is_symlink(place / "other"));
  }
}

TEST(Files, have_the_permissions_that_the_user_asks_for) {
  const Place place;
  const auto mode = [&] {
    struct stat status = {};
    stat((place / "a").c_str(), &status);
    return status.st_mode & 0777;
  };
  const mode_t before = umask(027);
  io::write_file(place / "a", {"new"});
  umask(before);
  EXPECT_EQ(mode(), 0640u);
  chmod((place / "a").c_str(), 0600);
  io::write_file(place / "a", {"newer"});
  EXPECT_EQ(mode(), 0600u);
}

}  // namespace
}  // namespace fornax
