#include "sim/text/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace ringsim {

namespace {
/// Levenshtein distance: insertions, deletions and substitutions that turn a into b.
std::size_t n_edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}
}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  std::size_t fewest = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = n_edits(word, candidate);
    if (3 * edits > std::max(word.size(), candidate.size())) continue;
    if (best == nullptr || edits < fewest) best = &candidate, fewest = edits;
  }
  return best == nullptr ? "" : "did you mean \"" + *best + "\"?";
}

}  // namespace ringsim
