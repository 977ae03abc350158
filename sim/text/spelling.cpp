#include "sim/text/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace ringsim {

namespace {

std::string letters(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || byte >= 0x80) out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

/// Optimal string alignment: insertions, deletions, replacements, swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > 64) return "";
  const std::string mine = letters(word);
  if (mine.empty()) return "";
  constexpr std::size_t shortest_prefix = 3;
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, mine.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t d = distance(mine, letters(candidate));
    // One letter of two is no likeness.
    if (d < best_distance && d < mine.size()) {
      best = candidate;
      best_distance = d;
    }
  }
  if (!best.empty() || mine.size() < shortest_prefix) return best;
  for (const std::string& candidate : known)
    if (letters(candidate).starts_with(mine) && (best.empty() || candidate.size() < best.size())) best = candidate;
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : fmt::format("did you mean \"{}\"?", near);
}

std::string spelling_hint(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t few = 17;  // the keys at the top of a scenario, which has the longest list worth reading
  std::string hint = did_you_mean(word, known);
  if (!known.empty() && known.size() <= few) {
    hint += fmt::format("{}known here: {}", hint.empty() ? "" : " ", fmt::join(known, ", "));
  }
  return hint;
}

}  // namespace ringsim
