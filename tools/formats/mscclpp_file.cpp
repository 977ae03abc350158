#include "tools/formats/mscclpp_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "algorithms/formats/mscclpp_export.hpp"
#include "algorithms/formats/mscclpp_import.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/topology/routes.hpp"
#include "tools/output/output.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "validate/analysis/synthesize.hpp"

namespace ringsim::tools {

namespace {

void require_reach(const Scenario& scenario, const StoredSchedule& stored) {
  const Setup setup = set_up(scenario, &stop_requested);
  const std::vector<NodeId>& ranks = setup.collectives.front().ranks;
  Routes routes(setup.topology, scenario.transport, setup.routing);
  std::set<std::pair<Actor, Actor>> seen;
  for (std::size_t i = 0; i < stored.steps.size(); ++i) {
    const auto from = static_cast<Actor>(i / static_cast<std::size_t>(stored.lanes));
    for (const Step& step : stored.steps[i])
      for (const Op& op : step.ops) {
        if (op.what != Do::send || from >= stored.ranks || op.peer >= stored.ranks) continue;
        if (!seen.insert({from, op.peer}).second) continue;
        const NodeId a = ranks[static_cast<std::size_t>(from)], b = ranks[static_cast<std::size_t>(op.peer)];
        if (routes.find(a, b).type != PathType::net) continue;
        throw InputError(
            "",
            fmt::format("an MSCCL++ plan of memory channels cannot represent {}: it sends from {} to {} through NICs, "
                        "but these channels reach only GPUs that can map each other's memory",
                        stored.name, setup.topology.node(a).name, setup.topology.node(b).name),
            "use a single host: --set topology.nodes=1");
      }
  }
}

/// The scenario with the nearest message size that MSCCL++ takes: a multiple of 16 bytes per chunk, as large as the
/// plan says at most. Warns if that is another one.
Scenario at_a_size_of(const StoredSchedule& plan, Scenario scenario) {
  int chunks = 1;
  for (const Buffer buffer : {Buffer::data, Buffer::input, Buffer::output})
    chunks = std::max(chunks, plan.grids[static_cast<std::size_t>(buffer)].chunks);
  const std::int64_t unit = std::int64_t{16} * chunks, most = plan.max_bytes / unit * unit;
  std::int64_t& bytes = scenario.jobs.front().request.bytes.count;
  const std::int64_t fitting = std::clamp(bytes / unit * unit, std::min(unit, most), most);
  if (fitting != bytes)
    Warnings().say({fmt::format(
        "with this plan, MSCCL++ supports multiples of {} bytes up to {}, but not {}; the plan is timed at {} bytes",
        unit, most, format(scenario.main().request.bytes), fitting)});
  bytes = fitting;
  return scenario;
}

}  // namespace

std::string mscclpp_of(const Scenario& asked, const StoredSchedule& stored) {
  require_reach(asked, stored);
  std::string text = export_mscclpp(stored);
  const auto plan = std::make_shared<StoredSchedule>(import_mscclpp(text, "plan"));
  const Scenario scenario = at_a_size_of(*plan, asked);
  const auto time_of = [&](std::shared_ptr<const StoredSchedule> each) {
    return predict(with_schedule(scenario, std::move(each)), {.stop = &stop_requested}).time;
  };
  const std::string size = format(scenario.main().request.bytes);
  const Picoseconds schedule = time_of(std::make_shared<StoredSchedule>(stored)), read_back = time_of(plan);
  if (schedule == read_back) {
    say(fmt::format("ringsim: after reading it back, the plan takes the same time, {:.3f} us for {}\n",
                    static_cast<double>(schedule.count()) / 1e6, size));
    return text;
  }
  say(fmt::format(
      "ringsim: after reading it back, the plan takes {:.3f} us for {}, {:.3f} times the {:.3f} us of the schedule, "
      "because a plan serializes additions to one chunk and messages of one step on one connection\n",
      static_cast<double>(read_back.count()) / 1e6, size,
      static_cast<double>(read_back.count()) / static_cast<double>(schedule.count()),
      static_cast<double>(schedule.count()) / 1e6));
  return text;
}

}  // namespace ringsim::tools
