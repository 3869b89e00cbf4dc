// The functions that a program in CUDA C++ may need, and the tables of cuda.def.
//
// Conversions follow graph/evaluate.h.  Those that the hardware has are one PTX instruction.
#include "emit/spelling.h"

namespace fornax::c_like {
namespace {

using kernel::Atomic;
using kernel::Code;

constexpr CodeRow kCodes[] = {
#define FORNAX_SPELL(code, manner, dtypes, pattern) {Code::code, Manner::manner, dtypes, pattern},
#include "emit/cuda.def"
};
constexpr AtomicRow kAtomics[] = {
#define FORNAX_SPELL_ATOMIC(how, dtypes, pattern) {Atomic::how, dtypes, pattern},
#include "emit/cuda.def"
};
constexpr ConversionRow kConversions[] = {
#define FORNAX_SPELL_CONVERSION(code, from, to, pattern) {Code::code, from, to, pattern},
#include "emit/cuda.def"
};
constexpr Helper kHelpers[] = {
#define FORNAX_HELPER(name, text) {#name, text},
#include "emit/cuda_helpers.def"
};

constexpr Spelling kCuda = {"cuda", kCodes, kAtomics, kConversions, kHelpers, {}};

}  // namespace

const Spelling& cuda() { return kCuda; }

}  // namespace fornax::c_like
