// A value of a JSON file and where it stands, so that every mistake is named at its place. For sources alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim {

/// `file: /json/pointer`. Keeps a reference to the value.
struct Place {
  const Json& json;
  std::string file, pointer;

  [[noreturn]] void fail(const std::string& message, const std::string& hint = "") const;
  bool has(const std::string& key) const { return json.contains(key); }
  /// The value of that key; an error if there is none.
  Place at(const std::string& key) const;
  /// The values of a list.
  std::vector<Place> items() const;
  /// The keys and values of an object.
  std::vector<std::pair<std::string, Place>> entries() const;
  /// Holds an object to its keys.
  void allow(const std::vector<std::string>& keys) const;
  /// A text that is not empty.
  std::string text() const;
  bool truth() const;
  /// A whole number from `least` to `most`.
  std::int64_t whole(std::int64_t least, std::int64_t most) const;

  /// One of the words of a table, as what it stands for.
  template <class T>
  T word(const std::vector<std::pair<std::string, T>>& table) const {
    const std::string found = text();
    std::vector<std::string> words;
    for (const auto& [spelling, meaning] : table) {
      if (spelling == found) return meaning;
      words.push_back(spelling);
    }
    fail_word(found, words);
  }

  /// The entry of a table of names; says which one was likely meant if there is none. `name` stands here.
  template <class T>
  const T& look_up(const std::string& name, const std::map<std::string, T>& table, const std::string& what) const {
    const auto found = table.find(name);
    if (found != table.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [each, value] : table) names.push_back(each);
    fail("expected the name of " + what + ", found \"" + name + "\"", did_you_mean(name, names));
  }

 private:
  [[noreturn]] void fail_word(const std::string& found, const std::vector<std::string>& words) const;
};

}  // namespace ringsim
