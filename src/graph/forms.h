// What verify, the text form and the binary form share.  Functions without state.
#pragma once
#include <fornax/error.h>

#include <string>

#include "graph/graph.h"

namespace fornax {

// Sizes and attributes beyond this are refused in graphs: no sum or product that a type rule forms
// of them leaves 64 bits.
inline constexpr int64_t kLargestNumber = int64_t(1) << 40;

// What keeps the op's typed view (graph/attributes.h) from reading the attributes, in words; empty
// when nothing does.  infer() may be called only after this.
std::string attribute_problem(const Signature& signature);

// Whether the op's attributes say no more than its result's type, so that a form which writes the
// type need not write them; if so, sets them.
bool attributes_from_type(Op op, const Type& type, Attributes& attributes);

// The message of `error` without the call site that throw_error() appended.
std::string reason_of(const Error& error);

// A number as it stands in a text form: true, 3, 3u, 3.0, nan(7ff8000000000001); its kind and bits
// come back.
std::string text_of_scalar(const Scalar& scalar);
bool parse_scalar(std::string_view text, Scalar& out);

// The start of `text`, fit for a message: bytes that do not print become "?".
std::string printable(std::string_view text);

}  // namespace fornax
