// The form of instructions, and the types that values may have.
#include <fmt/core.h>

#include <utility>

#include "kernel/rules.h"

namespace fornax::kernel {
namespace {

// How many results (-1: any number), regions and attributes, and whether there is a text.
struct Form {
  int results = 1, regions = 0, attributes = 0;
  bool text = false;
};

Form form_of(Code code) {
  switch (code) {
    case Code::constant:
    case Code::block:
    case Code::blocks:
    case Code::atomic:
    case Code::iota:
    case Code::extract:
    case Code::part:
    case Code::shuffle_xor:
      return {1, 0, 1};
    case Code::loop:
      return {-1, 1, 0};
    case Code::while_:
    case Code::if_:
      return {-1, 2, 0};
    case Code::pipeline:
      return {-1, 2, 1};
    case Code::reduce:
    case Code::scan:
      return {-1, 1, 1};
    case Code::mma:
      return {1, 0, 8};
    case Code::shared:
      return {1, 0, 2};
    case Code::mma_boxes:
      return {1, 0, 3};
    case Code::store:
    case Code::fence:
    case Code::barrier:
    case Code::warp_barrier:
    case Code::deposit:
    case Code::phase_arrive:
    case Code::phase_wait:
    case Code::phase_fence:
    case Code::copy_fence:
    case Code::copy_out:
    case Code::copy_commit:
    case Code::wgmma_fence:
    case Code::wgmma_commit:
    case Code::store_matrix:
      return {0, 0, 0};
    case Code::fetch:
    case Code::group_barrier:
    case Code::phase_init:
    case Code::phase_expect:
    case Code::registers:
      return {0, 0, 1};
    case Code::copy_wait:
      return {0, 0, 2};
    case Code::wgmma:
      return {-1, 0, 3};
    case Code::wgmma_wait:
      return {-1, 0, 1};
    case Code::assert_:
    case Code::print:
      return {0, 0, 0, true};
    case Code::raw:
      return {-1, 0, 0, true};
    default:
      return {};
  }
}

// The least and the most operands of a code that takes a varying number.
std::pair<size_t, size_t> operand_range(Code code) {
  switch (code) {
    case Code::loop:
    case Code::fetch:
    case Code::deposit:
    case Code::copy_out:
      return {3, 1000};
    case Code::load:
      return {2, 4};
    case Code::store:
    case Code::atomic:
      return {3, 4};
    case Code::reduce:
    case Code::scan:
    case Code::pipeline:
      return {1, 1000};
    case Code::pack:
      return {2, 16};
    case Code::assert_:
      return {1, 2};
    case Code::wgmma:
      return {4, 1000};
    default:
      return {0, 1000};
  }
}

// How many rows the threads share out at once.
int row_unit(const Distribution& d) { return d.fragments ? 2 * d.rows : d.rows * d.row_vector; }

}  // namespace

int column_unit(const Distribution& d) { return d.fragments ? 8 : d.columns * d.vector; }

std::string type_problem(const Kernel& kernel, const ValueType& type) {
  if (type.memory != Memory::none) {
    const bool plain = type.lanes == 1 && type.rows == 0 && type.columns == 0 && type.layout == 0;
    return plain ? "" : "memory has neither lanes nor extents";
  }
  if (kernel.dialect == Dialect::simt) {
    if (type.rows != 0 || type.columns != 0 || type.layout != 0) return "simt has no tiles";
    const bool fits = type.lanes >= 1 && type.lanes <= 16 && !(type.lanes & (type.lanes - 1));
    return fits ? "" : fmt::format("{} lanes are not 1, 2, 4, 8 or 16", type.lanes);
  }
  if (type.lanes != 1) return "tile has no vectors";
  if (type.rows == 0 && type.columns == 0) return type.layout == 0 ? "" : "no tile has a layout";
  if (type.rows < 1 || type.columns < 1 || int64_t(type.rows) * type.columns > kMostTile) {
    return fmt::format("a tile has from 1 to {} elements, not {} x {}", kMostTile, type.rows,
                       type.columns);
  }
  if (type.layout >= kernel.distributions.size()) {
    return fmt::format("there is no distribution {}", type.layout);
  }
  const Distribution& d = kernel.distributions[type.layout];
  const int rows = row_unit(d), columns = column_unit(d);
  if ((type.rows == 1 || type.rows % rows == 0) &&
      (type.columns == 1 || type.columns % columns == 0)) {
    return "";
  }
  return fmt::format("{} is not 1 or a multiple of {} rows, and 1 or one of {} columns",
                     text_of(type), rows, columns);
}

std::string form_problem(const Kernel& kernel, const Instruction& x) {
  const CodeInfo& row = info(x.code);
  const auto differs = [](std::string_view what, size_t is, size_t wanted) {
    return fmt::format("has {} {}, it takes {}", is, what, wanted);
  };
  if (row.dialect != Dialect::both && row.dialect != kernel.dialect) {
    return "is of the other dialect";
  }
  const auto [least, most] = row.operands < 0
                                 ? operand_range(x.code)
                                 : std::pair(size_t(row.operands), size_t(row.operands));
  const bool half = x.code == Code::load && x.operands.size() == 3;
  if (x.operands.size() < least || x.operands.size() > most || half) {
    return fmt::format("has {} operands, it takes {}", x.operands.size(),
                       half            ? "2, or 4 with a mask"
                       : least == most ? fmt::format("{}", least)
                                       : fmt::format("from {} to {}", least, most));
  }
  const Form form = form_of(x.code);
  if (form.results >= 0 && x.results.size() != size_t(form.results)) {
    return differs("results", x.results.size(), size_t(form.results));
  }
  if (x.regions.size() != size_t(form.regions)) {
    return differs("regions", x.regions.size(), size_t(form.regions));
  }
  if (x.attributes.size() != size_t(form.attributes)) {
    return differs("attributes", x.attributes.size(), size_t(form.attributes));
  }
  return form.text || x.text.empty() ? "" : "has a text";
}

}  // namespace fornax::kernel
