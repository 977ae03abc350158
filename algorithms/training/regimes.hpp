// The ways to train in plain sight: what each is called, what travels, and where computation happens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringsim {

struct Regime {
  enum class Kind : std::uint8_t {
    single,
    data_parallel,
    parameter_server,
    ddp,
    local_sgd,
    gossip,
    model_parallel,
    plan,  ///< `training.parallel` says how: no name for `regime`
    trace  ///< of a real job: likewise
  };
  Kind kind = Kind::single;
  std::string name;      ///< as scenarios spell it
  std::string summary;   ///< one line
  std::string travels;   ///< what is sent, when, and how much of it
  std::string computes;  ///< where computation happens
  std::string source;
};

/// All of them, in the order in which `ringsim list regimes` shows them.
std::span<const Regime> regimes();
/// The regime of a training whose scenario has `parallel` in place of one. Not in regimes().
const Regime& plan_regime();
/// That of a scenario with `trace`. Not in regimes() either.
const Regime& trace_regime();
/// The one of that name, or nullptr.
const Regime* find_regime(std::string_view name);

}  // namespace ringsim
