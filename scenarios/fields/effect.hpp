// Effects of settings: rows of the table ask a run that is over whether a setting changed anything in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/topology/topology.hpp"

namespace ringsim::scenarios {

/// The effect of a setting in a run.
struct Effect {
  std::string setting;  ///< what it says, where its place is not enough: "false (NCCL_PXN_DISABLE=1)"
  std::string idle;     ///< why it changed nothing; empty if it did, or if that is not known
};

/// Cables between two switches of a fabric.
enum class FabricCables : std::uint8_t { all, within_group, between_groups };

/// A run that is over. Each question is answered with true if the answer would take long to find.
class RunFacts {
 public:
  virtual ~RunFacts() = default;
  /// True if data went over such a link of a device itself: of GPUs, else of CPUs and memories.
  virtual bool works_within(bool gpus, LinkKind kind) = 0;
  /// True if any GPU (else CPU or memory) sends to another host.
  virtual bool sends_to_other_host(bool gpus) = 0;
  /// True if a message crosses such a cable.
  virtual bool crosses(FabricCables cables) = 0;
  /// True if a message would take other links with PXN on; and with ACS off.
  virtual bool would_use_pxn() = 0;
  virtual bool is_turned_by_acs() = 0;
  /// True if a message rests in a memory on its way.
  virtual bool stages() = 0;
};

/// One row's question about a run.
struct EffectOf {
  RunFacts& run;
  std::string_view object;  ///< the name of the row's object: "gpu" of `devices.gpu.post`
  const void* members;      ///< the structure that the object's rows fill

  /// Requires the structure of Member::is_of().
  template <class Owner>
  const Owner& of() const {
    return *static_cast<const Owner*>(members);
  }
};

}  // namespace ringsim::scenarios
