// The scenario as a table: every key with its type, bounds, default and meaning. Decoder, canonical form, expansion and
// JSON Schema all read this one table, so that they cannot drift apart.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/fields/effect.hpp"
#include "scenarios/fields/member.hpp"
#include "sim/text/spelling.hpp"

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

/// A text that is read as a choice.
struct Alias {
  std::string name;    ///< "allreduce"
  std::string choice;  ///< "all_reduce"
  std::string note;    ///< a warning, for a name that leaves something open: "taken to be hgx-h100, ..."; else empty
};

/// A text that is no choice, though people know it: refused with a reason in place of the nearest choice.
struct KnownName {
  std::string name;  ///< compared by its letters and digits: "zero3" is "ZeRO-3"
  std::string what;  ///< "which is not modeled"
  std::string hint;
};

struct Field {
  std::string name;
  Type type = Type::text;
  std::string doc;
  bool required = false;
  std::string fallback = {};  ///< default as the user would write it, without quotes; empty: none
  std::int64_t min =
      0;  ///< whole, size: smallest and largest value; factor: the same in millionths; text: shortest; list: fewest
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::vector<std::string> choices = {};  ///< of a text: nothing else is accepted
  std::vector<Alias> aliases = {};
  std::vector<KnownName> known_names = {};
  bool loose = false;  ///< of a text: capitals do not count, and "_" and spaces are "-"
  /// For a text: the hint for one that is no choice; nullptr: the nearest choice, else `otherwise`.
  std::string (*suggest)(std::string_view text) = nullptr;
  Numbers numbers = Numbers::any;  ///< how the nearest choice is found
  std::string otherwise = {};      ///< the hint for a text that no choice is near, or that takes an object's place
  std::string list = {};  ///< "algorithms": `ringsim list` shows the choices, for they are too many for a message
  std::vector<std::string> examples = {};  ///< as JSON text
  std::vector<Field> members = {};
  std::string discriminator = {};  ///< of a variant: "kind", "name"
  std::string implied_by =
      {};  ///< of an object among variants: the key that tells it where the discriminator is absent
  /// For an object or a variant: a text in its place is the value of this key; empty: a text is refused.
  std::string named_by = {};
  /// For an object: of each of these one must be given. "/library": the key at the top of the scenario. Only read to
  /// name all missing keys together; the meaning of a scenario refuses none and several.
  std::vector<std::vector<std::string>> one_of = {};
  std::vector<std::string> words = {};  ///< what people call the key, for hints: "gpus", "world_size"
  std::vector<Field> variants = {};     ///< objects; their names are the discriminator's values
  bool varies = true;                   ///< a list or range of values is accepted where one is expected
  bool unique = false;                  ///< of a list: each element once
  bool numbered = false;                ///< of a file: "{rank}" in its name stands for 0, 1, 2 ...
  bool digits = false;                  ///< a text may be a whole number, and a whole number a text of its digits
  bool only_said = false;               ///< the default is not filled in: the canonical form has what was said
  Member into = {};                     ///< where the value goes; none: the meaning of a scenario reads the key
  /// Tells after a run whether a value other than the default changed anything; nullptr: it is taken to have.
  Effect (*effect)(const EffectOf& of) = nullptr;
  /// For an object: keys that are refused with a hint of their own: what they begin with, and the hint.
  std::vector<std::pair<std::string, std::string>> foreign = {};
};

/// The row of the variant that the discriminator names. Requires a canonical value.
const Field& chosen_variant(const Field& variants, const nlohmann::json& canonical);

/// The whole scenario. Made once, from the catalogs of algorithms and nodes.
const Field& scenario_field();

/// The hint for a text that names no algorithm: how to name a schedule's file, how to choose an algorithm of NCCL, or
/// the nearest name of the catalog; empty if there is none.
std::string algorithm_hint(std::string_view text);

/// Parts of the table: topologies; a link of that name, required; and what joins the nodes of a cluster.
Field topology_field();
Field link_field(std::string name, std::string doc, Member into = {});
/// Where a link goes that a scenario states: into a LinkSpec, or an optional one.
template <class Owner, class Link>
Member stated_link(Link Owner::*member) {
  return {member, [](const Field& row, const nlohmann::json& value, Link& out) {
            LinkSpec link{.bandwidth = {}, .source = "scenario"};
            read_members(row, value, link);
            out = std::move(link);
          }};
}
Field fabric_field();
/// The row of a kind of fabric, as kind_of() names it. Requires that there is one.
const Field& fabric_row(std::string_view kind);
/// How data moves along a path; and how messages share links.
Field transport_field();
Field network_field();
/// What disturbs the run; each job has a `collective`.
Field faults_field();
Field disturbance_field();
Field jobs_field(Field collective, Field training);
/// A training step, what it computes, and the plan that may take the place of a regime; `algorithm` as a collective has
/// it.
Field training_field(Field algorithm);
/// `parallel`: of the plan that was measured.
Field workload_field(Field parallel);
Field parallel_field(Field algorithm);
Field inference_field(Field algorithm);
/// The step of a real job.
Field trace_field(Field algorithm);
/// The model that serves.
Field serving_workload_field();
/// The GPUs of a step, by their names.
Field ranks_field(std::string doc);
/// A length of time.
Field duration(std::string name, std::string doc, std::string example, std::string fallback = {}, Member into = {});
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

/// True if the value may be a number or a range of numbers: whole, size, rate, time.
bool is_scalar(Type type);

/// Fills the members of `out` for which `object` has rows and `canonical` values. Throws InvariantError for a row whose
/// member is of another structure.
template <class Owner>
void read_members(const Field& object, const nlohmann::json& canonical, Owner& out) {
  for (const Field& row : object.members) {
    if (!row.into || !canonical.contains(row.name)) continue;
    ensure(row.into.is_of<Owner>(), "the rows of an object fill the members of one structure");
    row.into.read(row, canonical[row.name], out);
  }
}

/// Makes `out` the alternative that the discriminator names, and fills it. Requires a row with `into` for it.
template <class Variant>
void read_variant(const Field& variants, const nlohmann::json& canonical, Variant& out) {
  const Field& row = chosen_variant(variants, canonical);
  ensure(row.into.is_of<Variant>(), "every variant in the table has a structure");
  row.into.read(row, canonical, out);
}

/// Calls look(row, effect of the setting) for each row of `object` with an effect whose member of `value` is not as a
/// structure that nothing was read into.
template <class Owner, class Look>
void for_each_effect(const Field& object, const Owner& value, RunFacts& run, Look look) {
  for (const Field& row : object.members)
    if (row.effect != nullptr && row.into.is_of<Owner>() && row.into.is_changed(value))
      look(row, row.effect({run, object.name, &value}));
}

/// The row at a dotted path of objects: "transport.staging". Requires that there is one.
const Field& field_at(std::string_view path);

std::vector<std::string> names(const std::vector<Field>& fields);
const Field* find(const std::vector<Field>& fields, std::string_view name);

/// True if an object may be left out because every key of it has a default (or may be left out itself).
bool can_be_left_out(const Field& field);

/// The choice that a text means: itself, or that of which it is an alias; nullptr if it is none.
const std::string* chosen(const Field& field, const std::string& text);
/// The alias that a text is; nullptr if it is none.
const Alias* alias_of(const Field& field, const std::string& text);

/// A text as results spell it: the choice of which it is an alias somewhere in a scenario, else the text itself. For
/// conditions, which compare names: "allreduce" is all_reduce, "p5.48xlarge" is aws-p5.
std::string as_choice(const std::string& text);

/// True if a text may be all of an object or of a variant: its other keys may be left out.
bool takes_a_name(const Field& field);
/// True if each key of an object among variants may be left out.
bool needs_no_key(const Field& variant);

/// A value of the field, as JSON text.
std::string example_of(const Field& field);

/// What is expected there, for errors: `a size such as "64 MiB"`, `a whole number from 1 to 8`.
std::string expectation(const Field& field);

}  // namespace ringsim::scenarios
