// What the instructions take and give, code by code; codes.def says the same in words.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "graph/evaluate.h"
#include "kernel/build.h"
#include "kernel/rules.h"

namespace fornax::kernel {
namespace {

constexpr int64_t kMostShared = int64_t(1) << 24;  // elements

class Rules {
 public:
  Rules(const Kernel& kernel, const Instruction& x) : kernel_(kernel), x_(x) {}

  std::string problem() const;

 private:
  const ValueType& type(size_t operand) const { return kernel_.type(x_.operands[operand]); }
  const ValueType& result() const { return kernel_.type(x_.results[0]); }
  size_t count() const { return x_.operands.size(); }
  int64_t attribute(size_t number) const { return x_.attributes[number]; }

  static bool number(DType d) { return size_of(d) >= 4; }
  static bool whole(DType d) { return number(d) && is_integer(d); }
  static bool floats(DType d) { return d == DType::f32 || d == DType::f64; }
  static bool scalar(const ValueType& t) {
    return t.memory == Memory::none && t.lanes == 1 && !t.tile();
  }
  static bool is_index(DType d) { return d == DType::i32 || d == DType::i64; }

  std::string wants(size_t operand, std::string_view what) const {
    return fmt::format("operand {} is {}, it should be {}", operand + 1, text_of(type(operand)),
                       what);
  }
  std::string gives(const ValueType& wanted) const {
    if (result() == wanted) return "";
    return fmt::format("gives {}, the result is {}", text_of(wanted), text_of(result()));
  }
  std::string attribute_in(size_t number, int64_t least, int64_t most) const {
    if (attribute(number) >= least && attribute(number) <= most) return "";
    return fmt::format("attribute {} is {}, not from {} to {}", number + 1, attribute(number),
                       least, most);
  }

  // Joins the extents of the operands from `first` on into `whole`.
  std::string broadcast(size_t first, ValueType& whole) const;
  std::string elementwise() const;
  std::string takes(DType dtype) const;
  std::string constant() const;
  std::string shared() const;
  std::string memory(size_t operand) const;
  std::string access() const;
  std::string atomic(DType dtype) const;
  std::string mma() const, slices() const;
  std::string control() const;
  std::string loop() const;
  std::string carried(size_t operand, size_t region, size_t parameter) const;
  std::string same_types(const std::vector<ValueId>& values, const std::vector<ValueId>& as,
                         std::string_view what) const;
  std::string combine() const;
  std::string tile() const;
  std::string threads() const;
  std::string aids() const;

  const Kernel& kernel_;
  const Instruction& x_;
};

std::string Rules::broadcast(size_t first, ValueType& whole) const {
  for (size_t i = first; i < count(); i++) {
    const ValueType& t = type(i);
    if (t.memory != Memory::none) return wants(i, "a value");
    if (t.tile() && whole.tile() && t.layout != whole.layout) {
      return fmt::format("distributions {} and {} do not meet", whole.layout, t.layout);
    }
    const auto join = [](auto& a, auto b) {
      const bool fits = a == b || a <= 1 || b <= 1;
      a = std::max(a, b);
      return fits;
    };
    const ValueType before = whole;
    if (!join(whole.rows, t.rows) || !join(whole.columns, t.columns) ||
        !join(whole.lanes, t.lanes)) {
      return wants(i, fmt::format("of extents that fit {}", text_of(before)));
    }
    if (t.tile()) whole.layout = t.layout;
  }
  return "";
}

std::string Rules::takes(DType dtype) const {
  const auto only = [&](bool is, const char* what) {
    return is ? std::string() : fmt::format("is for {}, not {}", what, name_of(dtype));
  };
  switch (x_.code) {
    case Code::add:
    case Code::sub:
    case Code::mul:
    case Code::div:
    case Code::neg:
    case Code::abs:
    case Code::min:
    case Code::max:
    case Code::less:
    case Code::less_equal:
      return only(number(dtype), "f32, f64 and whole numbers of 32 or 64 bits");
    case Code::rem:
    case Code::mul_high:
    case Code::shift_left:
    case Code::shift_right:
      return only(whole(dtype), "whole numbers of 32 or 64 bits");
    case Code::bit_and:
    case Code::bit_or:
    case Code::bit_xor:
    case Code::bit_not:
      return only(whole(dtype) || is_boolean(dtype), "bools and whole numbers of 32 or 64 bits");
    case Code::equal:
    case Code::not_equal:
      return only(number(dtype) || is_boolean(dtype),
                  "bools, f32, f64 and whole numbers of 32 or 64 bits");
    case Code::select:
    case Code::cast:
    case Code::bits:
      return "";
    default:
      return only(floats(dtype), "f32 and f64");
  }
}

std::string Rules::elementwise() const {
  const bool selects = x_.code == Code::select;
  const size_t first = selects ? 1 : 0;
  if (selects && (type(0).memory != Memory::none || type(0).dtype != DType::bool_)) {
    return wants(0, "bool");
  }
  ValueType whole{type(first).dtype};
  if (std::string problem = broadcast(0, whole); !problem.empty()) return problem;
  for (size_t i = first; i < count(); i++) {
    if (type(i).dtype != whole.dtype) return wants(i, name_of(whole.dtype));
  }
  if (std::string problem = takes(whole.dtype); !problem.empty()) return problem;
  switch (x_.code) {
    case Code::equal:
    case Code::not_equal:
    case Code::less:
    case Code::less_equal:
      whole.dtype = DType::bool_;
      break;
    case Code::bits:
      if (size_of(result().dtype) != size_of(whole.dtype)) {
        return fmt::format("{} and {} differ in width", name_of(whole.dtype),
                           name_of(result().dtype));
      }
      [[fallthrough]];
    case Code::cast:
      whole.dtype = result().dtype;
      break;
    default:
      break;
  }
  return gives(whole);
}

std::string Rules::constant() const {
  if (!scalar(result())) return "a constant is one element";
  Word word{uint64_t(attribute(0))};
  round_to(result().dtype, {&word, 1});
  if (int64_t(word.bits) == attribute(0)) return "";
  return fmt::format("{:#x} is no number of {}", uint64_t(attribute(0)), name_of(result().dtype));
}

std::string Rules::shared() const {
  if (std::string problem = attribute_in(0, 1, kMostShared); !problem.empty()) return problem;
  if (attribute(1) < 16 || attribute(1) > 1024 || (attribute(1) & (attribute(1) - 1))) {
    return fmt::format("{} bytes are no alignment: a power of two from 16 to 1024", attribute(1));
  }
  return gives({result().dtype, Memory::shared});
}

// That the operand is memory and the next one an index.
std::string Rules::memory(size_t operand) const {
  if (type(operand).memory != Memory::global && type(operand).memory != Memory::shared) {
    return wants(operand, "memory");
  }
  const ValueType& index = type(operand + 1);
  if (index.memory != Memory::none || !is_index(index.dtype)) {
    return wants(operand + 1, "an index, i32 or i64");
  }
  return "";
}

std::string Rules::atomic(DType dtype) const {
  if (x_.code == Code::compare_exchange) {
    return size_of(dtype) >= 4 ? "" : "is for elements of 32 or 64 bits";
  }
  if (std::string problem = attribute_in(0, 0, int64_t(Atomic::bit_or)); !problem.empty()) {
    return problem;
  }
  if (!number(dtype)) return "is for elements of 32 or 64 bits";
  return Atomic(attribute(0)) == Atomic::bit_or && !whole(dtype) ? "or is for whole numbers" : "";
}

std::string Rules::access() const {
  if (std::string problem = memory(0); !problem.empty()) return problem;
  const DType dtype = type(0).dtype;
  const size_t mask = x_.code == Code::load ? 2 : x_.code == Code::compare_exchange ? 4 : 3;
  ValueType whole{dtype};
  if (std::string problem = broadcast(1, whole); !problem.empty()) return problem;
  for (size_t i = 2; i < count(); i++) {
    const DType wanted = i == mask ? DType::bool_ : dtype;
    if (type(i).dtype != wanted) return wants(i, name_of(wanted));
  }
  if (x_.code != Code::load && type(0).memory == Memory::global &&
      !kernel_.parameters[size_t(x_.operands[0])].written) {
    return fmt::format("{} is not said to be written",
                       kernel_.parameters[size_t(x_.operands[0])].name);
  }
  if (x_.code == Code::store) return "";
  if (x_.code == Code::load && whole.lanes == 1) whole.lanes = result().lanes;
  if (std::string problem = gives(whole); !problem.empty()) return problem;
  return x_.code == Code::load ? "" : atomic(dtype);
}

std::string Rules::mma() const {
  for (const size_t operand : {1, 3}) {
    if (std::string problem = memory(operand); !problem.empty()) return problem;
    if (type(operand).memory != Memory::shared ||
        compute_dtype(type(operand).dtype) != type(0).dtype) {
      return wants(operand, "shared memory of what the sums are computed from");
    }
    if (!scalar(type(operand + 1))) return wants(operand + 1, "one index");
  }
  if (!type(0).tile()) return wants(0, "a tile");
  if (attribute(0) < 1 || attribute(0) > kMostTile) return attribute_in(0, 1, kMostTile);
  if (x_.code == Code::mma) {
    if (std::string problem = slices(); !problem.empty()) return problem;
  }
  return gives(type(0));
}

// A thread has the rows of one slice.
std::string Rules::slices() const {
  const int64_t count = attribute(5), rows = type(0).rows;
  if (count == 1) return "";
  const Distribution& d = kernel_.distributions[type(0).layout];
  if (count < 1 || rows % count != 0 || d.rows * d.row_vector != rows ||
      rows / count % d.row_vector != 0) {
    return fmt::format("has {} slices of {} rows, of which threads hold {}", count, rows,
                       d.row_vector);
  }
  return "";
}

std::string Rules::same_types(const std::vector<ValueId>& values, const std::vector<ValueId>& as,
                              std::string_view what) const {
  if (values.size() != as.size()) {
    return fmt::format("has {} {}, it should have {}", values.size(), what, as.size());
  }
  for (size_t i = 0; i < values.size(); i++) {
    const ValueType &is = kernel_.type(values[i]), &wanted = kernel_.type(as[i]);
    if (wanted.memory != Memory::none) return "memory is carried or chosen";
    if (!(is == wanted)) {
      return fmt::format("number {} of the {} is {}, it should be {}", i + 1, what, text_of(is),
                         text_of(wanted));
    }
  }
  return "";
}

// Operands, parameters of the region and yields of the last region from these numbers on: each as
// the results are.
std::string Rules::carried(size_t operand, size_t region, size_t parameter) const {
  const std::vector<ValueId>& parameters = x_.regions[region].parameters;
  if (parameters.size() < parameter) return "the region has too few parameters";
  const auto from = [](const std::vector<ValueId>& values, size_t first) {
    return std::vector<ValueId>(values.begin() + std::ptrdiff_t(first), values.end());
  };
  std::string problem = same_types(from(x_.operands, operand), x_.results, "carried values");
  if (problem.empty()) problem = same_types(from(parameters, parameter), x_.results, "parameters");
  if (problem.empty()) problem = same_types(x_.regions.back().yields, x_.results, "yields");
  return problem;
}

std::string Rules::loop() const {
  const DType dtype = type(0).dtype;
  const std::vector<ValueId>& parameters = x_.regions[0].parameters;
  for (size_t i = 0; i < 3; i++) {
    if (!scalar(type(i)) || !whole(type(i).dtype)) return wants(i, "one whole number");
    if (type(i).dtype != dtype) return wants(i, name_of(dtype));
  }
  if (parameters.empty() || !(kernel_.type(parameters[0]) == ValueType{dtype})) {
    return fmt::format("the region's first parameter is not the counter, {}", name_of(dtype));
  }
  return carried(3, 0, 1);
}

std::string Rules::control() const {
  const auto is = [&](ValueId value, DType dtype) {
    return kernel_.type(value) == ValueType{dtype};
  };
  if (x_.code == Code::loop) return loop();
  if (x_.code == Code::if_) {
    if (!is(x_.operands[0], DType::bool_)) return wants(0, "one bool");
    for (const Region& region : x_.regions) {
      if (!region.parameters.empty()) return "a side has parameters";
      std::string problem = same_types(region.yields, x_.results, "yields");
      if (!problem.empty()) return problem;
    }
    return "";
  }
  if (x_.code == Code::while_) {
    const std::vector<ValueId>& goes_on = x_.regions[0].yields;
    if (goes_on.size() != 1 || !is(goes_on[0], DType::bool_)) {
      return "the first region should yield one bool";
    }
    if (!x_.regions[1].parameters.empty()) return "the second region has parameters";
    return carried(0, 0, 0);
  }
  if (!is(x_.operands[0], DType::i32)) return wants(0, "one i32");
  if (!x_.regions[0].yields.empty()) return "the first region yields values";
  for (const Region& region : x_.regions) {
    if (region.parameters.size() < 2 || !is(region.parameters[0], DType::i32) ||
        !is(region.parameters[1], DType::i32)) {
      return "a region's first parameters are not the turn and the stage, i32";
    }
  }
  if (x_.regions[0].parameters.size() != 2) return "the first region has more than 2 parameters";
  if (attribute(0) < 1 || attribute(0) > kMostTile) return attribute_in(0, 1, kMostTile);
  return carried(1, 1, 2);
}

std::string Rules::combine() const {
  const Region& region = x_.regions[0];
  if (std::string problem = attribute_in(0, 0, 1); !problem.empty()) return problem;
  if (x_.results.size() != count() || region.yields.size() != count() ||
      region.parameters.size() != 2 * count()) {
    return fmt::format("of {} tiles has {} results, {} parameters and {} yields", count(),
                       x_.results.size(), region.parameters.size(), region.yields.size());
  }
  for (size_t i = 0; i < count(); i++) {
    ValueType whole = type(0);
    whole.dtype = type(i).dtype;
    if (!whole.tile() || !(type(i) == whole)) return wants(i, "a tile of the first one's extents");
    if (x_.code == Code::reduce) (attribute(0) == 0 ? whole.rows : whole.columns) = 1;
    const ValueType element{whole.dtype};
    if (!(kernel_.type(x_.results[i]) == whole)) {
      return fmt::format("result {} is {}, it should be {}", i + 1,
                         text_of(kernel_.type(x_.results[i])), text_of(whole));
    }
    for (const ValueId value :
         {region.parameters[i], region.parameters[count() + i], region.yields[i]}) {
      if (kernel_.type(value) == element) continue;
      return fmt::format("%{} is {}, it should be {}", value, text_of(kernel_.type(value)),
                         text_of(element));
    }
  }
  for (const InstructionId id : region.instructions) {
    const Instruction& inner = kernel_.at(id);
    const auto plain = [&](ValueId value) { return scalar(kernel_.type(value)); };
    if (info(inner.code).effect != Effect::pure || !std::ranges::all_of(inner.operands, plain)) {
      return fmt::format("combines by {}, which is no arithmetic of scalars",
                         info(inner.code).name);
    }
  }
  return "";
}

std::string Rules::tile() const {
  if (x_.code == Code::spread) {
    ValueType whole = result();
    whole.dtype = type(0).dtype;
    if (std::string problem = broadcast(0, whole); !problem.empty()) return problem;
    return result().tile() ? gives(whole) : "gives no tile";
  }
  if (x_.code == Code::part) {
    if (!type(0).tile()) return wants(0, "a tile");
    ValueType wanted = type(0);
    wanted.columns = result().columns;
    const int64_t last = type(0).columns - wanted.columns;
    const int unit = column_unit(kernel_.distributions[wanted.layout]);
    if (std::string problem = attribute_in(0, 0, last); !problem.empty()) return problem;
    if (attribute(0) % unit != 0) return fmt::format("begins at no multiple of {}", unit);
    return gives(wanted);
  }
  if (std::string problem = attribute_in(0, 0, 1); !problem.empty()) return problem;
  const bool straight = (attribute(0) == 0 ? result().columns : result().rows) == 1;
  if (result().dtype == DType::i32 && straight) return "";
  return fmt::format("gives i32 along axis {}, the result is {}", attribute(0), text_of(result()));
}

std::string Rules::threads() const {
  const ValueType& a = type(0);
  if (a.memory != Memory::none) return wants(0, "a value");
  ValueType whole = a;
  switch (x_.code) {
    case Code::extract:
      if (attribute(0) < 0 || attribute(0) >= a.lanes) return attribute_in(0, 0, a.lanes - 1);
      whole.lanes = 1;
      return gives(whole);
    case Code::pack:
      for (size_t i = 0; i < count(); i++) {
        if (!(type(i) == ValueType{a.dtype})) return wants(i, name_of(a.dtype));
      }
      whole.lanes = uint8_t(count());
      return gives(whole);
    case Code::shuffle:
      return type(1) == ValueType{DType::i32} ? gives(a) : wants(1, "one i32");
    case Code::shuffle_xor:
      if (attribute(0) < 0 || attribute(0) > 31) return attribute_in(0, 0, 31);
      return gives(a);
    default:
      return a == ValueType{DType::bool_} ? gives({DType::u32}) : wants(0, "one bool");
  }
}

std::string Rules::aids() const {
  if (x_.code == Code::raw) return x_.results.size() > 1 ? "has more than one result" : "";
  ValueType whole;
  if (std::string problem = broadcast(0, whole); !problem.empty()) return problem;
  if (x_.code == Code::print) return "";
  if (type(0).dtype != DType::bool_) return wants(0, "bool");
  if (count() > 1 && !is_integer(type(1).dtype)) return wants(1, "a whole number");
  return "";
}

std::string Rules::problem() const {
  switch (x_.code) {
    case Code::constant:
      return constant();
    case Code::block:
    case Code::blocks:
      if (attribute(0) < 0 || attribute(0) > 2) return attribute_in(0, 0, 2);
      return gives({DType::i32});
    case Code::thread:
      return gives({DType::i32});
    case Code::shared:
      return shared();
    case Code::load:
    case Code::store:
    case Code::atomic:
    case Code::compare_exchange:
      return access();
    case Code::loop:
    case Code::while_:
    case Code::if_:
    case Code::pipeline:
      return control();
    case Code::mma:
    case Code::mma_boxes:
      return mma();
    case Code::reduce:
    case Code::scan:
      return combine();
    case Code::iota:
    case Code::spread:
    case Code::part:
      return tile();
    case Code::extract:
    case Code::pack:
    case Code::shuffle:
    case Code::shuffle_xor:
    case Code::ballot:
      return threads();
    case Code::assert_:
    case Code::print:
    case Code::raw:
      return aids();
    default:
      return info(x_.code).effect == Effect::pure ? elementwise() : "";
  }
}

}  // namespace

std::string rule_problem(const Kernel& kernel, const Instruction& instruction) {
  return Rules(kernel, instruction).problem();
}

}  // namespace fornax::kernel
