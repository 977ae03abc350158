// The algorithms in plain sight: what each is called, what it can do, what can be set, and how its schedule is made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// What is asked of an algorithm.
struct CollectiveRequest {
  CollectiveOp op = CollectiveOp::all_reduce;
  int ranks = 0;           ///< at least 1
  Bytes bytes;             ///< message size, as nccl-tests counts it for the op; any size, 0 too
  Actor root = 0;          ///< which rank; see Algorithm::takes_root
  bool both_ways = false;  ///< pairs: the second half sends too
  /// How the ranks are laid out, the last number varying fastest: {nodes, GPUs per node} of a cluster, the
  /// dimensions of a torus. Algorithms of several levels use it unless their arguments say otherwise. Empty: not known.
  std::vector<int> grid;
  /// For algorithms in the fabric: the reduction tree, [actor] its parent; ranks first, then switches; -1: the root.
  /// Empty: one switch joins all.
  std::vector<Actor> tree;
  /// Over how many channels, and in pieces of how many bytes at most; see over_channels() (channels.hpp).
  int channels = 1;
  std::optional<Bytes> chunk;
  /// [ring][position] the rank there; channel k takes one after the other. Empty: all channels in the ranks' order.
  std::vector<std::vector<Actor>> orders;
  /// True if input and result are one buffer; not said: as the algorithm is written. See buffers.hpp.
  std::optional<bool> in_place;
};

/// A setting of an algorithm: a whole number within [min, max], one of `choices`, or a text that it reads itself.
struct Parameter {
  std::string name;
  std::string doc;                   ///< one line: meaning, unit, what the default means
  std::vector<std::string> choices;  ///< not empty: a text parameter; the first is the default
  std::string example;               ///< not empty: a free text such as this one; no default
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
  /// A root matters for every op, not only for those that have one: the server, the top of a tree.
  bool rooted = false;
  /// The helpers are no endpoints: they are switches that join the ranks, as CollectiveRequest::tree says. `helpers`
  /// counts those of an empty tree.
  bool in_fabric = false;

  bool supports(CollectiveOp op) const;
  /// `in_fabric`, of a file as it says.
  bool uses_fabric(const Arguments& arguments) const;
  bool takes_root(CollectiveOp op) const { return rooted || has_root(op); }
};

/// All algorithms, in the order in which `ringsim list algorithms` shows them.
std::span<const Algorithm> algorithms();
/// The one of that name, or nullptr.
const Algorithm* find_algorithm(std::string_view name);

/// What is asked for, whole: what the algorithm makes, in the buffers and over the channels of the request. Throws
/// InputError (empty `where`) as `make` does, and where there would be too many pieces.
Schedule make_schedule(const Algorithm& algorithm, const CollectiveRequest& request, const Arguments& arguments);

/// The value of a parameter, or its default (of a free text: empty). Requires that the algorithm has it.
std::int64_t number(const Algorithm& algorithm, const Arguments& arguments, std::string_view parameter);
std::string text(const Algorithm& algorithm, const Arguments& arguments, std::string_view parameter);

/// The grid on which the algorithm takes the ranks to lie: its own `dimensions` or `group`, else the request's grid,
/// else one ring. Throws InputError if that is no grid of all ranks.
std::vector<int> grid_of(const Algorithm& algorithm, const Arguments& arguments, const CollectiveRequest& request);

}  // namespace ringsim
