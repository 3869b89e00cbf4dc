// Device "faulty": the reference, but some ops go wrong in ways that a real backend might.
#pragma once

namespace fornax {

// What each op does there:  tan: prepare() throws;  sinh: execute() throws no Error of ours;
// cosh: the device has no memory left;  everything else works.
inline constexpr const char* kFaulty = "faulty";

}  // namespace fornax
