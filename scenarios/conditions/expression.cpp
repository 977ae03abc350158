// Asking an expression, and spelling it.
#include "scenarios/conditions/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/conditions/expression_node.hpp"
#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using Branch = Expression::Node;
using Kind = Branch::Kind;

const char* name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::none:
      return "a number without unit";
    case Dimension::size:
      return "a size";
    case Dimension::rate:
      return "a rate";
    case Dimension::time:
      return "a time";
  }
  fail_invariant("a quantity is of one of four dimensions");
}

std::string name_of(const ExpressionValue& value) {
  if (const auto* quantity = std::get_if<Quantity>(&value)) return name_of(quantity->dimension);
  return std::holds_alternative<bool>(value) ? "true or false" : "text";
}

class Asker {
 public:
  Asker(const LookUp& look_up, const std::string& where) : look_up_(look_up), where_(where) {}

  bool truth(const Branch& node) const {
    const ExpressionValue found = value(node);
    if (const bool* truth = std::get_if<bool>(&found)) return *truth;
    fail(node, fmt::format("expected a condition, found {}", name_of(found)));
  }

 private:
  ExpressionValue value(const Branch& node) const {
    switch (node.kind) {
      case Kind::value:
        return node.value;
      case Kind::path:
        if (std::optional<ExpressionValue> found = look_up(node)) return *std::move(found);
        fail(node, fmt::format("expected a value of \"{}\", found none here", node.word),
             fmt::format("test first that there is one: has({}) and ...", node.word));
      case Kind::has:
        return look_up(node).has_value();
      case Kind::negation:
        return !truth(*node.left);
      case Kind::both:
        return truth(*node.left) && truth(*node.right);
      case Kind::either:
        return truth(*node.left) || truth(*node.right);
      case Kind::negative: {
        Quantity found = number(*node.left);
        found.value = -found.value;
        return found;
      }
      case Kind::arithmetic:
        return arithmetic(node);
      case Kind::comparison:
        return comparison(node);
    }
    fail_invariant("an expression's node is of one of nine kinds");
  }

  std::optional<ExpressionValue> look_up(const Branch& node) const {
    try {
      return look_up_(node.word);
    } catch (const InputError& error) {
      fail(node, error.message(), error.hint());
    }
  }

  Quantity number(const Branch& node) const {
    const ExpressionValue found = value(node);
    if (const auto* quantity = std::get_if<Quantity>(&found)) return *quantity;
    fail(node, fmt::format("expected a number or a quantity, found {}", name_of(found)));
  }

  /// A number without unit takes the unit of the other side, if the other's name implies one.
  void settle(const Branch& node, Quantity& a, Quantity& b) const {
    const auto lend = [](Quantity& from, Quantity& to) {
      if (to.dimension != Dimension::none || from.dimension == Dimension::none || from.named_unit == 0) return;
      to.dimension = from.dimension;
      to.value *= from.named_unit;
    };
    lend(a, b);
    lend(b, a);
    if (a.dimension == b.dimension) return;
    fail(
        node,
        fmt::format("expected the same kind on both sides of \"{}\", found {} and {}", node.word, name_of(a.dimension),
                    name_of(b.dimension)),
        a.dimension == Dimension::none || b.dimension == Dimension::none ? "quantities need a unit, as in 64 MiB" : "");
  }

  ExpressionValue arithmetic(const Branch& node) const {
    Quantity a = number(*node.left), b = number(*node.right);
    Quantity out = a;
    if (node.word == "+" || node.word == "-") {
      settle(node, a, b);
      out = a;
      if (out.named_unit == 0) out.named_unit = b.named_unit;
      out.value = node.word == "+" ? a.value + b.value : a.value - b.value;
    } else if (node.word == "*") {
      if (a.dimension != Dimension::none && b.dimension != Dimension::none)
        fail(node, fmt::format("expected a number without unit on one side of \"*\", found {} and {}",
                               name_of(a.dimension), name_of(b.dimension)));
      if (a.dimension == Dimension::none) out = b;
      out.value = a.value * b.value;
    } else {
      if (b.dimension != Dimension::none && b.dimension != a.dimension)
        fail(node,
             fmt::format(
                 "expected a divisor that is a number without unit or of the same kind as the left side, found {}",
                 name_of(b.dimension)));
      if (b.value == 0) fail(node, "expected a divisor other than 0, found 0");
      if (b.dimension != Dimension::none) out = Quantity{};
      out.value = a.value / b.value;
    }
    if (!std::isfinite(out.value)) fail(node, "expected a number in the range of a double, found a larger one");
    return out;
  }

  ExpressionValue comparison(const Branch& node) const {
    const ExpressionValue left = value(*node.left), right = value(*node.right);
    if (left.index() != right.index())
      fail(node,
           fmt::format("expected the same kind on both sides of \"{}\", found {} and {}", node.word, name_of(left),
                       name_of(right)),
           std::holds_alternative<std::string>(left) || std::holds_alternative<std::string>(right)
               ? "write text in quotes and numbers without"
               : "");
    if (const auto* quantity = std::get_if<Quantity>(&left)) {
      Quantity a = *quantity, b = std::get<Quantity>(right);
      settle(node, a, b);
      if (node.word == "<") return a.value < b.value;
      if (node.word == "<=") return a.value <= b.value;
      if (node.word == ">") return a.value > b.value;
      if (node.word == ">=") return a.value >= b.value;
      return (a.value == b.value) == (node.word == "==");
    }
    if (node.word != "==" && node.word != "!=")
      fail(node,
           fmt::format("expected == or != between {} and {}, found \"{}\"", name_of(left), name_of(right), node.word));
    const auto* text = std::get_if<std::string>(&left);
    const bool same = text == nullptr
                          ? left == right
                          : scenarios::as_choice(*text) == scenarios::as_choice(std::get<std::string>(right));
    return same == (node.word == "==");
  }

  [[noreturn]] void fail(const Branch& node, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}: column {}", where_, node.column), message, hint);
  }

  const LookUp& look_up_;
  const std::string& where_;
};

std::string spelled(const Branch& node) {
  switch (node.kind) {
    case Kind::value:
    case Kind::path:
      return node.word;
    case Kind::has:
      return "has(" + node.word + ")";
    case Kind::negative:
      return "(-" + spelled(*node.left) + ")";
    case Kind::negation:
      return "(not " + spelled(*node.left) + ")";
    default:
      return "(" + spelled(*node.left) + " " + node.word + " " + spelled(*node.right) + ")";
  }
}

void add_paths(const Branch& node, std::vector<std::string>& paths) {
  const bool named = node.kind == Kind::path || node.kind == Kind::has;
  if (named && std::find(paths.begin(), paths.end(), node.word) == paths.end()) paths.push_back(node.word);
  for (const auto& below : {node.left, node.right})
    if (below) add_paths(*below, paths);
}

}  // namespace

Expression::Expression(std::shared_ptr<const Branch> root, std::string where)
    : root_(std::move(root)), where_(std::move(where)) {}

bool Expression::holds(const LookUp& look_up) const { return Asker(look_up, where_).truth(*root_); }

std::string Expression::text() const { return spelled(*root_); }

std::vector<std::string> Expression::paths() const {
  std::vector<std::string> paths;
  add_paths(*root_, paths);
  return paths;
}

}  // namespace ringsim
