#include "scenarios/meaning/meaning_groups.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;

/// Which ranks belong together, as nccl-tests writes it in NCCL_TESTS_SPLIT: those that the operation gives the same
/// number (README.md of nccl-tests, "Running multiple operations in parallel").
struct Split {
  enum class By : std::uint8_t { bit_and, bit_or, remainder, quotient };
  By by = By::remainder;
  std::uint64_t value = 1;

  std::uint64_t color(std::uint64_t rank) const {
    switch (by) {
      case By::bit_and:
        return rank & value;
      case By::bit_or:
        return rank | value;
      case By::remainder:
        return rank % value;
      case By::quotient:
        return rank / value;
    }
    fail_invariant("a split is by one of four operations");
  }
};

/// A whole number: decimal, or after 0x hexadecimal, or after 0b binary.
std::optional<std::uint64_t> number_in(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0b")) {
    base = text[1] == 'x' ? 16 : 2;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Split> split_in(std::string_view text) {
  constexpr std::pair<std::string_view, Split::By> operations[] = {
      {"AND", Split::By::bit_and},  {"&", Split::By::bit_and},     {"OR", Split::By::bit_or},
      {"|", Split::By::bit_or},     {"MOD", Split::By::remainder}, {"%", Split::By::remainder},
      {"DIV", Split::By::quotient}, {"/", Split::By::quotient}};
  for (const auto& [name, by] : operations) {
    if (!text.starts_with(name)) continue;
    text.remove_prefix(name.size());
    while (text.starts_with(' ')) text.remove_prefix(1);
    const std::optional<std::uint64_t> value = number_in(text);
    const bool divides = by == Split::By::remainder || by == Split::By::quotient;
    if (!value || (divides && *value == 0)) return std::nullopt;
    return Split{by, *value};
  }
  return std::nullopt;
}

/// The first group decides how large all are.
void expect_equal_sizes(const std::vector<std::vector<int>>& groups, const std::string& place, const Blame& blame) {
  for (std::size_t g = 1; g < groups.size(); ++g)
    if (groups[g].size() != groups.front().size())
      blame.fail(place,
                 fmt::format("expected groups of equal size, found {} GPUs in group 0 and {} in group {}",
                             groups.front().size(), groups[g].size(), g),
                 "use separate \"jobs\" for collectives on groups of different sizes");
}

}  // namespace

std::vector<std::string> names_in_groups(const Canonical& collective) {
  std::vector<std::string> names;
  if (!collective.contains("groups")) return names;
  for (const Canonical& group : collective["groups"])
    for (const Canonical& name : group) names.push_back(name.get<std::string>());
  return names;
}

std::vector<std::vector<int>> groups_of(const Canonical& collective, std::size_t ranks, const std::string& pointer,
                                        const Blame& blame) {
  std::vector<std::vector<int>> groups;
  if (collective.contains("groups")) {
    for (const char* other : {"ranks", "split"})
      if (collective.contains(other))
        blame.fail(fmt::format("{}/{}", pointer, other), "cannot be combined with groups",
                   "groups already list their GPUs");
    std::set<std::string> known;
    int next = 0;
    for (std::size_t g = 0; g < collective["groups"].size(); ++g) {
      const Canonical& group = collective["groups"][g];
      for (std::size_t i = 0; i < group.size(); ++i)
        if (!known.insert(group[i].get<std::string>()).second)
          blame.fail(fmt::format("{}/groups/{}/{}", pointer, g, i),
                     fmt::format("expected each GPU in only one group, found {} again",
                                 in_quotes(group[i].get<std::string>())));
      groups.emplace_back(group.size());
      std::iota(groups.back().begin(), groups.back().end(), next);
      next += static_cast<int>(group.size());
    }
    expect_equal_sizes(groups, pointer + "/groups", blame);
  } else if (collective.contains("split")) {
    const auto text = collective["split"].get<std::string>();
    const std::optional<Split> split = split_in(text);
    if (!split)
      blame.fail(pointer + "/split",
                 fmt::format("expected AND, OR, MOD or DIV and a whole number, found {}", in_quotes(text)),
                 "use the syntax of NCCL_TESTS_SPLIT in nccl-tests; for example \"DIV 8\" for ranks 0 to 7, ranks 8 to "
                 "15 ...");
    std::map<std::uint64_t, std::vector<int>> by_color;
    for (std::size_t rank = 0; rank < ranks; ++rank) by_color[split->color(rank)].push_back(static_cast<int>(rank));
    for (auto& [color, members] : by_color) groups.push_back(std::move(members));
    expect_equal_sizes(groups, pointer + "/split", blame);
  }
  return groups;
}

}  // namespace ringsim::scenarios
