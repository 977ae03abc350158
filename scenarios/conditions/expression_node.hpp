// What an expression is made of: shared by its parser and its evaluation.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "scenarios/conditions/expression.hpp"

namespace ringsim {

struct Expression::Node {
  enum class Kind { value, path, has, negative, negation, arithmetic, comparison, both, either };
  Kind kind = Kind::value;
  ExpressionValue value;
  std::string word;  ///< the path; the operator; of a value: how it is spelled
  std::size_t column = 0;
  std::shared_ptr<const Node> left, right;
};

}  // namespace ringsim
