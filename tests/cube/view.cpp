// The page that shows kernels.
#include "backends/cube/view.h"

#include "kernel/build.h"
#include "kernel/number.h"
#include "tests/cube/anchor.h"

namespace fornax::cube::testing {
namespace {

KernelRecipe recipe(const std::string& key) {
  return {key, [] {
            kernel::Builder k("less",
                              {.dialect = kernel::Dialect::tile, .distributions = {{1, 128, 1}}});
            const kernel::Value y = k.output("y", DType::bool_), i = k.iota(1, 128);
            k.store(y, i, i < 5);
            return k.finish();
          }};
}

TEST(View, ShowsKernelsByTheTimeTheyTook) {
  const std::unique_ptr<Device> device = new_device();
  ViewPage page;
  const auto note = [&](const std::string& key, double milliseconds) {
    const KernelRecipe made = recipe(key);
    page.note(*device, made, *device->program(made)->get(), milliseconds);
  };
  note("quick <a> & b", 0.5);
  note("slow", 0.25);
  note("slow", 0.75);
  const std::string html = page.html();
  EXPECT_NE(html.find("<h2>2 kernels</h2>"), std::string::npos);
  EXPECT_NE(html.find("quick &lt;a&gt; &amp; b"), std::string::npos);
  EXPECT_NE(html.find("2 launches, 1000.0 us in all, 250.0 us the fastest"), std::string::npos);
  EXPECT_LT(html.find(">slow<"), html.find(">quick "));
  EXPECT_NE(html.find("kernel \"less\" tile threads 128"), std::string::npos);
  EXPECT_NE(html.find("kernel \"less\" simt threads 128"), std::string::npos);
  EXPECT_EQ(html.find("<pre></pre>"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);  // nothing else is needed
}

}  // namespace
}  // namespace fornax::cube::testing
