// The steps of the interpreter that are not elementwise: control flow, places, warps and aids.
#pragma once
#include "kernel/machine.h"

namespace fornax::kernel {

// Regions under a mask.  begin saves the mask, end restores it; if and else choose the lanes of
// either side; test ends a repetition.
void step_begin(Context& context, const Step& step);
void step_end(Context& context, const Step& step);
void step_if(Context& context, const Step& step);
void step_else(Context& context, const Step& step);
void step_test(Context& context, const Step& step);
void step_jump(Context& context, const Step& step);
// The counter is the step's result: whether it is below the end, and its next value.
Run loop_head(DType dtype);
Run loop_next(DType dtype);
void step_combine(Context& context, const Step& step);

// For what has no meaning here.
void step_refuse(Context& context, const Step& step);

// Of block, thread, iota, barrier, shuffle, assert_ and the like; null for other codes.
Run control_step(Code code);

}  // namespace fornax::kernel
