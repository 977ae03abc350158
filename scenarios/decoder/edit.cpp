#include "scenarios/decoder/edit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/key_hint.hpp"
#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim::scenarios {

namespace {

/// The field of a key below `field`, as far as the table alone can tell.
const Field* below(const Field* field, const Json& value, const std::string& key) {
  if (field == nullptr) return nullptr;
  if (field->type == Type::list) return &field->members.front();
  if (value.is_array()) return field;  // one of several values of the same field
  if (field->type == Type::object) return find(field->members, key);
  for (const Field& variant : field->variants) {
    if (const Field* found = find(variant.members, key)) return found;
  }
  return nullptr;
}

std::optional<std::size_t> index_of(const std::string& text) {
  if (text.empty() || text.size() > 9 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return std::stoul(text);
}

}  // namespace

DottedPath split_path(std::string_view text) {
  constexpr std::string_view sweep = "sweep.";
  if (text.starts_with(sweep) && text.size() > sweep.size()) return {"sweep", std::string(text.substr(sweep.size()))};
  DottedPath path;
  while (path.size() < 64) {
    const std::size_t dot = text.find('.');
    if (dot == 0 || text.empty()) return {};
    path.emplace_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return path;
    text.remove_prefix(dot + 1);
  }
  return {};
}

bool leads_to(const DottedPath& outer, const DottedPath& inner) {
  return outer.size() <= inner.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

std::string edit(Json& root, const DottedPath& path, Json value, const Refuse& refuse) {
  Json* at = &root;
  const Field* field = &scenario_field();
  std::string pointer, made;
  for (const std::string& key : path) {
    if (at->is_string() && field != nullptr && !field->named_by.empty()) {
      const std::string name = at->get<std::string>();
      *at = Json::object();
      (*at)[field->named_by] = name;
    }
    const Field* next = below(field, *at, key);
    if (at->is_array()) {
      const std::optional<std::size_t> index = index_of(key);
      if (!index || *index >= at->size()) {
        refuse(at->empty() ? fmt::format("expected a non-empty list at {}", pointer)
                           : fmt::format("expected an index from 0 to {} at {}, found {}", at->size() - 1, pointer,
                                         in_quotes(key)));
        return "";
      }
      at = &(*at)[*index];
    } else if (at->is_object()) {
      if (made.empty() && !at->contains(key)) made = child(pointer, key);
      at = &(*at)[key];
      if (at->is_null() && &key != &path.back()) *at = Json::object();
    } else {
      refuse(fmt::format("expected an object at {} that can have the key {}, found {}", pointer, in_quotes(key),
                         describe(*at)));
      return "";
    }
    pointer = child(pointer, key);
    field = next;
  }
  *at = std::move(value);
  return made.empty() ? pointer : made;
}

void remove(Json& root, const DottedPath& path) {
  Json* at = &root;
  const Field* field = &scenario_field();
  std::string pointer;
  for (const std::string& key : path) {
    const bool last = &key == &path.back();
    const Field* next = below(field, *at, key);
    pointer = child(pointer, key);
    if (at->is_array()) {
      const std::optional<std::size_t> index = index_of(key);
      if (!index || *index >= at->size() || last)
        throw InputError("", fmt::format("expected a key to remove, found an element of a list at {}", pointer),
                         "set the whole list instead");
      at = &(*at)[*index];
    } else if (!at->is_object() || !at->contains(key)) {
      if (field != nullptr && next == nullptr && key != field->discriminator) {
        std::vector<std::string> known = names(field->members);
        for (const Field& variant : field->variants)
          for (std::string& name : names(variant.members)) known.push_back(std::move(name));
        throw InputError("", fmt::format("expected a known key to remove, found {}", pointer),
                         key_hint(root, pointer.substr(0, pointer.rfind('/')), key, known));
      }
      return;
    } else if (last) {
      at->erase(key);
      return;
    } else {
      at = &(*at)[key];
    }
    field = next;
  }
}

}  // namespace ringsim::scenarios
