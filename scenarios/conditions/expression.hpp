// Conditions as text: "topology.nodes * 8 <= 64 and collective.bytes >= 1 MiB". For `where` of a scenario, and for what
// a sweep asserts of its results.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ringsim {

/// What a number counts.
enum class Dimension { none, size, rate, time };

/// A number with its unit. In base units: bytes, bytes per second, picoseconds.
struct Quantity {
  double value = 0;
  Dimension dimension = Dimension::none;
  /// Base units per unit that the name of the value implies ("time_us": 1e6), so that it can be compared with a number
  /// without unit; 0 if the name implies none.
  double named_unit = 0;

  bool operator==(const Quantity&) const = default;
};

/// Text, truth or number.
using ExpressionValue = std::variant<Quantity, std::string, bool>;

/// The value at a dotted path; nothing if the path is right but has no value. Throws InputError for a path that cannot
/// be right; its message is completed with the place in the expression.
using LookUp = std::function<std::optional<ExpressionValue>(const std::string& path)>;

/// A condition that was read, and can be asked. Immutable; any thread may ask.
///
///     condition  = both { "or" both }             both    = negation { "and" negation }
///     negation   = [ "not" ] negation | comparison
///     comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
///     sum        = product { ("+" | "-") product }          product = factor { ("*" | "/") factor }
///     factor     = [ "-" ] factor | "(" condition ")" | number [ unit ] | "text" | 'text' | true | false
///                | path | "has" "(" path ")"
///
/// `and` and `or` ask their right side only if the left one does not decide. Text knows == and != alone; a name
/// equals its aliases ("allreduce" is all_reduce). A size is not compared with a time, nor a size with a number without
/// unit; times of one another they have no product.
class Expression {
 public:
  /// Throws InputError: `where`, the column, what was expected and found.
  static Expression parse(std::string_view text, const std::string& where);

  /// Throws InputError if a path is unknown or has nothing, or if kinds do not fit.
  bool holds(const LookUp& look_up) const;
  /// The expression in its one canonical spelling.
  std::string text() const;
  /// The paths that it names, each once, in their order.
  std::vector<std::string> paths() const;

  struct Node;

 private:
  explicit Expression(std::shared_ptr<const Node> root, std::string where);
  std::shared_ptr<const Node> root_;
  std::string where_;
};

/// A word that stands outside of quotes and parentheses, surrounded by blanks: where "X where Y" is cut. npos: nowhere.
std::size_t find_word(std::string_view text, std::string_view word);

}  // namespace ringsim
