// Cuts a file of PyTorch into its events without building a document: a trace may have gigabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// Finds the end of a JSON value by strings, escapes and depth; a value may come in pieces. It does not check numbers,
/// words or commas: whoever uses a value parses it.
class ValueEnd {
 public:
  /// Starts a value. `depth`: of what surrounds it.
  void start(int depth);
  /// Looks on from `text[at]`. Returns one past the value's last character if the value ends there, else text.size();
  /// then done() says which. Sets error() for brackets that do not match and nesting deeper than most_depth.
  std::size_t look(std::string_view text, std::size_t at);
  bool done() const { return done_; }
  const char* error() const { return error_; }  ///< nullptr: none

  static constexpr int most_depth = 64;

 private:
  int base_ = 0, depth_ = 0;
  std::uint64_t braces_ = 0;  // [depth] 1: a brace, 0: a bracket
  bool in_string_ = false, escaped_ = false, is_scalar_ = false, began_ = false, done_ = false;
  const char* error_ = nullptr;
};

/// Calls f(key, value) for each member of an object, as raw text, until f returns false. Keys keep their escapes.
/// Returns false if the text is no object, or damaged up to where f stopped.
bool for_each_member(std::string_view object, const std::function<bool(std::string_view, std::string_view)>& f);

/// Reads a document `{..., "traceEvents": [{...}, ...], ...}` piece by piece.
class TraceEvents {
 public:
  struct Document {
    std::string what;                  ///< for errors: "PyTorch profiler trace"
    std::string events;                ///< the key of its list: "traceEvents"
    std::vector<std::string> members;  ///< keys whose values are wanted
    bool may_lack_events = false;      ///< a document without the list is whole
  };
  struct Sink {
    /// A wanted member of the document, as raw text.
    std::function<void(std::string_view key, std::string_view value)> member;
    /// An event, as raw text, and the place of its first byte in the unpacked file.
    std::function<void(std::string_view event, std::uint64_t at)> event;
  };
  /// `name`: of the file, for errors.
  TraceEvents(std::string name, const Limits& limits, Document document, Sink sink);

  /// Takes the next piece. Throws InputError that names file and byte.
  void feed(std::string_view piece);
  /// Throws InputError if the file ends too early, or lacks its list of events.
  void end() const;

 private:
  enum class Next { document, first_key, key, in_key, colon, value, comma, first_event, event, event_comma, nothing };

  std::size_t in_value(std::string_view piece, std::size_t at);
  std::size_t in_key(std::string_view piece, std::size_t at);
  void structure(char c, std::size_t at);
  void keep(std::string_view text, std::size_t most, const char* what);
  [[noreturn]] void fail(std::uint64_t at, const std::string& expected, const std::string& found,
                         const std::string& hint) const;
  [[noreturn]] void fail_at(std::size_t at, const std::string& expected, char found) const;

  std::string name_;
  Limits limits_;
  Document document_;
  Sink sink_;
  Next next_ = Next::document;
  std::uint64_t before_ = 0;  // bytes of earlier pieces
  std::uint64_t began_ = 0;   // where the value begins
  ValueEnd value_;
  bool within_ = false;   // inside a value
  bool escaped_ = false;  // of a key
  bool is_kept_ = false;  // the value's text is wanted
  bool has_events_ = false;
  std::string key_, kept_;  // kept_: what earlier pieces had of a value
};

}  // namespace ringsim::profiles
