#include "backends/cube/view.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/settings.h"
#include "emit/emit.h"
#include "kernel/lower.h"

namespace fornax::cube {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kernels</title><style>
body { font: 14px sans-serif; margin: 1em }
summary { cursor: pointer; padding: 4px 0 }
summary b { font-family: monospace }
.sides { display: grid; grid-auto-flow: column; grid-auto-columns: 1fr; gap: 8px }
h3 { margin: 4px 0; font-size: 13px }
pre { overflow: auto; max-height: 75vh; background: #f4f4f4; padding: 8px; margin: 0 }
</style></head><body>
)";

// The file is found to be writable before anything runs.
struct File {
  std::string path = settings().view;
  ViewPage page;
  File() {
    if (!std::ofstream(path, std::ios::app)) {
      fail(ErrorKind::io, "view: {} cannot be written; set FORNAX_VIEW to a file that can", path);
    }
  }
  ~File() {
    std::ofstream out(path, std::ios::trunc);
    if (!(out << page.html())) std::fprintf(stderr, "fornax: %s was not written\n", path.c_str());
  }
};

}  // namespace

void ViewPage::note(const Device& device, const KernelRecipe& recipe,
                    const runtime::Program& program, double milliseconds) {
  std::lock_guard lock(mutex_);
  const auto [entry, first] = kernels_.try_emplace(recipe.key);
  Kernel& noted = entry->second;
  if (first) {
    const kernel::Kernel kernel = recipe.build();
    if (kernel.dialect == kernel::Dialect::tile) noted.tile = kernel::text_of(kernel);
    const kernel::Kernel simt = device.kernel_of(recipe);
    noted.simt = kernel::text_of(simt);
    noted.text = emit(simt, device.capabilities(), {.checked = settings().check}).text;
    noted.device = device.described().description;
    noted.report = program.report;
    noted.fastest = milliseconds;
  }
  noted.launches++;
  noted.milliseconds += milliseconds;
  noted.fastest = std::min(noted.fastest, milliseconds);
}

std::string ViewPage::html() const {
  std::lock_guard lock(mutex_);
  std::vector<const std::pair<const std::string, Kernel>*> order;
  for (const auto& entry : kernels_) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->second.milliseconds > b->second.milliseconds;
  });
  std::string page = kHead;
  page += fmt::format("<h2>{} kernels</h2>\n", order.size());
  for (const auto* entry : order) {
    const Kernel& kernel = entry->second;
    page += fmt::format(
        "<details><summary><b>{}</b><br>{} launches, {:.1f} us in all, {:.1f} us the fastest; {} "
        "registers, {} bytes spilled, {} bytes of shared memory; {}</summary><div class=sides>\n",
        escaped(entry->first), kernel.launches, kernel.milliseconds * 1e3, kernel.fastest * 1e3,
        kernel.report.registers, kernel.report.spilled_bytes, kernel.report.shared_bytes,
        escaped(kernel.device));
    const std::pair<const char*, const std::string&> sides[] = {
        {"tiles", kernel.tile}, {"one thread", kernel.simt}, {"text", kernel.text}};
    for (const auto& [title, text] : sides) {
      if (text.empty()) continue;
      page += fmt::format("<div><h3>{}</h3><pre>{}</pre></div>\n", title, escaped(text));
    }
    page += "</div></details>\n";
  }
  return page + "</body></html>\n";
}

bool wants_view() { return !settings().view.empty(); }

void launch_viewed(Device& device, ComingProgram& coming, FunctionRef<void()> launch) {
  static File file;
  const runtime::Program& program = *coming.get();
  const auto from = device.runtime().mark(device.ordinal());
  launch();
  const auto to = device.runtime().mark(device.ordinal());
  file.page.note(device, coming.recipe(), program, device.runtime().milliseconds(*from, *to));
}

}  // namespace fornax::cube
