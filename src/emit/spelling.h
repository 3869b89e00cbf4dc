// How a C-like language spells the kernel IR: tables that one emitter (emit/c_like.h) reads.
//
// In a pattern {1} {2} ... stand for the operands, each at most once; {T} for the type of the
// operands (of a conversion: of the result), {S} for that of a conversion's operand, {U} for {T}
// without sign, {f} for the suffix of f32's math functions, {a} for the attribute.  Pure functions
// over constant tables, safe from any thread.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/ir.h"

namespace fornax::c_like {

// A way to say an instruction that is preferred where it is allowed; `vector`: on whole vectors.
enum class Manner : uint8_t { usual, fast, index, vector };

struct CodeRow {
  kernel::Code code;
  Manner manner;
  std::string_view dtypes;  // names between spaces; empty: any
  std::string_view pattern;
};
struct AtomicRow {
  kernel::Atomic how;
  std::string_view dtypes, pattern;  // {1}: pointer, {2}: value
};
struct ConversionRow {
  kernel::Code code;  // cast or bits
  std::string_view from, to, pattern;
};
// A function of the program's text that is there where it is used, found by its name.
struct Helper {
  std::string_view name, text;
};
// The phrases between the expressions.
struct Words {
#define FORNAX_WORD(name, text) std::string_view name = text;
#include "emit/cuda_words.def"
};
struct Spelling {
  std::string_view language;
  std::span<const CodeRow> codes;
  std::span<const AtomicRow> atomics;
  std::span<const ConversionRow> conversions;
  std::span<const Helper> helpers;
  Words words;
};
const Spelling& cuda();

// The pattern of `code` on operands of `dtype`; `manner` where there is one, else the usual one.
// Error(internal): the language has none.
std::string_view pattern_of(const Spelling& spelling, kernel::Code code, DType dtype,
                            Manner manner = Manner::usual);
// The same for whole vectors; empty: each lane is computed by itself.
std::string_view vector_pattern_of(const Spelling& spelling, kernel::Code code, DType dtype);
std::string_view pattern_of(const Spelling& spelling, kernel::Atomic how, DType dtype);
std::string_view conversion_of(const Spelling& spelling, kernel::Code code, DType from, DType to);

// The helpers whose names occur in `text` or in helpers that it uses, in the table's order.
std::vector<const Helper*> helpers_in(const Spelling& spelling, std::string_view text);

// An expression of the program.
struct Expression {
  std::string text;
  bool simple = true;                  // binds at least as tightly as a call
  std::vector<kernel::ValueId> reads;  // variables among what it reads, which may change
};
// `pattern` with its operands, in parentheses where they need them.
struct Names {
  DType type = DType::f32, source = DType::f32;
  std::string attribute;
};
Expression fill(std::string_view pattern, std::span<const Expression> operands, const Names& names);

// The number in a constant's attribute, exactly.
Expression literal(DType dtype, int64_t bits);

}  // namespace fornax::c_like
