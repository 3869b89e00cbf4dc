// All of Fornax's public headers.
#pragma once
#include <fornax/autocast.h>
#include <fornax/data.h>
#include <fornax/device.h>
#include <fornax/grad.h>
#include <fornax/io.h>
#include <fornax/module.h>
#include <fornax/nn.h>
#include <fornax/ops.h>
#include <fornax/optim.h>
#include <fornax/random.h>
#include <fornax/ranked.h>
#include <fornax/tensor.h>
#include <fornax/train.h>

namespace fornax {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace fornax
