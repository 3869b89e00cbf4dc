// Mode test: the values of every op on every sample in every form.
//
//   plain    the op alone, run as it is written, against the reference
//   chain    the op between elementwise ops whose results nobody keeps; fused and eager must agree
//   bit
//            by bit, and with plain
#include <fmt/core.h>
#include <fornax/ops.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.h"
#include "base/sanitizer.h"
#include "graph/attributes.h"
#include "tests/ops/compare.h"
#include "tests/ops/modes.h"

namespace fornax::conformance {
namespace {

constexpr int kMostFailures = 3;  // per op, so that one mistake does not bury the others

// A sanitizer makes interpreted kernels ten times as slow, and looks for wrong paths through the
// code, which ops and dtypes share.  There one check in so many is made; each op has other ones.
constexpr int kInterpretedShare = kAddressSanitizer || kThreadSanitizer ? 5 : 1;
static_assert(std::size(kForms) % 5 != 0, "else some forms would never be checked");

// x behind a step that is never run at once, however small x is.
Tensor pending(const Tensor& x) { return x.rank() == 0 ? x : cat({x}); }

// x again, by two ops that undo each other.
Tensor twice_flipped(const Tensor& x) {
  return is_boolean(x.dtype()) ? bitwise_not(bitwise_not(x)) : neg(neg(x));
}

struct Chain {
  Tensor result, after;
};
Chain chain(Op op, const Sample& sample, Form form, Device device) {
  std::vector<Tensor> inputs = make_all(sample, form, 1, device);
  for (Tensor& input : inputs) input = twice_flipped(pending(input));
  Chain values;
  values.result = apply(op, inputs, sample.attributes);
  const Tensor& y = values.result;
  values.after = is_boolean(y.dtype()) ? bitwise_not(y) : y + y;
  return values;
}

class Checker {
 public:
  Checker(Op op, Device device)
      : op_(op),
        device_(device),
        share_(short_name(device) == "interpreter" ? kInterpretedShare : 1) {}

  void run() {
    for (int d = 0; d < kDTypeCount; d++) {
      bool first = true;
      for (const Sample& sample : samples_of(op_, DType(d))) {
        for (Form form : kForms) {
          if (form != Form::contiguous && !first && !is_small(sample)) continue;
          if (failures_ >= kMostFailures) return;
          if ((offered_++ + int(op_)) % share_ != 0) continue;
          check(sample, form);
          made_++;
        }
        first = false;
      }
    }
    if (share_ == 1) return;
    std::printf("%d of %d checks: a sanitizer makes interpreted kernels too slow for all\n", made_,
                offered_);
  }

 private:
  static bool is_small(const Sample& sample) {
    for (const Input& input : sample.inputs) {
      if (input.type.shape.element_count() > 64) return false;
    }
    return true;
  }

  void check(const Sample& sample, Form form) {
    try {
      const std::vector<Tensor> inputs = make_all(sample, form, 1, Device("reference").eager());
      const Host want = read(apply(op_, inputs, sample.attributes));
      const Tolerance tolerance = tolerance_of(op_, sample, inputs);
      const Host plain =
          read(apply(op_, make_all(sample, form, 1, device_.eager()), sample.attributes));
      expect(difference(plain, want, tolerance), sample, form, "against the reference");
      const Chain eager = chain(op_, sample, form, device_.eager());
      const Chain fused = chain(op_, sample, form, device_.fused());
      const Host after = read(eager.after);
      expect(difference(read(fused.after), after), sample, form,
             "fused against eager, what follows");
      expect(difference(read(fused.result), read(eager.result)), sample, form,
             "fused against eager");
      expect(difference(read(eager.result), plain), sample, form, "in a chain against alone");
      Chain dropped = chain(op_, sample, form, device_.fused());
      dropped.result = Tensor();
      expect(difference(read(dropped.after), after), sample, form, "fused with its result dropped");
    } catch (const Error& error) {
      expect(error.what(), sample, form, "throws");
    }
  }

  void expect(const std::optional<std::string>& wrong, const Sample& sample, Form form,
              const char* what) {
    if (!wrong || failures_ >= kMostFailures) return;
    failures_++;
    ADD_FAILURE() << fmt::format("{} {}, {}, {}: {}", info(op_).name, text_of(sample),
                                 name_of(form), what, *wrong);
  }

  const Op op_;
  const Device device_;
  const int share_;
  int offered_ = 0, made_ = 0, failures_ = 0;
};

}  // namespace

void register_values(Device device) {
  for (int i = 0; i < op_count(); i++) {
    const Op op = Op(i);
    add_test("values/" + short_name(device), std::string(info(op).name),
             [op, device] { Checker(op, device).run(); });
  }
}

}  // namespace fornax::conformance
