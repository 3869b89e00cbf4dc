// The text form of kernels, and what verify refuses.
#include "tests/kernel/run.h"

namespace fornax::kernel::testing {
namespace {

constexpr const char* kWhole = R"(kernel "a \"name\"\x0a" simt threads 96 {
  param %0 x : global f32 read align 16
  param %1 y : global f16 write aliased most 1000
  param %2 "n 1" : i32 multiple 4 most 4096
  param %3 m : map bf16 write
  %4 = constant 3 : i32
  %5 = constant nan : f32
  %6 = constant -0.0 : f32
  %7 = constant true : bool
  %8 = constant 7u : u32
  %9 = shared {256,16} : shared f32
  %10 = thread : i32 @ "rows.cpp":31
  %11 = less %10 %2 : bool
  %20 %21 = loop %4 %2 %4 %6 %10 (%12 : i32, %13 : f32, %14 : i32) {
    %15 = load %0 %12 : f32
    %16 = fast exp %15 : f32
    %18 %19 = if %11 {
      %17 = add %16 %13 : f32
      yield %17 %12
    } else {
      yield %13 %14
    } : f32, i32
    yield %18 %19
  } : f32, i32 @ "rows.cpp":35
  %25 = while %21 (%22 : i32) {
    %23 = less %22 %2 : bool
    yield %23
  } then {
    %24 = add %22 %4 : i32
    yield %24
  } : i32
  %26 = pack %20 %5 %20 %5 : f32x4
  %27 = cast %26 : f16x4
  store %1 %25 %27 @ "rows.cpp":40
  %28 = extract {3} %26 : f32
  print %28 "at {}"
  assert %11 %2 "n is {}"
  barrier
}
)";

constexpr const char* kTiles =
    R"(kernel "t" tile threads 128 resident 2 share {4,32,4} share {64,2,1,2} {
  param %0 x : global f32 write
  %1 = iota {0} : i32[128,1]@1
  %2 = load %0 %1 : f32[128,1]@1
  %6 = reduce {0} %2 (%3 : f32, %4 : f32) {
    %5 = max %3 %4 : f32
    yield %5
  } : f32[1,1]@1
  store %0 %1 %6
}
)";

TEST(kernel_text, comes_back) {
  for (const char* text : {kWhole, kTiles}) {
    const Kernel kernel = parse_kernel(text);
    EXPECT_EQ(text_of(kernel), text);
  }
  const Kernel kernel = parse_kernel(kWhole);
  EXPECT_EQ(kernel.name, "a \"name\"\n");
  EXPECT_EQ(kernel.threads, 96);
  EXPECT_EQ(kernel.parameters[1].most, 1000);
  EXPECT_TRUE(kernel.parameters[1].written && kernel.parameters[1].aliased);
  EXPECT_EQ(kernel.parameters[2].name, "n 1");
  EXPECT_EQ(kernel.parameters[2].divisor, 4);
  EXPECT_EQ(kernel.at(6).site.line, 31);
  EXPECT_EQ(parse_kernel(kTiles).distributions[1], (Distribution{64, 2, 1, false, 2}));
}

TEST(kernel_text, numbers_come_back_in_order) {
  const Kernel kernel = parse_kernel(
      "kernel \"k\" simt threads 32 { param %7 n : i32 param %3 x : global i32 write\n"
      "%100 = add %7 %7 : i32 store %3 %7 %100 }");
  EXPECT_EQ(text_of(kernel),
            "kernel \"k\" simt threads 32 {\n"
            "  param %0 n : i32\n"
            "  param %1 x : global i32 write\n"
            "  %2 = add %0 %0 : i32\n"
            "  store %1 %0 %2\n"
            "}\n");
}

struct Wrong {
  const char* line;
  const char* words;
};

// Each as line 5 of a simt kernel, or of a tile kernel.
constexpr const char* kSimt =
    "kernel \"k\" simt threads 64 {\n"
    "  param %0 x : global f32 read\n  param %1 y : global f32 write\n  param %2 n : i32\n";
constexpr const char* kTile =
    "kernel \"k\" tile threads 128 share {4,32,4} share {128,1,1} {\n"
    "  param %0 x : global f32 read\n  param %1 y : global f32 write\n  param %2 n : i32\n";

void expect_wrong(const char* head, std::span<const Wrong> cases) {
  for (const Wrong& c : cases) {
    const std::string message = error_of(
        ErrorKind::value, [&] { (void)parse_kernel(std::string(head) + c.line + "\n}\n"); });
    FORNAX_EXPECT_WORDS(message, "parse_kernel: line 5: ");
    FORNAX_EXPECT_WORDS(message, c.words);
  }
}

TEST(kernel_text, refuses_what_is_malformed) {
  const Wrong cases[] = {
      {"%3 = ad %2 %2 : i32", "no instruction \"ad\""},
      {"%3 = add %2 %9 : i32", "%9 is not defined above"},
      {"%2 = add %2 %2 : i32", "%2 is defined twice"},
      {"%3 = add %2 %2 : i33", "no dtype \"i33\""},
      {"%3 = add %2 %2 i32", "stands where : and the types"},
      {"%3 = constant 3.0 : i32", "3.0 is not a number of i32"},
      {"%3 = constant three : i32", "\"three\" is not a number"},
      {"print \"no end", "a text does not end on its line"},
      {"print \"\\q\"", "a text has \\ before"},
      {"barrier @ \"f\":0", "a line from 1 on"},
      {"barrier {99999999999999999999}", "an attribute is too large"},
      {"%3 = thread : i32 ?", "\"?\" stands where an instruction should"},
  };
  expect_wrong(kSimt, cases);
  const std::string open = error_of(ErrorKind::value, [] { (void)parse_kernel(kSimt); });
  FORNAX_EXPECT_WORDS(open, "the text ends where an instruction should stand");
}

TEST(kernel_verify, simt_rules) {
  const Wrong cases[] = {
      {"%3 = constant 1.0 : f32 %4 = add %3 %2 : f32", "operand 2 is i32, it should be f32"},
      {"%3 = constant 0.1 : f32", "is no number of f32"},
      {"%3 = exp %2 : i32", "is for f32 and f64, not i32"},
      {"%3 = cast %2 : f16 %4 = neg %3 : f16", "is for f32, f64 and whole numbers"},
      {"%3 = constant true : bool %4 = rem %3 %3 : bool", "is for whole numbers of 32 or 64 bits"},
      {"%3 = less %2 %2 : i32", "gives bool, the result is i32"},
      {"%3 = bits %2 : f64", "i32 and f64 differ in width"},
      {"%3 = select %2 %2 %2 : i32", "operand 1 is i32, it should be bool"},
      {"%3 = neg %2 %2 : i32", "has 2 operands, it takes 1"},
      {"neg %2", "has 0 results, it takes 1"},
      {"%3 = neg {1} %2 : i32", "has 1 attributes, it takes 0"},
      {"%3 = neg %2 \"text\" : i32", "has a text"},
      {"%3 = neg %2 { } : i32", "has 1 regions, it takes 0"},
      {"%3 = iota {0} : i32", "is of the other dialect"},
      {"%3 = block {3} : i32", "attribute 1 is 3, not from 0 to 2"},
      {"%3 = load %2 %2 : f32", "operand 1 is i32, it should be memory"},
      {"%3 = constant 1.0 : f32 %4 = load %0 %3 : f32", "it should be an index"},
      {"%3 = load %0 %2 : i32", "gives f32, the result is i32"},
      {"%3 = less %2 %2 : bool %4 = load %0 %2 %3 : f32", "it takes 2, or 4 with a mask"},
      {"%3 = load %0 %2 : f32 store %0 %2 %3", "x is not said to be written"},
      {"store %1 %2 %2", "operand 3 is i32, it should be f32"},
      {"%3 = load %0 %2 : f32 %4 = atomic {4} %1 %2 %3 : f32", "or is for whole numbers"},
      {"%3 = load %0 %2 : f32 %4 = atomic {9} %1 %2 %3 : f32", "not from 0 to 4"},
      {"%3 = shared {0,16} : shared f32", "attribute 1 is 0"},
      {"%3 = shared {9,24} : shared f32", "24 bytes are no alignment"},
      {"if %2 { } else { }", "operand 1 is i32, it should be one bool"},
      {"%3 = less %2 %2 : bool %4 = if %3 { yield %2 } else { } : i32", "has 0 yields"},
      {"%3 = less %2 %2 : bool if %3 { %4 = neg %2 : i32 } else { } %5 = neg %4 : i32",
       "uses %4, which is not defined before it"},
      {"loop %2 %2 %0 (%3 : i32) { }", "operand 3 is global f32, it should be one whole number"},
      {"loop %2 %2 %2 { }", "first parameter is not the counter"},
      {"%3 = loop %2 %2 %2 %2 (%4 : i32, %5 : f32) { yield %5 } : i32",
       "number 1 of the parameters"},
      {"%3 = while %2 (%4 : i32) { yield %4 } then { yield %4 } : i32", "should yield one bool"},
      {"%3 = pack %2 %2 %2 : i32x3", "3 lanes are not 1, 2, 4, 8 or 16"},
      {"%3 = pack %2 %2 : i32x4", "gives i32x2, the result is i32x4"},
      {"%3 = pack %2 %2 : i32x2 %4 = extract {2} %3 : i32", "attribute 1 is 2, not from 0 to 1"},
      {"%3 = shuffle_xor {32} %2 : i32", "not from 0 to 31"},
      {"%3 = ballot %2 : u32", "operand 1 is i32, it should be one bool"},
      {"assert %2", "operand 1 is i32, it should be bool"},
      {"yield %2", "the body yields values"},
  };
  expect_wrong(kSimt, cases);
}

TEST(kernel_verify, tile_rules) {
  const Wrong cases[] = {
      {"%3 = thread : i32", "is of the other dialect"},
      {"%3 = iota {0} : i32[4,128]", "gives i32 along axis 0"},
      {"%3 = iota {0} : i32[64,1] %4 = iota {0} : i32[128,1] %5 = add %3 %4 : i32[128,1]",
       "it should be of extents that fit i32[64,1]"},
      {"%3 = iota {0} : i32[128,1] %4 = iota {0} : i32[128,1]@1 %5 = add %3 %4 : i32[128,1]",
       "distributions 0 and 1 do not meet"},
      {"%3 = iota {0} : i32[128,1] %4 = reduce {1} %3 (%5 : i32, %6 : i32) { yield %5 } : "
       "i32[1,1]",
       "result 1 is i32[1,1], it should be i32[128,1]"},
      {"%3 = iota {0} : i32[128,1] %4 = reduce {0} %3 (%5 : i32, %6 : i32) { %7 = block {0} : i32 "
       "yield %7 } : i32[1,1]",
       "combines by block, which is no arithmetic of scalars"},
      {"%3 = spread %2 : i32", "gives no tile"},
      {"%3 = part {0} %2 : i32[1,128]", "operand 1 is i32, it should be a tile"},
      {"%3 = iota {1} : i32[1,256] %4 = part {64} %3 : i32[1,128]", "begins at no multiple of 128"},
      {"%3 = iota {1} : i32[1,256] %4 = part {256} %3 : i32[1,128]",
       "attribute 1 is 256, not from 0 to 128"},
      {"%3 = iota {1} : i32[1,256] %4 = part {128} %3 : f32[1,128]",
       "gives i32[1,128], the result is f32[1,128]"},
  };
  expect_wrong(kTile, cases);
}

TEST(kernel_verify, kernels_as_a_whole) {
  const Wrong cases[] = {
      {"kernel \"k\" simt threads 2000 { }", "2000 threads are not from 1 to 1024"},
      {"kernel \"k\" tile threads 32 { }", "tile kernels have distributions"},
      {"kernel \"k\" tile threads 64 share {4,8,1} { }", "4 x 8 threads share out tiles"},
      {"kernel \"k\" tile threads 32 share {4,8,4} { %0 = iota {1} : i32[1,48] }",
       "i32[1,48] is not 1 or a multiple of 4 rows, and 1 or one of 32 columns"},
      {"kernel \"k\" simt threads 32 { param %0 n : i32 multiple 0 }", "below its least number"},
      {"kernel \"k\" simt threads 32 { param %0 n : i32x2 }", "neither a buffer nor a number"},
  };
  for (const Wrong& c : cases) {
    const std::string message = error_of(ErrorKind::value, [&] { (void)parse_kernel(c.line); });
    FORNAX_EXPECT_WORDS(message, c.words);
  }
}

TEST(kernel_verify, names_the_instruction) {
  std::string text = kSimt;
  text += "%3 = add %2 %2 : i32 @ \"f.cpp\":7 }";
  Kernel kernel = parse_kernel(text);
  kernel.instructions[0].operands = {2, 3};
  EXPECT_EQ(error_of(ErrorKind::internal, [&] { verify(kernel); }),
            "verify: kernel k: `%3 = add %2 %3 : i32 @ \"f.cpp\":7`: uses %3, which is not defined "
            "before it");
  kernel.instructions[0].operands = {2, 2};
  verify(kernel);
  kernel.body.instructions = {0, 0};
  FORNAX_EXPECT_WORDS(error_of(ErrorKind::internal, [&] { verify(kernel); }), "in two places");
}

}  // namespace
}  // namespace fornax::kernel::testing
