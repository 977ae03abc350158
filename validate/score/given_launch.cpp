#include "validate/score/given_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "validate/score/compare.hpp"

namespace ringsim {

bool GivenLaunch::is_implausible() const { return microseconds(solved - own) > most_more_launch; }

bool GivenLaunch::is_vague() const { return microseconds(own) < telling_share * rows.front().predicted_us; }

std::vector<std::size_t> rows_that_give_launch(std::span<const Bytes> sizes) {
  std::vector<std::size_t> places(sizes.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::erase_if(places, [&](std::size_t i) { return sizes[i] > most_for_launch; });
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
  places.resize(std::min(places.size(), rows_for_launch));
  return places;
}

GivenLaunch solve_launch(std::vector<LaunchRow> rows, Picoseconds own) {
  ensure(!rows.empty(), "a launch is solved from one row or more");
  std::vector<double> missing;
  for (const LaunchRow& row : rows) missing.push_back(row.measured_us - row.predicted_us);
  constexpr double picoseconds_per_us = 1e6;
  const Picoseconds more{std::llround(quantile(std::move(missing), 0.5) * picoseconds_per_us)};
  return {.key = {}, .rows = std::move(rows), .own = own, .solved = own + more};
}

std::string launch_key(const Scenario& scenario) {
  return scenario.library ? "devices.gpu.launch" : "transport.launch";
}

Picoseconds own_launch(const std::string& text, const std::string& name, const std::vector<std::string>& set) {
  const Scenario with = ScenarioFile::parse(text, name, set).point(0);
  std::vector<std::string> off = set;
  off.push_back(launch_key(with) + "=0 us");
  return launch_of(with) - launch_of(ScenarioFile::parse(text, name, off).point(0));
}

GivenLaunch launch_from_table(const std::string& text, const std::string& name, const std::vector<std::string>& set,
                              const MeasuredFile& from, std::optional<int> run, const PredictOptions& options,
                              std::vector<std::string>& warnings) {
  const MeasuredTable table = load_at_measured_sizes(text, name, set, from, run, warnings).measured;
  std::vector<Bytes> sizes;
  for (const MeasuredRow& row : table.rows) sizes.push_back(row.bytes);
  const std::vector<std::size_t> places = rows_that_give_launch(sizes);
  if (places.empty())
    throw InputError(table.file,
                     fmt::format("expected a row of {} or less for fitting the launch, found {} as the smallest",
                                 format(most_for_launch), format(*std::min_element(sizes.begin(), sizes.end()))),
                     "the launch is too small a part of larger messages; start the benchmark at 8 B");
  std::vector<LaunchRow> rows;
  Picoseconds own{0};
  std::string key;
  for (const std::size_t place : places) {
    std::vector<std::string> at = set;
    at.push_back(fmt::format("collective.bytes={} B", sizes[place].count));
    const ScenarioFile file = ScenarioFile::parse(text, name, at);
    if (file.size() != 1)
      throw InputError(name,
                       fmt::format("expected one prediction of {} for fitting the launch to {}, found {}",
                                   format(sizes[place]), table.file, file.size()),
                       "choose one with --set, or let the library choose: --set library=nccl, with null for the keys "
                       "that it replaces, such as collective.algorithm");
    rows.push_back({sizes[place], table.rows[place].time_us, microseconds(predict(file.point(0), options).time)});
    if (rows.size() > 1) continue;
    own = own_launch(text, name, at);
    key = launch_key(file.point(0));
  }
  GivenLaunch given = solve_launch(std::move(rows), own);
  given.key = std::move(key);
  if (given.is_implausible())
    throw InputError(table.file, implausible_text(given),
                     "check that it was measured on the machine of the scenario; `ringsim compare --explain` without "
                     "--launch-from shows other causes");
  for (const std::string& doubt : doubts_of(given)) warnings.push_back(fmt::format("{}: {}", table.file, doubt));
  return given;
}

std::string launch_setting(const std::string& key, Picoseconds launch) {
  return fmt::format("{}={:.6f} us", key, microseconds(launch));
}

std::string sizes_text(std::span<const LaunchRow> rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) text += i + 1 == rows.size() ? " and " : ", ";
    text += format(rows[i].bytes);
  }
  return text;
}

std::vector<std::string> doubts_of(const GivenLaunch& given) {
  std::vector<std::string> doubts;
  if (given.is_negative())
    doubts.push_back(
        fmt::format("{} would need a launch of {:.2f} us, so 0 us is used. The prediction is too slow there even "
                    "without a launch, so something else differs",
                    sizes_text(given.rows), microseconds(given.solved)));
  if (given.is_vague())
    doubts.push_back(
        fmt::format("the launch is only {:.2f} of the {:.2f} us predicted for {}. The difference from the measured "
                    "{:.2f} us may therefore come from the steps, whose number depends on the number of ranks",
                    microseconds(given.own), given.rows.front().predicted_us, format(given.rows.front().bytes),
                    given.rows.front().measured_us));
  return doubts;
}

std::string implausible_text(const GivenLaunch& given) {
  return fmt::format(
      "{} would need a launch of {:.2f} us instead of {:.2f}, but no launch exceeds that of the model by more than "
      "{:.0f} us",
      sizes_text(given.rows), microseconds(given.solved), microseconds(given.own), most_more_launch);
}

}  // namespace ringsim
