// NCCL's environment variables that change nothing here: those that change no time, and those whose effect is not
// modeled. And what other software reads in the same command lines.
#pragma once

#include <span>
#include <string_view>

namespace ringsim::nccl {

/// Source: NVIDIA/nccl docs/userguide/source/env.rst (2.30.7) and every NCCL_PARAM and ncclGetEnv of src/ in the tags
/// v2.8.4-1 to v2.30.7-1; a few of PyTorch, nccl-tests and nccl-rdma-sharp-plugins, whose names begin alike.
struct OtherVariable {
  std::string_view name;
  std::string_view what;  ///< what it sets, as the end of a sentence: "the log"
  /// True for variables that change times in NCCL, which is not modeled.
  bool changes_time = false;
  /// Values at which such a variable changes no time, with commas: "0", "0,1".
  std::string_view idle = "";
  /// What to write instead, as a hint.
  std::string_view instead = "";
};
/// By name. Those that act here are fields of the scenario (scenarios/fields/fields_library.cpp).
std::span<const OtherVariable> other_variables();
const OtherVariable* find_other_variable(std::string_view name);

/// Variables of other software: what their names begin with, and what to do with them.
struct ForeignVariables {
  std::string_view begin, hint;
};
std::span<const ForeignVariables> foreign_variables();

}  // namespace ringsim::nccl
