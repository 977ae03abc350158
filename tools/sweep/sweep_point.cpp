#include "tools/sweep/sweep_point.hpp"

#include <filesystem>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/memory.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"

namespace ringsim::tools {

namespace {

/// Errors name files as the user typed them; a row must not depend on where they lie.
class Placeless {
 public:
  explicit Placeless(const std::string& scenario_path)
      : scenario_(scenario_path), folder_(std::filesystem::path(scenario_path).parent_path().string()) {
    if (!folder_.empty() && folder_ != "/") folder_ += '/';
  }

  /// The JSON pointer in the scenario, whatever set the value there; of another file its name and line.
  std::string where(const std::string& where) const {
    const std::size_t pointer = where.rfind(": /");
    if (pointer != std::string::npos) return where.substr(pointer + 2);
    return where == scenario_ || where.starts_with("--set ") ? "" : text(where);
  }
  std::string text(std::string text) const {
    if (folder_.size() < 2) return text;
    for (std::size_t at = 0; (at = text.find(folder_, at)) != std::string::npos;) {
      const bool begins = at == 0 || std::string_view(" \"'(:").find(text[at - 1]) != std::string_view::npos;
      if (begins)
        text.erase(at, folder_.size());
      else
        ++at;
    }
    return text;
  }

 private:
  std::string scenario_, folder_;
};

}  // namespace

PointOutcome sweep_point(const ScenarioFile& file, const std::string& scenario_path, std::size_t i, Bounds* bounds) {
  PointOutcome outcome;
  const bool bounded = bounds != nullptr;
  const auto failed = [&](const PointError& error) {
    outcome.text = failed_row(file.name(), file.id(i), bounded, error);
  };
  try {
    const Scenario scenario = file.point(i);
    outcome.warnings = scenario.warnings;
    const std::vector<Result> results =
        results_of(scenario, {.stop = &stop_requested, .max_memory = memory_limit()}, bounds);
    const std::vector<std::string>& more = results.front().prediction.warnings;
    outcome.warnings.insert(outcome.warnings.end(), more.begin(), more.end());
    outcome.settings = results.front().prediction.settings;
    outcome.text = sweep_rows(file.name(), {scenario.hash, scenario.varied}, bounded, results);
  } catch (const InputError& error) {
    const Placeless placeless(scenario_path);
    failed({"input", placeless.where(error.where()), placeless.text(error.message()), placeless.text(error.hint())});
  } catch (const InvariantError& error) {
    failed({"law", "", error.what(), "please report it and attach the scenario"});
  } catch (const Interrupted&) {
    outcome.kind = PointOutcome::Kind::stopped;
  } catch (const std::bad_alloc&) {
    outcome.kind = PointOutcome::Kind::no_memory;
  } catch (const std::exception& error) {
    outcome.kind = PointOutcome::Kind::lacking;
    outcome.text = error.what();
  }
  return outcome;
}

std::string packed(const PointOutcome& outcome) {
  nlohmann::json settings = nlohmann::json::array();
  for (const SettingEffect& each : outcome.settings) settings.push_back({each.setting, each.idle});
  return nlohmann::json{static_cast<int>(outcome.kind), outcome.text, outcome.warnings, settings}.dump();
}

PointOutcome unpacked(const std::string& bytes) {
  const nlohmann::json parts = nlohmann::json::parse(bytes);
  PointOutcome outcome{static_cast<PointOutcome::Kind>(parts.at(0).get<int>()),
                       parts.at(1).get<std::string>(),
                       parts.at(2).get<std::vector<std::string>>(),
                       {}};
  for (const nlohmann::json& each : parts.at(3))
    outcome.settings.push_back({each.at(0).get<std::string>(), each.at(1).get<std::string>()});
  return outcome;
}

void sweep_points(const ScenarioFile& file, const std::string& scenario_path, const std::vector<std::size_t>& points,
                  int jobs, const std::function<bool(std::size_t, PointOutcome&&)>& take, Bounds* bounds) {
  std::mutex mutex;
  bool more = true;
  for_each_index(points.size(), jobs, [&](std::size_t i) {
    PointOutcome outcome = sweep_point(file, scenario_path, points[i], bounds);
    const std::lock_guard lock(mutex);
    more = more && take(points[i], std::move(outcome));
    return more;
  });
}

}  // namespace ringsim::tools
