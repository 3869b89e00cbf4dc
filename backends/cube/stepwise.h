// Elementwise work that runs at once: one kernel reads from memory which steps it has to do, and
// serves while the work's own kernel compiles.  The steps are the same instructions, so the results
// are the same bits; it takes a few times as long.
//
// It does f32, with bools on the way, of few operands.  Objects do not change once prepared;
// running them is safe from several threads at once.
#pragma once
#include <memory>
#include <vector>

#include "backends/cube/elementwise.h"
#include "base/once.h"

namespace fornax::cube {

class Stepwise : public PreparedGroup {
 public:
  ~Stepwise() override;
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;
  bool ready() const { return launch_.ready(); }

 private:
  friend std::unique_ptr<Stepwise> prepare_stepwise(Device&, const Elementwise&);
  Stepwise(Device& device, std::vector<int32_t> words, Launch launch)
      : device_(device), words_(std::move(words)), launch_(std::move(launch)) {}

  Device& device_;
  const std::vector<int32_t> words_;  // of the program
  const Launch launch_;
  mutable Once write_once_;
  mutable runtime::Address program_ = 0;
};

// nullptr where the work is not of that kind.
std::unique_ptr<Stepwise> prepare_stepwise(Device& device, const Elementwise& work);

// `own`, and `stepwise` while the programs of `own` are under way.
class Meanwhile : public PreparedGroup {
 public:
  Meanwhile(std::unique_ptr<LaunchList> own, std::unique_ptr<Stepwise> stepwise)
      : own_(std::move(own)), stepwise_(std::move(stepwise)) {}
  void run(std::span<const Argument> inputs, std::span<const Argument> outputs) const override;

 private:
  const std::unique_ptr<LaunchList> own_;
  const std::unique_ptr<Stepwise> stepwise_;
};

}  // namespace fornax::cube
