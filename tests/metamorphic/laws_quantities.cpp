// Laws of bytes, rates and times.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tests/metamorphic/law.hpp"

namespace ringsim::metamorphic {

namespace {

template <class Parse>
bool reads(Parse parse, const std::string& text) {
  try {
    parse(text);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Calls the one that fits for each quantity of the scenario; what it returns takes the quantity's place.
struct Rewrite {
  std::function<std::string(Bytes)> size;
  std::function<std::string(Bandwidth)> rate;
  std::function<std::string(Picoseconds)> time;

  void apply(Json& value) const {
    if (value.is_structured())
      for (Json& member : value) apply(member);
    if (!value.is_string()) return;
    const std::string text = value.get<std::string>();
    if (text.empty() || text[0] < '0' || text[0] > '9') return;
    if (reads(parse_bytes, text))
      value = size(parse_bytes(text));
    else if (reads(parse_bandwidth, text))
      value = rate(parse_bandwidth(text));
    else if (reads(parse_time, text))
      value = time(parse_time(text));
  }
};

std::string size_text(std::int64_t bytes) { return fmt::format("{} B", bytes); }
std::string rate_text(std::int64_t bytes_per_second) { return fmt::format("{} B/s", bytes_per_second); }

Json scaled(Json scenario, std::int64_t sizes, std::int64_t rates, std::int64_t rate_divisor, std::int64_t times) {
  Rewrite{.size = [&](Bytes size) { return size_text(size.count * sizes); },
          .rate = [&](Bandwidth rate) { return rate_text(rate.bytes_per_second * rates / rate_divisor); },
          .time = [&](Picoseconds time) { return time_text(time * times); }}
      .apply(scenario);
  return scenario;
}

/// All that has a size, a rate or a time is in the scenario: no figures of presets, protocols and libraries.
bool says_all_figures(const Json& scenario) {
  return scenario.contains("collective") && !scenario.contains("library") &&
         !is_at(scenario, "topology.kind", "cluster") && value_at(scenario, "transport.protocol").is_null() &&
         !is_at(scenario, "network.model", "packet");
}

bool fits_scaled_bytes(Draw& draw, Json& scenario) {
  if (!says_all_figures(scenario)) return false;
  scenario["collective"]["bytes"] =
      is_at(scenario, "collective.op", "barrier") ? "0 B" : size_text(draw.number(0, 20) * even_bytes);
  scenario.erase("jobs");    // whose sizes need not be even
  scenario.erase("faults");  // a message that goes on by another way has whole bytes left
  if (!scenario.contains("transport")) scenario["transport"] = Json::object();
  Json& transport = scenario["transport"];
  transport.erase("chunk");
  if (!transport.contains("staging")) transport["staging"] = {{"size", "512 KiB"}};  // so that it grows as well
  return true;
}

void hold_scaled_bytes(Trial& trial) {
  const std::int64_t c = trial.draw.one_of(std::array{2, 4, 8, 1024});
  Json changed = scaled(trial.scenario, c, c, 1, 1);
  trial.require_same(changed);
}

bool fits_scaled_time(Draw& draw, Json& scenario) {
  make_unshared(draw, scenario);
  return true;
}

/// Rounding: each message's time is rounded up once, before it is multiplied or after; a chain of them is at most as
/// long as there are messages.
void hold_scaled_time(Trial& trial) {
  const std::int64_t c = trial.draw.one_of(std::array{2, 5, 10, 100});
  const Prediction after = trial.run(scaled(trial.scenario, 1, 1, c, c));
  trial.require_near(after.time, trial.before.time * c, Picoseconds{c * trial.before.transfers});
}

bool fits_scaled_even_time(Draw& draw, Json& scenario) {
  make_unshared(draw, scenario);
  scenario["topology"]["link"]["bandwidth"] = draw.one_of(std::array{"1 GB/s", "10 GB/s", "50 GB/s", "100 GB/s"});
  return true;
}

void hold_scaled_even_time(Trial& trial) {
  const std::int64_t c = trial.draw.one_of(std::array{2, 5, 10, 100});
  trial.require_time(trial.run(scaled(trial.scenario, 1, 1, c, c)).time, trial.before.time * c);
}

void hold_other_units(Trial& trial) {
  Json changed = trial.scenario;
  Rewrite{.size =
              [](Bytes size) {
                return size.count % 1024 == 0 ? fmt::format("{}KiB", size.count / 1024) : size_text(size.count);
              },
          .rate = [](Bandwidth rate) { return fmt::format("{} b/s", rate.bytes_per_second * 8); },
          .time = [](Picoseconds time) { return time_text(time); }}
      .apply(changed);
  trial.require(decoded(changed).hash == decoded(trial.scenario).hash, "expected one hash, found two");
  trial.require_same_run(trial.run(changed));
}

bool fits_unshared(Draw& draw, Json& scenario) {
  make_unshared(draw, scenario);
  return true;
}

void hold_faster(Trial& trial) {
  const Bandwidth rate = parse_bandwidth(trial.scenario["topology"]["link"]["bandwidth"].get<std::string>());
  const std::int64_t more = rate.bytes_per_second + trial.draw.number(1, rate.bytes_per_second);
  const Prediction after = trial.run(with(trial.scenario, "topology.link.bandwidth", rate_text(more)));
  trial.require(after.time <= trial.before.time,
                fmt::format("expected at most {}, found {}", trial.before.time.count(), after.time.count()));
}

void hold_latency(Trial& trial) {
  const Picoseconds latency = parse_time(trial.scenario["topology"]["link"]["latency"].get<std::string>());
  const Picoseconds more = Picoseconds{trial.draw.number(1, 5'000'000)};
  const Prediction after = trial.run(with(trial.scenario, "topology.link.latency", time_text(latency + more)));
  // The critical path has at least one message, of two links each, unless nothing moves.
  const Picoseconds least = trial.before.time + more * (trial.before.transfers > 0 ? 2 : 0);
  trial.require(after.time >= least, fmt::format("expected at least {}, found {}", least.count(), after.time.count()));
}

void hold_more_bytes(Trial& trial) {
  const Bytes bytes = parse_bytes(trial.scenario["collective"]["bytes"].get<std::string>());
  const Prediction after =
      trial.run(with(trial.scenario, "collective.bytes", size_text(bytes.count + trial.draw.number(1, 900'000))));
  trial.require(after.time >= trial.before.time,
                fmt::format("expected at least {}, found {}", trial.before.time.count(), after.time.count()));
}

bool fits_launch(Draw& /*draw*/, Json& scenario) {
  make_calm(scenario);
  return is_calm(scenario);
}

void hold_launch(Trial& trial) {
  const Scenario scenario = decoded(trial.scenario);
  const Picoseconds more{trial.draw.number(0, 20'000'000)};
  const Prediction after = trial.run(with(trial.scenario, "transport.launch", time_text(launch_of(scenario) + more)));
  const bool moves = trial.before.request.ranks > 1;
  trial.require_time(after.time, trial.before.time + (moves ? more : Picoseconds{0}));
}

}  // namespace

std::vector<Law> quantity_laws() {
  return {
      {"scaled_bytes",
       "All sizes and all rates times 2, 4, 8 or 1024: the same times. A message takes size / rate, and doubles scale "
       "by "
       "powers of 2 without rounding. The size is one that all cuts divide. Not with protocols, presets and packets, "
       "which have sizes and rates of their own.",
       fits_scaled_bytes, hold_scaled_bytes},
      {"scaled_time",
       "All times times c, all rates divided by c: the time times c, give or take c picoseconds per message, each of "
       "which is rounded up once. Where no rate is shared: there the time is a longest sum.",
       fits_scaled_time, hold_scaled_time},
      {"scaled_even_time", "The same exactly, where a byte takes a whole number of picoseconds.", fits_scaled_even_time,
       hold_scaled_even_time},
      {"other_units", "Quantities in other units (8 b/s for 1 B/s): the same hash, the same run.", always,
       hold_other_units},
      {"faster_link",
       "A faster link never slows a collective that has one message at a time at each port: its time is a longest sum "
       "of "
       "message times. Not where messages share: a faster one takes more from the others (Braess's paradox, in all "
       "models).",
       fits_unshared, hold_faster},
      {"longer_latency", "A longer latency of all links lengthens it by at least that of one message, two links.",
       fits_unshared, hold_latency},
      {"more_bytes",
       "More bytes never take less: no chunk gets smaller, and without sharing the time is a longest sum.",
       fits_unshared, hold_more_bytes},
      {"launch", "A longer launch adds its difference: all ranks launch at once, and nothing happens before.",
       fits_launch, hold_launch},
  };
}

}  // namespace ringsim::metamorphic
