// Opening oneDNN, and cutting products into pieces that the pool's threads compute with it.
#include "backends/flex/onednn.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>

#include "backends/flex/pool.h"
#include "base/log.h"
#include "base/settings.h"

namespace fornax::flex {
namespace {

constexpr const char* kNames[] = {"libdnnl.so.3", "libdnnl.so.2"};

// What dnnl_version() points to begins with these.
struct Version {
  int major, minor, patch;
};

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool read_functions(void* library, OneDnn& functions) {
  const Version* (*version)() = nullptr;
  // The OpenMP functions are those of the OpenMP library that this one depends on.
  if (!find(library, "dnnl_sgemm", functions.sgemm) || !find(library, "dnnl_version", version) ||
      !find(library, "omp_get_max_threads", functions.threads) ||
      !find(library, "omp_set_num_threads", functions.set_threads)) {
    return false;
  }
  functions.major = version()->major;
  functions.minor = version()->minor;
  return true;
}

// Keeps the library from starting threads while the calling thread is inside it.  The number is the
// thread's own; what the user has set for other OpenMP code comes back.
class OneThread {
 public:
  explicit OneThread(const OneDnn& library) : library_(library), before_(library.threads()) {
    library_.set_threads(1);
  }
  ~OneThread() { library_.set_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const OneDnn& library_;
  const int before_;
};

// A matrix as sgemm wants it: rows one after another, or the same of its transpose.
struct Operand {
  char op;
  int64_t row;
};

std::optional<Operand> operand_of(const Matrix& matrix, int64_t rows, int64_t columns) {
  if (matrix.column == 1 && matrix.row >= columns) return Operand{'N', matrix.row};
  if (matrix.row == 1 && matrix.column >= rows) return Operand{'T', matrix.column};
  return std::nullopt;
}

// Into how many pieces the result is cut along each axis.
struct Cut {
  int64_t rows = 1, columns = 1;
};

// A piece packs its operands anew, which costs some 10 % at 256 rows or columns.  A cut by thread
// count would be cheaper, but the library may round a piece otherwise than the whole.
Cut cut_of(const ProductSize& size) {
  constexpr int64_t kSmallestSide = 256, kMostPieces = 64;
  Cut cut;
  while (cut.rows * cut.columns < kMostPieces) {
    const int64_t height = size.m / cut.rows, width = size.n / cut.columns;
    if (std::max(height, width) < 2 * kSmallestSide) break;
    (height >= width ? cut.rows : cut.columns) *= 2;
  }
  return cut;
}

}  // namespace

std::optional<OneDnn> open_onednn(std::span<const char* const> names) {
  for (const char* name : names) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!library) continue;
    OneDnn functions{};
    if (read_functions(library, functions)) return functions;
    dlclose(library);
  }
  return std::nullopt;
}

const OneDnn* onednn() {
  static const std::optional<OneDnn> library = [] {
    auto found = settings().onednn ? open_onednn(kNames) : std::nullopt;
    if (found) log(1, "flex: oneDNN {}.{} in use for large products", found->major, found->minor);
    return found;
  }();
  return library ? &*library : nullptr;
}

std::string describe_onednn() {
  if (!settings().onednn) return "oneDNN switched off by FORNAX_ONEDNN=0";
  const OneDnn* library = onednn();
  if (!library) return "oneDNN not installed";
  return fmt::format("oneDNN {}.{} in use for large products", library->major, library->minor);
}

bool suits_onednn(const ProductSize& size, const Matrix& a, const Matrix& b) {
  // The library's first product takes 25 to 100 ms, as it compiles its kernels.  A product of the
  // least work saves 0.5 ms or more.  Waiting until a process has done much work would be kinder to
  // short programs, but then the same product would change its bits half way.
  constexpr int64_t kLeastWork = int64_t(1) << 27;
  // With fewer rows gemm, which then reads b in place, is as fast; with fewer pieces it uses more
  // threads.
  constexpr int64_t kLeastSide = 32, kLeastPieces = 4;
  if (a.dtype != DType::f32 || b.dtype != DType::f32) return false;
  if (std::min({size.m, size.n, size.k}) < kLeastSide) return false;
  if (size.m * size.n < kLeastWork / size.k) return false;
  const Cut cut = cut_of(size);
  return cut.rows * cut.columns >= kLeastPieces && operand_of(a, size.m, size.k) &&
         operand_of(b, size.k, size.n);
}

bool onednn_product(const OneDnn& library, const ProductSize& size, const Matrix& a,
                    const Matrix& b, float* c) {
  const Operand left = *operand_of(a, size.m, size.k), right = *operand_of(b, size.k, size.n);
  const Cut cut = cut_of(size);
  std::atomic<bool> worked = true;
  parallel(cut.rows * cut.columns, 1, [&](int64_t begin, int64_t end) {
    const OneThread one_thread(library);
    for (int64_t piece = begin; piece < end; piece++) {
      const int64_t r = piece / cut.columns, s = piece % cut.columns;
      const int64_t row = r * size.m / cut.rows, end_row = (r + 1) * size.m / cut.rows;
      const int64_t column = s * size.n / cut.columns, end_column = (s + 1) * size.n / cut.columns;
      const int status =
          library.sgemm(left.op, right.op, end_row - row, end_column - column, size.k, 1.0f,
                        static_cast<const float*>(a.data) + row * a.row, left.row,
                        static_cast<const float*>(b.data) + column * b.column, right.row, 0.0f,
                        c + row * size.n + column, size.n);
      if (status != 0) worked.store(false, std::memory_order_relaxed);
    }
  });
  return worked.load(std::memory_order_relaxed);
}

}  // namespace fornax::flex
