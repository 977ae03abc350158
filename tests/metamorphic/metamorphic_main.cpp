// Holds the simulator to laws over random scenarios.
//
//     ringsim_metamorphic [--runs N] [--seed S] [--law NAME] [--limit SECONDS] [--verbose] [--list]
//
// Run i has the seed S + i, from which its scenario and all else is drawn; without --law the laws take turns. Prints
// how often each law was applied. A run that takes more than SECONDS of processor time (default 300) ends the program;
// it and a crash print the run's seed and scenario. --verbose prints each run to stderr before it begins. Exit code: 0
// if all laws held; 1 if one did not, was never applied, or took too long; 2 for a wrong command line.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/metamorphic/law.hpp"
#include "tests/metamorphic/watch.hpp"

namespace ringsim::metamorphic {

namespace {

struct Arguments {
  std::int64_t runs = 500, seed = 1;
  std::int64_t limit = 300;  ///< seconds of processor time per run
  std::string law;           ///< empty: all
  bool list = false, verbose = false;
};

struct Count {
  std::int64_t applied = 0, passed_over = 0, refused = 0, violated = 0;
};

/// Scenarios that are drawn for one run until the law fits one.
constexpr int most_draws = 3000;

void print_violation(const Law& law, std::uint64_t seed, const std::vector<Json>& scenarios, const std::string& what) {
  fmt::print("\nseed {}: {} does not hold: {}\n  {}\n", seed, law.name, law.sentence, what);
  keep_files();
  for (const Json& scenario : scenarios)
    fmt::print("  {}\n", file_with(fmt::format("{}-{}.json", law.name, seed), json_text(scenario, 2) + '\n'));
  fmt::print("  again: ringsim_metamorphic --runs 1 --seed {} --law {}\n", seed, law.name);
}

/// True if the law was applied to that scenario.
bool apply(const Law& law, std::uint64_t seed, Draw& draw, const Json& scenario, Count& count) {
  std::optional<Trial> trial;
  scenario_begins(json_text(scenario));
  try {
    trial.emplace(draw, scenario);
    law.holds(*trial);
  } catch (const DoesNotApply&) {
    ++count.passed_over;
    return false;
  } catch (const std::exception& error) {
    if (!trial && dynamic_cast<const InputError*>(&error) != nullptr) {
      ++count.refused;
      return false;
    }
    ++count.violated;
    print_violation(law, seed, trial ? std::vector{scenario, trial->changed()} : std::vector{scenario}, error.what());
  }
  ++count.applied;
  return true;
}

void run_once(const Law& law, std::uint64_t seed, Count& count) {
  run_begins(seed, law.name);
  Draw draw(seed);
  for (int i = 0; i < most_draws; ++i) {
    Json scenario = random_scenario(draw);
    if (!law.fits(draw, scenario))
      ++count.passed_over;
    else if (apply(law, seed, draw, scenario, count))
      return;
  }
}

// For the tests of this program: laws that --list does not show.
void hold_wrong(Trial& trial) { trial.require_time(trial.before.time, trial.before.time + Picoseconds{1}); }
void hold_endless(Trial& /*trial*/) {
  volatile bool goes_on = true;
  while (goes_on) {
  }
}
void hold_crash(Trial& /*trial*/) { std::abort(); }
constexpr Law laws_of_tests[] = {{"wrong", "A run takes a picosecond longer than it takes.", always, hold_wrong},
                                 {"endless", "A run that does not end.", always, hold_endless},
                                 {"crash", "A run that crashes.", always, hold_crash}};

std::vector<Law> chosen(const std::string& name) {
  for (const Law& law : laws_of_tests)
    if (law.name == name) return {law};
  if (name.empty()) return laws();
  for (const Law& law : laws())
    if (law.name == name) return {law};
  return {};
}

int run_all(const Arguments& arguments) {
  const std::vector<Law> chosen_laws = chosen(arguments.law);
  if (chosen_laws.empty()) {
    fmt::print(stderr, "ringsim_metamorphic: error: expected a law that --list shows, found \"{}\"\n", arguments.law);
    return 2;
  }
  std::vector<Count> counts(chosen_laws.size());
  watch_runs(arguments.limit);
  for (std::int64_t i = 0; i < arguments.runs; ++i) {
    const auto seed = static_cast<std::uint64_t>(arguments.seed + i);
    const std::uint64_t law = seed % counts.size();
    if (arguments.verbose) fmt::print(stderr, "seed {}: {}\n", seed, chosen_laws[law].name);
    run_once(chosen_laws[law], seed, counts[law]);
  }
  Count all;
  bool good = true;
  fmt::print("{:<20} {:>8} {:>12} {:>8} {:>9}\n", "law", "applied", "passed over", "refused", "violated");
  for (std::size_t l = 0; l < counts.size(); ++l) {
    const Count& count = counts[l];
    fmt::print("{:<20} {:>8} {:>12} {:>8} {:>9}\n", chosen_laws[l].name, count.applied, count.passed_over,
               count.refused, count.violated);
    all.applied += count.applied;
    all.violated += count.violated;
    good =
        good && count.violated == 0 && (count.applied > 0 || arguments.runs < static_cast<std::int64_t>(counts.size()));
  }
  fmt::print("{} laws, {} runs, {} violations; seeds {} to {}\n", counts.size(), all.applied, all.violated,
             arguments.seed, arguments.seed + arguments.runs - 1);
  return good && all.applied == arguments.runs ? 0 : 1;
}

bool read_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

/// Returns nothing if an argument is unknown.
std::optional<Arguments> read(const std::vector<std::string>& words) {
  Arguments found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--list" || words[i] == "--verbose") {
      (words[i] == "--list" ? found.list : found.verbose) = true;
      continue;
    }
    if (i + 1 == words.size()) return std::nullopt;
    const std::string &word = words[i], &value = words[++i];
    std::int64_t* const number = word == "--runs"    ? &found.runs
                                 : word == "--seed"  ? &found.seed
                                 : word == "--limit" ? &found.limit
                                                     : nullptr;
    if (word == "--law")
      found.law = value;
    else if (number == nullptr || !read_number(value, *number))
      return std::nullopt;
  }
  return found;
}

}  // namespace

}  // namespace ringsim::metamorphic

int main(int argc, char** argv) {
  using namespace ringsim::metamorphic;
  const auto arguments = read({argv + 1, argv + argc});
  if (!arguments) {
    fmt::print(
        stderr,
        "usage: ringsim_metamorphic [--runs N] [--seed S] [--law NAME] [--limit SECONDS] [--verbose] [--list]\n");
    return 2;
  }
  if (!arguments->list) return run_all(*arguments);
  for (const Law& law : laws()) fmt::print("{}: {}\n", law.name, law.sentence);
  return 0;
}
