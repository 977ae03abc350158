// How many cables lead up from a switch: shared by leaf-spine and rail.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

namespace {

__extension__ using Wide = __int128;

/// The numbers nearest to `value`, below and above, that work: "2 or 4", or nothing. Tries up to 64 beyond its double.
std::string nearest_that_work(std::int64_t value, const std::function<bool(std::int64_t)>& works) {
  std::string found;
  for (std::int64_t lower = value - 1; lower >= 1; --lower) {
    if (!works(lower)) continue;
    found = std::to_string(lower);
    break;
  }
  for (std::int64_t higher = value + 1; higher <= 2 * value + 64; ++higher) {
    if (!works(higher)) continue;
    return found + (found.empty() ? "" : " or ") + std::to_string(higher);
  }
  return found;
}

/// Both rates that decide, exactly: the sum of the cables below, and what one cable up takes of it.
struct Rates {
  Wide below, each;
  bool whole() const { return below % each == 0; }
  Wide uplinks() const { return below / each; }
};

}  // namespace

Uplinks uplinks_of(const Below& below, const LinkSpec& link, const LinkSpec& uplink, int oversubscription, int spines) {
  require_positive(below.nodes, "/" + below.key);
  require_positive(oversubscription, "/oversubscription");
  if (spines < 0) throw InputError("/spines", fmt::format("expected a count of 0 or more, found {}", spines));
  const auto rates = [&](std::int64_t nodes, std::int64_t ratio) {
    return Rates{Wide{nodes} * below.nics * link.bandwidth.bytes_per_second,
                 Wide{ratio} * uplink.bandwidth.bytes_per_second};
  };
  const auto works = [&](std::int64_t nodes, std::int64_t ratio) {
    const Rates r = rates(nodes, ratio);
    return r.whole() && (spines == 0 || r.uplinks() % spines == 0);
  };
  const auto try_instead = [&] {
    std::string hint;
    const auto offer = [&](const std::string& key, const std::string& choices) {
      if (!choices.empty()) hint += (hint.empty() ? "possible: " : "; or ") + key + " " + choices;
    };
    offer("oversubscription", nearest_that_work(oversubscription, [&](auto n) { return works(below.nodes, n); }));
    offer(below.key, nearest_that_work(below.nodes, [&](auto n) { return works(n, oversubscription); }));
    return hint;
  };

  const Rates asked = rates(below.nodes, oversubscription);
  const double n = static_cast<double>(asked.below) / static_cast<double>(asked.each);
  const std::string sum = fmt::format("{} NICs * {} / ({} * {}) = {:.6g}", std::int64_t{below.nodes} * below.nics,
                                      format(link.bandwidth), oversubscription, format(uplink.bandwidth), n);
  if (!asked.whole()) {
    throw InputError("/oversubscription", "expected a whole number of uplinks per switch, found " + sum, try_instead());
  }
  require_size(n, n);
  const auto count = static_cast<std::size_t>(asked.uplinks());
  if (spines == 0) return {count, 1};
  const auto n_spines = static_cast<std::size_t>(spines);
  if (count % n_spines == 0) return {n_spines, count / n_spines};
  const std::string divisors =
      nearest_that_work(spines, [&](auto s) { return count % static_cast<std::size_t>(s) == 0; });
  const std::string others = try_instead();
  throw InputError(
      "/spines",
      fmt::format("expected a number of spines that divides the uplinks of a switch evenly, found {} spines and {}",
                  spines, sum),
      fmt::format("possible: spines {}{}", divisors, others.empty() ? "" : "; or " + others.substr(10)));
}

void Uplinks::add(NodeId below, std::span<const NodeId> spine_nodes, const LinkSpec& cable,
                  TopologyBuilder& builder) const {
  for (const NodeId spine : spine_nodes) {
    for (std::size_t i = 0; i < per_spine; ++i) builder.add_cable(below, spine, cable);
  }
}

}  // namespace ringsim
