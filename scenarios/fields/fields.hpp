// The scenario as a table: every key with its type, bounds, default and meaning. Decoder, canonical form, expansion and
// JSON Schema all read this one table, so that they cannot drift apart.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringsim::scenarios {

enum class Type : std::uint8_t {
  text,
  file,  ///< the name of a file, relative to the scenario's folder
  boolean,
  whole,    ///< a whole number
  size,     ///< "64 MiB"
  rate,     ///< "25 GB/s"
  time,     ///< "1.3 us"
  factor,   ///< a number such as 0.9; canonical: in millionths
  portion,  ///< "25%" of what there is, or a rate; canonical: {"millionths": 250000}, or bytes per second
  object,   ///< keys: `members`
  variant,  ///< an object whose key `discriminator` says which of `variants` the other keys belong to
  list,     ///< of `members[0]`; a value in itself, so it does not vary
  ignored,  ///< any text, or, with `digits`, a whole number; not looked at
  sweep,    ///< dotted paths and the values that replace those there
};

struct Field {
  std::string name;
  Type type = Type::text;
  std::string doc;
  bool required = false;
  std::string fallback = {};  ///< default as the user would write it, without quotes; empty: none
  std::int64_t min = 0;  ///< whole, size: smallest value; factor: the same in millionths; text: shortest; list: fewest
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::vector<std::string> choices = {};                          ///< of a text: nothing else is accepted
  std::vector<std::pair<std::string, std::string>> aliases = {};  ///< read as a choice: {"allreduce", "all_reduce"}
  /// Of a text: names that are refused with a reason in place of the nearest choice, {"rccl", "RCCL's rules ..."}.
  std::vector<std::pair<std::string, std::string>> not_modelled = {};
  std::string list = {};  ///< "algorithms": `ringsim list` shows the choices, for they are too many for a message
  std::vector<std::string> examples = {};  ///< as JSON text
  std::vector<Field> members = {};
  std::string discriminator = {};  ///< of a variant: "kind", "name"
  std::string implied_by =
      {};                  ///< of an object among variants: the key that tells it where the discriminator is absent
  bool shorthand = false;  ///< of a variant: the discriminator's text alone is accepted too
  std::vector<Field> variants = {};  ///< objects; their names are the discriminator's values
  bool varies = true;                ///< a list or range of values is accepted where one is expected
  bool unique = false;               ///< of a list: each element once
  bool digits = false;               ///< of a text: a whole number is read as its digits
  bool only_said = false;            ///< the default is not filled in: the canonical form has what was said
  /// Of an object: keys that are refused with a hint of their own: what they begin with, and the hint.
  std::vector<std::pair<std::string, std::string>> foreign = {};
};

/// The whole scenario. Made once, from the catalogues of algorithms and nodes.
const Field& scenario_field();

/// Parts of the table: topologies; a link of that name, required; and what joins the nodes of a cluster.
Field topology_field();
Field link_field(std::string name, std::string doc);
Field fabric_field();
/// What disturbs the run; each job has a `collective`.
Field faults_field();
Field disturbance_field();
Field jobs_field(Field collective, Field training);
/// A training step; `algorithm` as a collective has it.
Field training_field(Field algorithm);
/// A communication library, whose variables include those of `transport`; and what GPUs are known to do.
Field library_field(const std::vector<Field>& transport);
Field harness_field();
Field devices_field();
/// What a device does with data within itself: copy, reduce, channel, start.
std::vector<Field> device_rates_fields();
/// Factors that were fitted to measurements.
Field calibration_field();

/// The most ranks of any topology.
inline constexpr std::int64_t most_ranks = 1'048'576;

/// Whether the value may be a number or a range of numbers: whole, size, rate, time.
bool is_scalar(Type type);

std::vector<std::string> names(const std::vector<Field>& fields);
const Field* find(const std::vector<Field>& fields, std::string_view name);

/// True where an object may be left out because every key of it has a default (or may be left out itself).
bool can_be_left_out(const Field& field);

/// The choice that a text means: itself, or that of which it is an alias; nullptr if it is none.
const std::string* chosen(const Field& field, const std::string& text);

/// What is expected there, for errors: `a size such as "64 MiB"`, `a whole number from 1 to 8`.
std::string expectation(const Field& field);

}  // namespace ringsim::scenarios
