// argsort, one line per task.
#pragma once
#include "backends/flex/index.h"

namespace fornax::flex {

std::unique_ptr<Kernel> prepare_argsort(AnchorPlan plan);

}  // namespace fornax::flex
