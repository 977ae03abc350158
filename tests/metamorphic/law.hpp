// A law: how a change of a scenario must change its result.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"
#include "tests/metamorphic/random_scenario.hpp"

namespace ringsim::metamorphic {

/// A law that does not hold. what() says what was expected and found.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The law does not cover this scenario; only its run shows that.
class DoesNotApply : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A scenario and its result, to be compared with those of changed ones.
class Trial {
 public:
  /// Predicts the scenario; throws what predict() throws. `draw` must outlive it.
  Trial(Draw& draw, Json scenario);

  Draw& draw;
  const Json scenario;
  const Prediction before;

  /// Predicts a changed scenario. One that is refused is a violation: all changes are legal.
  Prediction run(const Json& changed, const PredictOptions& options = {});
  /// The scenario that was run last.
  const Json& changed() const { return changed_; }

  /// Throws Violation unless `holds`.
  void require(bool holds, const std::string& what) const;
  /// Equal times, starts and messages of all jobs.
  void require_same_times(const Prediction& after) const;
  /// And an equal digest of all messages, with their times and in their order.
  void require_same_run(const Prediction& after) const;
  /// The changed scenario's.
  void require_same(const Json& changed) { require_same_times(run(changed)); }
  void require_time(Picoseconds found, Picoseconds expected) const;
  /// `found` is `expected`, give or take `slack`.
  void require_near(Picoseconds found, Picoseconds expected, Picoseconds slack) const;

 private:
  Json changed_;
};

/// Writes a file of this process and returns its path. They are gone when the program ends, unless keep_files().
std::string file_with(const std::string& name, const std::string& text);
void keep_files();

struct Law {
  std::string_view name;
  std::string_view sentence;  ///< what holds, and why exactly or within which bound
  /// True if the law says something of a scenario; it may change the scenario so that it does.
  bool (*fits)(Draw& draw, Json& scenario);
  void (*holds)(Trial& trial);  ///< throws Violation, DoesNotApply
};

/// All, in the order of the program's table.
const std::vector<Law>& laws();

/// By topic, one file each.
std::vector<Law> quantity_laws();     // laws_quantities.cpp
std::vector<Law> place_laws();        // laws_places.cpp
std::vector<Law> disturbance_laws();  // laws_disturbance.cpp
std::vector<Law> spelling_laws();     // laws_spelling.cpp
std::vector<Law> run_laws();          // laws_runs.cpp
std::vector<Law> schedule_laws();     // laws_schedules.cpp
std::vector<Law> program_laws();      // laws_programs.cpp
std::vector<Law> training_laws();     // laws_training.cpp

// What laws ask of a scenario, and do to it.

Scenario decoded(const Json& scenario);
/// The value at a dotted path; null if there is none.
Json value_at(const Json& scenario, const std::string& path);
bool is_at(const Json& scenario, const std::string& path, const Json& value);
/// The scenario with another value there; objects on the way are made.
Json with(Json scenario, const std::string& path, Json value);
Json without(Json scenario, const std::string& key);
std::string time_text(Picoseconds time);

bool always(Draw& draw, Json& scenario);
bool is_collective(const Json& scenario);  ///< not training, no library
/// One collective without groups, jobs, faults, stragglers and background messages.
bool is_calm(const Json& scenario);
/// Makes it so.
void make_calm(Json& scenario);
bool has_groups(const Json& scenario);
/// Switches that reduce see all switches on their way.
bool uses_switches(const Json& scenario);
/// star, ring, full_mesh, torus: topologies whose GPUs are gpu0, gpu1 ...
bool is_bare(const Json& scenario);
int ranks_of_bare(const Json& topology);
/// A collective whose ports have one message at a time each way, on a star: then no rates are shared, and the time is
/// the longest of sums.
void make_unshared(Draw& draw, Json& scenario);

}  // namespace ringsim::metamorphic
