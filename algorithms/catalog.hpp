// The algorithms in plain sight: what each is called, what it can do, what can be set, and how its schedule is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule.hpp"

namespace ringsim {

/// What is asked of an algorithm.
struct CollectiveRequest {
  CollectiveOp op = CollectiveOp::all_reduce;
  int ranks = 0;           ///< at least 1
  Bytes bytes;             ///< message size, as nccl-tests counts it for the op; any size, 0 too
  Actor root = 0;          ///< broadcast, parameter_server: which rank
  bool both_ways = false;  ///< pairs: the second half sends too
};

/// A setting of an algorithm: a whole number within [min, max], or one of `choices`.
struct Parameter {
  std::string name;
  std::string doc;                   ///< one line: meaning, unit, what the default means
  std::vector<std::string> choices;  ///< not empty: a text parameter; the first is the default
  std::int64_t min = 0, max = 0;     ///< of a number
  std::int64_t fallback = 0;         ///< default of a number; may lie outside [min, max] to mean "not set"
};

struct StoredSchedule;

/// Values of an algorithm's parameters, by name; what is absent takes its default.
struct Arguments {
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, std::string> texts;
  std::shared_ptr<const StoredSchedule> file;  ///< of the algorithm "file" (schedule_file.hpp)
};

struct Algorithm {
  std::string name;     ///< as scenarios spell it
  std::string summary;  ///< one line
  std::string source;   ///< paper or code that it is taken from
  std::vector<CollectiveOp> ops;
  std::vector<Parameter> parameters;
  /// Makes the schedule. Throws InputError (empty `where`) for a request that the algorithm cannot serve.
  /// Requires: request.op is one of `ops`, arguments are within their bounds.
  Schedule (*make)(const CollectiveRequest& request, const Arguments& arguments);
  /// How many helpers (extra endpoints) the schedule needs besides the ranks.
  int (*helpers)(const Arguments& arguments);

  bool supports(CollectiveOp op) const;
};

/// All algorithms, in the order in which `ringsim list algorithms` shows them.
std::span<const Algorithm> algorithms();
/// The one of that name, or nullptr.
const Algorithm* find_algorithm(std::string_view name);

/// The value of a parameter, or its default. Requires that the algorithm has it.
std::int64_t number(const Algorithm& algorithm, const Arguments& arguments, std::string_view parameter);
std::string text(const Algorithm& algorithm, const Arguments& arguments, std::string_view parameter);

}  // namespace ringsim
