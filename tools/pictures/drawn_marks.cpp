#include "tools/pictures/drawn_marks.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim::tools {

namespace {

std::string state_text(const LinkChange& change) {
  switch (change.to) {
    case LinkChange::To::share:
      return fmt::format("{:.4g} %", static_cast<double>(change.millionths) / 1e4);
    case LinkChange::To::bandwidth:
      return format(change.bandwidth);
    case LinkChange::To::down:
      return "down";
    case LinkChange::To::restored:
      return "restored";
  }
  fail_invariant("a link changes in one of four ways");
}

std::string change_text(const FaultSpec& fault) {
  std::string text = state_text(fault.change);
  if (fault.change.at > SimTime{}) text += " from " + format(fault.change.at.time_since_epoch());
  if (fault.until) text += " until " + format(fault.until->time_since_epoch());
  return text;
}

}  // namespace

std::vector<DrawnMark> drawn_faults(const Topology& topology, const Scenario& scenario) {
  const std::vector<LinkChange> changes = faults_of(topology, scenario);
  std::vector<DrawnMark> faults;
  std::size_t next = 0;  // a fault is a change, and one that restores the link if it has an end
  for (const FaultSpec& fault : scenario.faults) {
    std::string what = change_text(fault);
    faults.push_back({.text = fmt::format("{}: {}", fault.link, what), .what = {}, .links = changes.at(next).links});
    faults.back().what = std::move(what);
    next += fault.until ? 2U : 1U;
  }
  return faults;
}

DrawnMark drawn_bottleneck(CollectiveOp op, const Bound& bound) {
  return {.text = fmt::format("{}, at most {:.4g} GB/s (algbw): {}", to_string(op), bound.algbw, bound.why),
          .what = fmt::format("sets the bound of {}", to_string(op)),
          .links = bound.cut,
          .kind = DrawnMark::Kind::bottleneck};
}

}  // namespace ringsim::tools
