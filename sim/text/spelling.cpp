#include "sim/text/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/base/ascii.hpp"

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

/// Optimal string alignment: insertions, deletions, replacements, swaps of neighbors.
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

/// A number in a name, and the letters next to it: '\0' if there is none.
struct NumberIn {
  std::string digits;
  char before = '\0', after = '\0';
  char far_before = '\0';  ///< the last letter before it, with other characters between

  bool equals(const NumberIn& other) const {
    if (digits != other.digits) return false;
    // "dgx-1v" may be typed "dgx-v1"; but a g5 is no p5.
    if (digits.size() < 2) return before == other.before || before == '\0' || other.before == '\0';
    const bool same_before = before == other.before || (before == '\0' && far_before == other.before) ||
                             (other.before == '\0' && other.far_before == before);
    return same_before && after == other.after;
  }
};

std::vector<NumberIn> numbers_in(std::string_view word) {
  std::vector<NumberIn> numbers;
  const auto letter = [&](std::size_t i) {
    const auto byte = i < word.size() ? static_cast<unsigned char>(word[i]) : 0U;
    return std::isalpha(static_cast<int>(byte)) != 0 ? static_cast<char>(std::tolower(static_cast<int>(byte))) : '\0';
  };
  char last = '\0';
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (letter(i) != '\0') last = letter(i);
    if (!is_digit(word[i])) continue;
    NumberIn number{.digits = {}, .before = i == 0 ? '\0' : letter(i - 1), .far_before = last};
    for (; i < word.size() && is_digit(word[i]); ++i) number.digits += word[i];
    number.after = letter(i);
    numbers.push_back(std::move(number));
    --i;
  }
  return numbers;
}

/// True if `word` has the numbers of `other`, or if it `begins` that, its first ones.
bool same_numbers(std::string_view word, std::string_view other, bool begins) {
  const std::vector<NumberIn> mine = numbers_in(word), others = numbers_in(other);
  if (begins ? mine.size() > others.size() : mine.size() != others.size()) return false;
  return std::equal(mine.begin(), mine.end(), others.begin(),
                    [](const NumberIn& a, const NumberIn& b) { return a.equals(b); });
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known, Numbers numbers) {
  if (word.size() > 64) return "";
  const std::string mine = letters(word);
  if (mine.empty()) return "";
  constexpr std::size_t shortest_prefix = 3;
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, mine.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (numbers == Numbers::exact && !same_numbers(word, candidate, /*begins=*/false)) continue;
    const std::size_t d = distance(mine, letters(candidate));
    // One letter of two is no likeness.
    if (d < best_distance && d < mine.size()) {
      best = candidate;
      best_distance = d;
    }
  }
  if (!best.empty() || mine.size() < shortest_prefix) return best;
  for (const std::string& candidate : known)
    if (letters(candidate).starts_with(mine) && (best.empty() || candidate.size() < best.size()) &&
        (numbers == Numbers::any || same_numbers(word, candidate, /*begins=*/true)))
      best = candidate;
  return best;
}

bool same_letters(std::string_view a, std::string_view b) { return letters(a) == letters(b); }

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, Numbers numbers) {
  const std::string near = nearest(word, known, numbers);
  return near.empty() ? "" : fmt::format("did you mean \"{}\"?", near);
}

std::string spelling_hint(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t few = 19;  // the keys at the top of a scenario, which has the longest list worth reading
  std::string hint = did_you_mean(word, known);
  if (!known.empty() && known.size() <= few) {
    hint += fmt::format("{}known here: {}", hint.empty() ? "" : " ", fmt::join(known, ", "));
  }
  return hint;
}

}  // namespace ringsim
