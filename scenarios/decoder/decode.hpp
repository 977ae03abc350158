// From what the user wrote to the canonical form: checked against the table of fields, defaults filled in, base units.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/fields/fields.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// Holds the place of what a sweep puts there: a value that no JSON text can spell.
Json make_slot(const std::string& sweep);
std::optional<std::string> slot_of(const Json& value);

/// Which variants an object of the user's may be: one where the discriminator is a text, those that it varies over
/// where it is a list or swept (`sweeps`: the sweep's lists by path), none if it names none. In the order of the
/// values.
std::vector<const Field*> candidates(const Field& variant, const Json& object, const Json& sweeps);

/// The variant that an object without discriminator is, by a key that only it has; nullptr if there is none.
const Field* implied_variant(const Field& variant, const Json& object);

/// The field of a key of an object or variant; nullptr if it has none of that name. The discriminator itself is
/// `own`.
const Field* member(const Field& field, const Field& own, const std::vector<const Field*>& candidates,
                    std::string_view key);
/// The discriminator as a field of its own.
Field discriminator_field(const Field& variant);

/// The default of a field as the user would have written it. Requires one.
Json default_of(const Field& field);

/// Decodes one point: no lists where one value is expected. A file that it names becomes `{"content": digest, "path":
/// name}`: its content is part of the question. `notes` gets what is taken for names that leave something open, such as
/// "h100"; may be null.
nlohmann::json canonical_point(const Json& scenario, const Blame& blame, const Files& files,
                               std::vector<std::string>* notes = nullptr);

/// Decodes a whole file: lists and ranges stay, each value of them in canonical form; sweeps stand under "sweep". Every
/// value that the file spells out is checked. A list of one value is that value.
nlohmann::json canonical_file(const Json& scenario, const Json& sweeps, const Blame& blame, const Files& files);

/// The canonical form without what is not physics (name, paths of files).
nlohmann::json physics_of(nlohmann::json canonical);
/// XXH3-128 of the canonical form without what is not physics, as 32 hex digits.
std::string hash_of(const nlohmann::json& canonical);
/// XXH3-128 of a text, as 32 hex digits.
std::string digest_of(std::string_view text);

}  // namespace ringsim::scenarios
