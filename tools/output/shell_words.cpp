#include "tools/output/shell_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "sim/text/json.hpp"

namespace ringsim::tools {

std::string shell_word(const std::string& word) {
  const bool bare = !word.empty() && word.find_first_not_of(
                                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                         "_./:=,+@%-") == std::string::npos;
  if (bare) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> changes_of(const std::vector<std::pair<std::string, std::string>>& varied) {
  std::vector<std::string> changes;
  for (const auto& [path, value] : varied) {
    const Json json = Json::parse(value);
    const bool bare = json.is_string() && !Json::accept(json.get<std::string>());  // else it would be read as JSON
    changes.push_back(path + '=' + (bare ? json.get<std::string>() : value));
  }
  return changes;
}

std::string set_text(const std::vector<std::pair<std::string, std::string>>& varied) {
  return fmt::format("{}", fmt::join(changes_of(varied), ", "));
}

std::string set_words(const std::string& option, const std::vector<std::string>& set) {
  std::string text;
  for (const std::string& each : set) text += fmt::format(" {} {}", option, shell_word(each));
  return text;
}

}  // namespace ringsim::tools
