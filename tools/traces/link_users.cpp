#include "tools/traces/link_users.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/base/quantity.hpp"
#include "tools/pictures/gantt_svg.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/svg.hpp"

namespace ringsim::tools {

namespace {

/// The most users of one direction, and the parts of time: a page of a large machine has hundreds of links.
constexpr std::size_t most_users = 4;
constexpr std::int64_t parts_of_time = 200;

/// "rank 3 (gpu3)" without the device: "rank 3".
std::string without_device(const std::string& actor) { return actor.substr(0, actor.find(" (")); }

/// When a flow was under way, in parts of the run that a picture can show: what is closer is one bar.
std::vector<GanttBar> bars_of(const Recording::Flow& flow, SimTime finish, const std::string& title) {
  const Picoseconds part = finish.time_since_epoch() / parts_of_time;
  std::vector<GanttBar> bars;
  for (const auto& [begin, end] : flow.when) {
    if (!bars.empty() && begin - bars.back().end <= part)
      bars.back().end = std::max(bars.back().end, end);
    else
      bars.push_back({.begin = begin, .end = end, .color = 0, .title = title});
  }
  return bars;
}

}  // namespace

LinkUsers::LinkUsers(const Topology& topology, const Recording& recording, const std::map<LinkId, LinkLoad>& loads,
                     const layout::LinkMarks& marks)
    : topology_(topology), recording_(recording), loads_(loads) {
  if (!recording.flows) return;
  for (std::size_t i = 0; i < recording.flows->size(); ++i)
    for (const LinkId link : (*recording.flows)[i].links) flows_[link].push_back(i);
  for (const layout::PlacedCable& placed : layout::layout_of(topology, marks).cables) add(placed.cable);
}

void LinkUsers::add(const layout::Cable& cable) {
  std::string body;
  for (const auto* links : {&cable.there, &cable.back}) body += direction(*links);
  if (body.empty()) return;
  const std::string anchor = anchor_of(cable);
  anchors_.insert(anchor);
  sections_ += html_choice(anchor, body);
}

std::string LinkUsers::direction(const std::vector<LinkId>& links) const {
  std::set<std::size_t> crossing;
  LinkLoad load;
  for (const LinkId link : links) {
    if (const auto found = flows_.find(link); found != flows_.end())
      crossing.insert(found->second.begin(), found->second.end());
    if (const auto found = loads_.find(link); found != loads_.end()) {
      load.bytes += found->second.bytes;
      load.busy = std::max(load.busy, found->second.busy);
    }
  }
  if (crossing.empty()) return "";
  std::vector<std::size_t> numbers(crossing.begin(), crossing.end());
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return (*recording_.flows)[a].bytes > (*recording_.flows)[b].bytes;
  });
  const std::string name = topology_.link_name(links.front());
  const std::string head =
      fmt::format("{}{}: {}, busy {:.1f} %", name, links.size() > 1 ? fmt::format(" ({} links)", links.size()) : "",
                  format(load.bytes), 100 * load.busy);
  std::vector<GanttLane> lanes;
  for (std::size_t i = 0; i < std::min(numbers.size(), most_users); ++i) {
    const Recording::Flow& flow = (*recording_.flows)[numbers[i]];
    const std::string pair = fmt::format("{} to {}", without_device(flow.from), without_device(flow.to));
    lanes.push_back({pair, bars_of(flow, recording_.finish,
                                   fmt::format("{}: {} message{}, {}", pair, flow.messages,
                                               flow.messages == 1 ? "" : "s", format(flow.bytes)))});
  }
  std::string text = html_paragraph(head) +
                     html_wide_figure("who used " + name, gantt_svg("who used " + name, lanes, {}, recording_.finish));
  if (numbers.size() > most_users)
    text += html_paragraph(fmt::format("{} more pairs sent less data over this link.", numbers.size() - most_users));
  return text;
}

}  // namespace ringsim::tools
