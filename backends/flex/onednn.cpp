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

// What is served, and in which pieces.  Where a piece has few rows or columns, or little more than
// 512 of both, the library may read its operands in place, which takes up to twice as long as gemm
// (512 x 512 x 1024: 10.7 ms, where 512 x 640 x 1024 takes 9.2).  These are the shapes for which
// pieces of 512 along the longer side were measured to be faster on one thread, whether operands
// are transposed or not; gemm's time is 1:
//   m 32 to 256, n from 2048, k from 1024     0.5 to 0.9, as gemm packs b for few rows; but 1.3 to
//                                             1.8 where b's rows are whole pages apart, which then
//                                             are in each other's way in the caches
//   m and n from 1024, the longer from 2048   0.7 to 1.0
constexpr int64_t kPieceSide = 512, kMostPieces = 64, kLeastPieces = 4;
constexpr int64_t kFewestRows = 32, kFewRows = 256, kFewRowsDepth = 1024, kPage = 1024;  // floats
constexpr int64_t kLeastSide = 1024, kLeastDepth = 32;
// The library's first product takes 25 to 100 ms, as it compiles its kernels.  A product of less
// work saves less than 0.5 ms.  Waiting until a process has done much work would be kinder to
// short programs, but then the same product would change its bits half way.
constexpr int64_t kLeastWork = int64_t(1) << 27;

// Into how many pieces the result is cut along its longer side.  A cut by thread count would be
// cheaper, but the library may round a piece otherwise than the whole.
int64_t pieces_of(const ProductSize& size) {
  return std::min(std::max(size.m, size.n) / kPieceSide, kMostPieces);
}

struct Part {
  int64_t begin, end;
};
Part part(int64_t side, int64_t piece, int64_t pieces) {
  return {piece * side / pieces, (piece + 1) * side / pieces};
}

bool is_faster(const ProductSize& size, const Operand& b) {
  if (size.k < kLeastDepth || size.m * size.n < kLeastWork / size.k) return false;
  if (pieces_of(size) < kLeastPieces) return false;  // gemm uses more threads
  if (std::min(size.m, size.n) >= kLeastSide) return true;
  return size.m >= kFewestRows && size.m <= kFewRows && size.k >= kFewRowsDepth &&
         (b.op == 'T' || b.row % kPage != 0);
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
  if (a.dtype != DType::f32 || b.dtype != DType::f32) return false;
  const auto left = operand_of(a, size.m, size.k), right = operand_of(b, size.k, size.n);
  return left && right && is_faster(size, *right);
}

bool onednn_product(const OneDnn& library, const ProductSize& size, const Matrix& a,
                    const Matrix& b, float* c) {
  const Operand left = *operand_of(a, size.m, size.k), right = *operand_of(b, size.k, size.n);
  const int64_t pieces = pieces_of(size);
  const bool by_rows = size.m >= size.n;
  std::atomic<bool> worked = true;
  parallel(pieces, 1, [&](int64_t begin, int64_t end) {
    const OneThread one_thread(library);
    for (int64_t piece = begin; piece < end; piece++) {
      const auto [row, end_row] = by_rows ? part(size.m, piece, pieces) : Part{0, size.m};
      const auto [column, end_column] = by_rows ? Part{0, size.n} : part(size.n, piece, pieces);
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
