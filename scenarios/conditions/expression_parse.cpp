// Text to expression: recursive descent, one token ahead.
#include <fmt/format.h>

#include <charconv>
#include <utility>
#include <vector>

#include "scenarios/conditions/expression_node.hpp"
#include "sim/base/ascii.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim {

namespace {

using Branch = Expression::Node;
using Kind = Branch::Kind;
using Tree = std::shared_ptr<const Branch>;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool begins_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }
bool continues_path(char c) { return begins_word(c) || is_digit(c) || c == '.'; }

struct Token {
  enum class Kind { end, number, text, word, sign };
  Kind kind = Kind::end;
  std::string_view text;   // as it stands
  std::size_t column = 0;  // from 1
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : text_(text), where_(where) { advance(); }

  Tree whole() {
    Tree tree = either();
    if (token_.kind == Token::Kind::end) return tree;
    fail(token_, "the end, or \"and\", \"or\", a comparison",
         token_.text == "="      ? "write == for equality"
         : is_comparison(token_) ? "join comparisons with \"and\""
                                 : "");
  }

 private:
  static constexpr int deepest = 200;  // of parentheses, minus signs and nots

  Tree either() {
    Tree tree = both();
    while (is_word("or")) tree = joined(Kind::either, std::move(tree), &Parser::both);
    return tree;
  }
  Tree both() {
    Tree tree = negation();
    while (is_word("and")) tree = joined(Kind::both, std::move(tree), &Parser::negation);
    return tree;
  }
  Tree negation() {
    if (!is_word("not")) return comparison();
    const Depth depth(*this);
    const Token sign = take();
    return make({.kind = Kind::negation, .value = false, .word = "not", .column = sign.column, .left = negation()});
  }
  Tree comparison() {
    Tree tree = sum();
    return is_comparison(token_) ? joined(Kind::comparison, std::move(tree), &Parser::sum) : tree;
  }
  Tree sum() {
    Tree tree = product();
    while (is_sign("+") || is_sign("-")) tree = joined(Kind::arithmetic, std::move(tree), &Parser::product);
    return tree;
  }
  Tree product() {
    Tree tree = factor();
    while (is_sign("*") || is_sign("/")) tree = joined(Kind::arithmetic, std::move(tree), &Parser::factor);
    return tree;
  }

  Tree factor() {
    const Depth depth(*this);
    if (is_sign("-")) {
      const Token sign = take();
      return make({.kind = Kind::negative, .value = false, .word = "-", .column = sign.column, .left = factor()});
    }
    if (is_sign("(")) {
      take();
      Tree inner = either();
      close();
      return inner;
    }
    if (token_.kind == Token::Kind::number) return number();
    if (token_.kind == Token::Kind::text) {
      const Token text = take();
      const std::string content(text.text.substr(1, text.text.size() - 2));
      return make({.kind = Kind::value,
                   .value = content,
                   .word = content.find('"') == std::string::npos ? '"' + content + '"' : "'" + content + "'",
                   .column = text.column});
    }
    if (token_.kind == Token::Kind::word) return word();
    fail(token_, "a path, a number, quoted text or \"(\"");
  }

  Tree number() {
    const Token number = take();
    std::string spelled(number.text);
    double value = 0;
    const auto [end, error] = std::from_chars(number.text.data(), number.text.data() + number.text.size(), value);
    if (error != std::errc() || end != number.text.data() + number.text.size()) fail(number, "a number");
    if (token_.kind != Token::Kind::word || is_operator_word()) {
      return make({.kind = Kind::value,
                   .value = Quantity{value, Dimension::none, 0},
                   .word = fmt::format("{}", value),
                   .column = number.column});
    }
    Token unit = take();  // letters, and "/s" after them: the slash is a token of its own
    spelled += " " + std::string(unit.text);
    if (is_sign("/") && at_ < text_.size() && text_.substr(at_, 1) == "s" &&
        (at_ + 1 == text_.size() || !continues_path(text_[at_ + 1]))) {
      take();
      take();
      spelled += "/s";
    }
    return make(quantity(spelled, number));
  }

  Branch quantity(const std::string& spelled, const Token& at) const {
    Branch node{.kind = Kind::value, .value = false, .column = at.column};
    const auto is = [&](double value, Dimension dimension, std::string text) {
      node.value = Quantity{value, dimension, 0};
      node.word = std::move(text);
    };
    try {
      const Bytes size = parse_bytes(spelled);
      is(static_cast<double>(size.count), Dimension::size, format(size));
      return node;
    } catch (const InputError&) {  // not a size
    }
    try {
      const Bandwidth rate = parse_bandwidth(spelled);
      is(static_cast<double>(rate.bytes_per_second), Dimension::rate, format(rate));
      return node;
    } catch (const InputError&) {  // nor a rate
    }
    try {
      const Picoseconds time = parse_time(spelled);
      is(static_cast<double>(time.count()), Dimension::time, format(time));
      return node;
    } catch (const InputError&) {  // nor a time
    }
    fail_at(at.column,
            fmt::format("expected a quantity such as 64 MiB, 25 GB/s or 1.3 us, found {}", in_quotes(spelled)),
            "Gb/s is bits, GB/s is bytes; a number and a path need an operator between them");
  }

  Tree word() {
    const Token word = take();
    if (word.text == "true" || word.text == "false")
      return make(
          {.kind = Kind::value, .value = word.text == "true", .word = std::string(word.text), .column = word.column});
    if (word.text == "has" && is_sign("(")) {
      take();
      if (token_.kind != Token::Kind::word || is_operator_word()) fail(token_, "a path");
      const Token path = take();
      close();
      return make({.kind = Kind::has, .value = false, .word = checked_path(path), .column = path.column});
    }
    if (word.text == "and" || word.text == "or" || word.text == "not" || word.text == "where")
      fail(word, "a path, a number, quoted text or \"(\"");
    return make({.kind = Kind::path, .value = false, .word = checked_path(word), .column = word.column});
  }

  std::string checked_path(const Token& path) const {
    if (path.text.back() == '.' || path.text.find("..") != std::string_view::npos)
      fail(path, "a path of keys separated by single dots");
    return std::string(path.text);
  }

  Tree joined(Kind kind, Tree left, Tree (Parser::*operand)()) {
    const Token sign = take();
    if (++n_joined_ > most_joined)
      fail_at(sign.column, fmt::format("expected at most {} operators, found more", most_joined));
    Tree right = (this->*operand)();
    return make({.kind = kind,
                 .value = false,
                 .word = std::string(sign.text),
                 .column = sign.column,
                 .left = std::move(left),
                 .right = std::move(right)});
  }
  static Tree make(Branch node) { return std::make_shared<const Branch>(std::move(node)); }

  void close() {
    if (!is_sign(")")) fail(token_, "\")\"", is_comparison(token_) ? "join comparisons with \"and\"" : "");
    take();
  }

  bool is_sign(std::string_view sign) const { return token_.kind == Token::Kind::sign && token_.text == sign; }
  bool is_word(std::string_view word) const { return token_.kind == Token::Kind::word && token_.text == word; }
  bool is_operator_word() const { return is_word("and") || is_word("or") || is_word("not") || is_word("where"); }
  static bool is_comparison(const Token& token) {
    if (token.kind != Token::Kind::sign) return false;
    return token.text == "<" || token.text == "<=" || token.text == ">" || token.text == ">=" || token.text == "==" ||
           token.text == "!=";
  }

  Token take() {
    const Token taken = token_;
    advance();
    return taken;
  }

  void advance() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    const std::size_t begin = at_;
    const auto ends = [&](Token::Kind kind, std::size_t end) {
      at_ = end;
      token_ = {kind, text_.substr(begin, end - begin), begin + 1};
    };
    if (begin == text_.size()) return ends(Token::Kind::end, begin);
    const char c = text_[begin];
    if (is_digit(c)) {
      std::size_t end = begin;
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
      return ends(Token::Kind::number, end);
    }
    if (begins_word(c)) {
      std::size_t end = begin;
      while (end < text_.size() && continues_path(text_[end])) ++end;
      return ends(Token::Kind::word, end);
    }
    if (c == '"' || c == '\'') {
      const std::size_t end = text_.find(c, begin + 1);
      if (end == std::string_view::npos)
        fail_at(begin + 1, fmt::format("expected a closing quote for the text that starts here, found none: {}",
                                       in_quotes(text_.substr(begin))));
      return ends(Token::Kind::text, end + 1);
    }
    constexpr std::string_view pairs[] = {"<=", ">=", "==", "!="};
    for (const std::string_view pair : pairs)
      if (text_.substr(begin, 2) == pair) return ends(Token::Kind::sign, begin + 2);
    if (std::string_view("<>=+-*/()").find(c) != std::string_view::npos) return ends(Token::Kind::sign, begin + 1);
    constexpr std::string_view doubled[] = {"&&", "||", "!"};
    const bool c_like = text_.substr(begin, 2) == doubled[0] || text_.substr(begin, 2) == doubled[1] || c == '!';
    fail_at(begin + 1, fmt::format("expected a path, a number, a text or an operator, found {}", in_quotes({&c, 1})),
            c_like ? "write \"and\", \"or\" and \"not\"" : "");
  }

  [[noreturn]] void fail(const Token& token, const std::string& expected, const std::string& hint = "") const {
    fail_at(token.column,
            fmt::format("expected {}, found {}", expected,
                        token.kind == Token::Kind::end ? std::string("the end") : in_quotes(token.text)),
            hint);
  }
  [[noreturn]] void fail_at(std::size_t column, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}: column {}", where_, column), message, hint);
  }

  struct Depth {
    explicit Depth(Parser& parser) : of(parser) {
      if (++of.depth_ > deepest)
        of.fail_at(of.token_.column, fmt::format("expected at most {} levels of nesting, found more", deepest));
    }
    ~Depth() { --of.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Parser& of;
  };

  static constexpr int most_joined = 1000;  // a tree leans to the left: asking it goes as deep
  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  Token token_;
  int depth_ = 0, n_joined_ = 0;
};

}  // namespace

Expression Expression::parse(std::string_view text, const std::string& where) {
  if (first_not_utf8(text) != std::string_view::npos)
    throw InputError(where, "expected text in UTF-8, found other bytes");
  return Expression(Parser(text, where).whole(), where);
}

std::size_t find_word(std::string_view text, std::string_view word) {
  char quote = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    } else if (depth == 0 && i > 0 && is_blank(text[i - 1]) && text.substr(i, word.size()) == word &&
               i + word.size() < text.size() && is_blank(text[i + word.size()])) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace ringsim
