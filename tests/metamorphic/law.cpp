#include "tests/metamorphic/law.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tests/support/command.hpp"

namespace ringsim::metamorphic {

namespace {

Json::json_pointer pointer_to(const std::string& path) {
  std::string text = "/" + path;
  for (char& c : text)
    if (c == '.') c = '/';
  return Json::json_pointer(text);
}

/// Of all jobs: "job main starts at 0, takes 81 ps, 24 messages".
std::string times_text(const Prediction& prediction) {
  std::string text = fmt::format("job \"{}\" starts at {} ps, takes {} ps, {} messages", prediction.job,
                                 prediction.start.count(), prediction.time.count(), prediction.transfers);
  for (const Prediction& job : prediction.jobs) text += "; " + times_text(job);
  return text;
}

/// Of the files of this process.
class Folder {
 public:
  Folder() : path_(test::fresh_folder("ringsim-metamorphic")) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!keep) std::filesystem::remove_all(path_, ignored);
  }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = path_ / fmt::format("{}-{}", n_++, name);
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw EnvironmentError("a temporary file cannot be written");
    return path.string();
  }

  bool keep = false;

 private:
  std::filesystem::path path_;
  int n_ = 0;
};

Folder& folder() {
  static Folder found;
  return found;
}

}  // namespace

std::string file_with(const std::string& name, const std::string& text) { return folder().write(name, text); }

void keep_files() { folder().keep = true; }

Scenario decoded(const Json& scenario) { return ScenarioFile::parse(json_text(scenario), "s.json").point(0); }

Trial::Trial(Draw& random, Json what)
    : draw(random), scenario(std::move(what)), before(predict(decoded(scenario))), changed_(scenario) {}

Prediction Trial::run(const Json& changed, const PredictOptions& options) {
  changed_ = changed;
  try {
    return predict(decoded(changed), options);
  } catch (const InputError& error) {
    throw Violation(fmt::format("the changed scenario is refused: {}", error.what()));
  }
}

void Trial::require(bool holds, const std::string& what) const {
  if (!holds) throw Violation(what);
}

void Trial::require_same_times(const Prediction& after) const {
  const std::string expected = times_text(before), found = times_text(after);
  require(found == expected, fmt::format("expected {}, found {}", expected, found));
}

void Trial::require_same_run(const Prediction& after) const {
  require_same_times(after);
  require(after.fingerprint == before.fingerprint, "expected equal fingerprints, found others");
}

void Trial::require_time(Picoseconds found, Picoseconds expected) const {
  require_near(found, expected, Picoseconds{0});
}

void Trial::require_near(Picoseconds found, Picoseconds expected, Picoseconds slack) const {
  require(std::abs(found.count() - expected.count()) <= slack.count(),
          fmt::format("expected {} ps{}, found {} ps", expected.count(),
                      slack.count() > 0 ? fmt::format(", give or take {}", slack.count()) : "", found.count()));
}

const std::vector<Law>& laws() {
  static const std::vector<Law> all = [] {
    std::vector<Law> found;
    for (const auto& part : {quantity_laws(), place_laws(), disturbance_laws(), spelling_laws(), run_laws(),
                             schedule_laws(), program_laws(), training_laws()})
      found.insert(found.end(), part.begin(), part.end());
    return found;
  }();
  return all;
}

Json value_at(const Json& scenario, const std::string& path) {
  const auto pointer = pointer_to(path);
  return scenario.contains(pointer) ? scenario.at(pointer) : Json();
}

bool is_at(const Json& scenario, const std::string& path, const Json& value) {
  return value_at(scenario, path) == value;
}

Json with(Json scenario, const std::string& path, Json value) {
  scenario[pointer_to(path)] = std::move(value);
  return scenario;
}

Json without(Json scenario, const std::string& key) {
  scenario.erase(key);
  return scenario;
}

std::string time_text(Picoseconds time) { return fmt::format("{} ps", time.count()); }

bool always(Draw& /*draw*/, Json& /*scenario*/) { return true; }

bool is_collective(const Json& scenario) { return scenario.contains("collective") && !scenario.contains("library"); }

bool has_groups(const Json& scenario) {
  return scenario.contains("collective") &&
         (scenario["collective"].contains("split") || scenario["collective"].contains("groups"));
}

bool is_calm(const Json& scenario) {
  return is_collective(scenario) && !has_groups(scenario) && !scenario.contains("jobs") &&
         !scenario.contains("faults") && !scenario.contains("disturbance");
}

void make_calm(Json& scenario) {
  for (const char* key : {"jobs", "faults", "disturbance"}) scenario.erase(key);
  if (scenario.contains("collective")) scenario["collective"].erase("split");
}

bool uses_switches(const Json& scenario) { return json_text(scenario).find("in_switch") != std::string::npos; }

bool is_bare(const Json& scenario) {
  const Json kind = value_at(scenario, "topology.kind");
  return kind == "star" || kind == "ring" || kind == "full_mesh" || kind == "torus";
}

int ranks_of_bare(const Json& topology) {
  if (topology.contains("ranks")) return topology["ranks"].get<int>();
  int n = 1;
  for (const Json& dimension : topology["dimensions"]) n *= dimension.get<int>();
  return n;
}

void make_unshared(Draw& draw, Json& scenario) {
  const int n = static_cast<int>(draw.number(2, 9));
  struct Kind {
    const char *op, *algorithm;
  };
  // Each rank sends one message at a time, and receives one.
  const Kind kind =
      draw.one_of(std::array{Kind{"all_reduce", "ring"}, Kind{"reduce_scatter", "ring"}, Kind{"all_gather", "ring"},
                             Kind{"all_reduce", "halving_doubling"}, Kind{"all_reduce", "recursive_doubling"},
                             Kind{"all_to_all", "pairwise"}, Kind{"all_gather", "bruck"}, Kind{"broadcast", "chain"}});
  scenario = {
      {"version", 1},
      {"topology", star_of(draw, n)},
      {"collective",
       {{"op", kind.op}, {"algorithm", kind.algorithm}, {"bytes", fmt::format("{} B", draw.number(0, 2'000'000))}}},
      {"network", {{"model", draw.one_of(std::array{"ideal", "fair"})}}}};
}

}  // namespace ringsim::metamorphic
