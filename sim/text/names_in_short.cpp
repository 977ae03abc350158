#include "sim/text/names_in_short.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/text/json.hpp"

namespace ringsim {

namespace {

/// "gpu12" in two parts.
struct Numbered {
  std::string word;
  long number = 0;
  bool operator==(const Numbered&) const = default;
};

/// A device of a host; a bare one has no host's word.
struct DeviceName {
  Numbered host, device;
};

/// A number that would be written otherwise, as in "gpu07", is none.
std::optional<Numbered> numbered(std::string_view text) {
  std::size_t digits = text.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(text[digits - 1])) != 0) --digits;
  Numbered found{.word = std::string(text.substr(0, digits)), .number = 0};
  const auto end = std::from_chars(text.data() + digits, text.data() + text.size(), found.number);
  constexpr std::size_t most_digits = 9;  // sums of such numbers are numbers
  if (digits == 0 || text.size() - digits > most_digits || end.ec != std::errc{} ||
      std::to_string(found.number) != text.substr(digits))
    return std::nullopt;
  const bool plain = std::all_of(found.word.begin(), found.word.end(),
                                 [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  return plain ? std::optional(found) : std::nullopt;
}

std::optional<DeviceName> device_name(const std::string& text) {
  const std::size_t dot = text.find('.');
  DeviceName name;
  if (dot != std::string::npos) {
    const auto host = numbered(std::string_view(text).substr(0, dot));
    if (!host) return std::nullopt;
    name.host = *host;
  }
  const auto device = numbered(std::string_view(text).substr(dot == std::string::npos ? 0 : dot + 1));
  if (!device) return std::nullopt;
  name.device = *device;
  return name;
}

/// "gpu0-3", "gpu0,2,4", "gpu7-4": names of one word; three and more that count up or down are a run.
std::string run_text(const std::vector<Numbered>& names) {
  std::string text = names.front().word;
  for (std::size_t i = 0, n = 0; i < names.size(); i += n) {
    n = 1;
    const long step = i + 1 < names.size() ? names[i + 1].number - names[i].number : 0;
    while (std::abs(step) == 1 && i + n < names.size() &&
           names[i + n].number == names[i].number + step * static_cast<long>(n))
      ++n;
    if (n < 3) n = 1;
    if (i > 0) text += ',';
    text += std::to_string(names[i].number);
    if (n > 1) text += fmt::format("-{}", names[i + n - 1].number);
  }
  return text;
}

/// Each of `slow` with all of `fast` in turn.
struct Block {
  std::vector<Numbered> slow, fast;
};

/// `by_host`: what lies on one host next to each other is together; else what has one name on several hosts.
std::vector<Block> blocks_of(const std::vector<DeviceName>& names, bool by_host) {
  std::vector<Block> blocks;
  for (const DeviceName& name : names) {
    const auto &slow = by_host ? name.host : name.device, &fast = by_host ? name.device : name.host;
    const bool goes_on = !blocks.empty() && blocks.back().slow.back() == slow &&
                         blocks.back().fast.back().word == fast.word &&
                         !fast.word.empty();  // a bare device has no host to count
    if (goes_on)
      blocks.back().fast.push_back(fast);
    else
      blocks.push_back({{slow}, {fast}});
  }
  std::vector<Block> merged;
  for (Block& block : blocks) {
    const bool alike = !merged.empty() && merged.back().fast == block.fast &&
                       merged.back().slow.back().word == block.slow.front().word;
    if (alike)
      merged.back().slow.push_back(block.slow.front());
    else
      merged.push_back(std::move(block));
  }
  return merged;
}

std::string text_of(const std::vector<Block>& blocks, bool by_host) {
  std::string text;
  for (const Block& block : blocks) {
    const std::vector<Numbered>& hosts = by_host ? block.slow : block.fast;
    if (!text.empty()) text += ", ";
    text += hosts.front().word.empty() ? run_text(by_host ? block.fast : block.slow)
                                       : fmt::format("{} x {}", run_text(block.slow), run_text(block.fast));
  }
  return text;
}

}  // namespace

std::string names_in_short(const std::string& text) {
  if (!text.starts_with("[\"")) return text;
  std::vector<DeviceName> names;
  const Json list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return text;
  for (const Json& each : list) {
    const auto name = each.is_string() ? device_name(each.get<std::string>()) : std::nullopt;
    if (!name) return text;
    names.push_back(*name);
  }
  const std::string by_host = text_of(blocks_of(names, true), true),
                    by_device = text_of(blocks_of(names, false), false);
  const std::string& shorter = by_device.size() < by_host.size() ? by_device : by_host;
  return shorter.size() < text.size() ? shorter : text;
}

}  // namespace ringsim
