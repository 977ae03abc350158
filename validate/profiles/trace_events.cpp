#include "validate/profiles/trace_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::profiles {

namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// The characters that matter outside of strings.
constexpr std::array<bool, 256> make_structural() {
  std::array<bool, 256> out{};
  for (const char c : {'"', '{', '}', '[', ']'}) out[static_cast<unsigned char>(c)] = true;
  return out;
}
constexpr std::array<bool, 256> structural = make_structural();

constexpr std::size_t longest_key = 1024;

std::size_t after_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

}  // namespace

void ValueEnd::start(int depth) {
  *this = ValueEnd();
  base_ = depth;
}

std::size_t ValueEnd::look(std::string_view text, std::size_t at) {
  std::size_t i = at;
  const std::size_t n = text.size();
  if (!began_ && i < n) {
    began_ = true;
    is_scalar_ = !structural[static_cast<unsigned char>(text[i])];
    if (text[i] == '}' || text[i] == ']') {
      error_ = "a bracket that closes nothing";
      return i;
    }
  }
  if (is_scalar_) {
    while (i < n && !is_blank(text[i]) && text[i] != ',' && text[i] != '}' && text[i] != ']') ++i;
    done_ = i < n;
    return i;
  }
  while (i < n) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
        ++i;
        continue;
      }
      while (i < n && text[i] != '"' && text[i] != '\\') ++i;
      if (i == n) return n;
      escaped_ = text[i] == '\\';
      in_string_ = escaped_;
      ++i;
      if (!in_string_ && depth_ == 0) {
        done_ = true;
        return i;
      }
      continue;
    }
    while (i < n && !structural[static_cast<unsigned char>(text[i])]) ++i;
    if (i == n) return n;
    const char c = text[i];
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      if (base_ + depth_ == most_depth) {
        error_ = "nesting deeper than 64";
        return i;
      }
      braces_ = (braces_ << 1) | (c == '{' ? 1 : 0);
      ++depth_;
    } else {
      if ((braces_ & 1) != (c == '}' ? 1 : 0)) {
        error_ = "a bracket of the other kind";
        return i;
      }
      braces_ >>= 1;
      if (--depth_ == 0) {
        done_ = true;
        return i + 1;
      }
    }
    ++i;
  }
  return n;
}

bool for_each_member(std::string_view object, const std::function<bool(std::string_view, std::string_view)>& f) {
  std::size_t i = after_blanks(object, 0);
  if (i == object.size() || object[i] != '{') return false;
  i = after_blanks(object, i + 1);
  if (i < object.size() && object[i] == '}') return true;
  ValueEnd end;
  for (;;) {
    if (i == object.size() || object[i] != '"') return false;
    end.start(0);
    const std::size_t key_end = end.look(object, i);
    if (!end.done()) return false;
    const std::string_view key = object.substr(i + 1, key_end - i - 2);
    if (key.size() > longest_key) return false;
    i = after_blanks(object, key_end);
    if (i == object.size() || object[i] != ':') return false;
    i = after_blanks(object, i + 1);
    end.start(0);
    const std::size_t value_end = end.look(object, i);
    if (!end.done() || value_end == i) return false;
    if (!f(key, object.substr(i, value_end - i))) return true;
    i = after_blanks(object, value_end);
    if (i == object.size()) return false;
    if (object[i] == '}') return true;
    if (object[i] != ',') return false;
    i = after_blanks(object, i + 1);
  }
}

TraceEvents::TraceEvents(std::string name, const Limits& limits, Document document, Sink sink)
    : name_(std::move(name)), limits_(limits), document_(std::move(document)), sink_(std::move(sink)) {}

void TraceEvents::fail(std::uint64_t at, const std::string& expected, const std::string& found,
                       const std::string& hint) const {
  throw InputError(fmt::format("{}: byte {}", name_, at), fmt::format("expected {}, found {}", expected, found), hint);
}

void TraceEvents::fail_at(std::size_t at, const std::string& expected, char found) const {
  fail(before_ + at, expected, in_quotes(std::string_view(&found, 1)),
       "the file is damaged or is not a " + document_.what);
}

void TraceEvents::keep(std::string_view text, std::size_t most, const char* what) {
  if (kept_.size() + text.size() > most)
    fail(began_, fmt::format("{} of at most {} KiB", what, most >> 10), "a longer one",
         next_ == Next::event ? "increase --limit-event if the file is valid" : "the file is damaged");
  kept_ += text;
}

std::size_t TraceEvents::in_key(std::string_view piece, std::size_t at) {
  for (std::size_t i = at; i < piece.size(); ++i) {
    if (!escaped_ && piece[i] == '"') {
      key_ += piece.substr(at, i - at);
      next_ = Next::colon;
      return i + 1;
    }
    escaped_ = !escaped_ && piece[i] == '\\';
    if (key_.size() + i - at > longest_key)
      fail(began_, "a key of at most 1 KiB", "a longer one", "the file is damaged");
  }
  key_ += piece.substr(at);
  return piece.size();
}

std::size_t TraceEvents::in_value(std::string_view piece, std::size_t at) {
  const std::size_t end = value_.look(piece, at);
  if (value_.error() != nullptr)
    fail(before_ + end, "a JSON value", value_.error(), "the file is damaged or is not a " + document_.what);
  const std::string_view found = piece.substr(at, end - at);
  const bool is_event = next_ == Next::event;
  const std::size_t most = is_event ? limits_.event_bytes : limits_.header_bytes;
  const char* what = is_event ? "an event" : "a value";
  if (!value_.done()) {
    if (is_kept_) keep(found, most, what);
    return end;
  }
  within_ = false;
  std::string_view text = found;
  if (is_kept_ && (!kept_.empty() || found.size() > most)) {
    keep(found, most, what);
    text = kept_;
  }
  if (is_event) {
    sink_.event(text, began_);
    next_ = Next::event_comma;
  } else {
    if (is_kept_) sink_.member(key_, text);
    next_ = Next::comma;
  }
  kept_.clear();
  return end;
}

void TraceEvents::structure(char c, std::size_t at) {
  const auto start_value = [&](Next what, int depth, bool is_kept) {
    next_ = what;
    began_ = before_ + at;
    is_kept_ = is_kept;
    within_ = true;
    value_.start(depth);
  };
  switch (next_) {
    case Next::document:
      if (c != '{') fail_at(at, fmt::format("a {}, which begins with {{", document_.what), c);
      next_ = Next::first_key;
      return;
    case Next::first_key:
    case Next::key:
      if (c == '}' && next_ == Next::first_key) {
        next_ = Next::nothing;
      } else if (c == '"') {
        key_.clear();
        began_ = before_ + at;
        next_ = Next::in_key;
      } else {
        fail_at(at, "a key in quotes", c);
      }
      return;
    case Next::colon:
      if (c != ':') fail_at(at, "a colon after the key", c);
      next_ = Next::value;
      return;
    case Next::value:
      if (key_ == document_.events) {
        if (c != '[') fail_at(at, fmt::format("a list of events as \"{}\"", document_.events), c);
        if (std::exchange(has_events_, true))
          fail(before_ + at, fmt::format("one list \"{}\"", document_.events), "a second one", "the file is damaged");
        next_ = Next::first_event;
      } else {
        const std::vector<std::string>& members = document_.members;
        const bool wanted = std::find(members.begin(), members.end(), key_) != members.end();
        start_value(Next::value, 1, wanted);
      }
      return;
    case Next::comma:
    case Next::event_comma: {
      const bool in_events = next_ == Next::event_comma;
      if (c == ',')
        next_ = in_events ? Next::event : Next::key;
      else if (c == (in_events ? ']' : '}'))
        next_ = in_events ? Next::comma : Next::nothing;
      else
        fail_at(at, in_events ? "a comma or the end of the events" : "a comma or the end of the document", c);
      return;
    }
    case Next::first_event:
    case Next::event:
      if (c == ']' && next_ == Next::first_event)
        next_ = Next::comma;
      else if (c == '{')
        start_value(Next::event, 2, true);
      else
        fail_at(at, "an event, which begins with {", c);
      return;
    case Next::nothing:
      fail_at(at, "nothing after the document", c);
    case Next::in_key:
      return;
  }
}

void TraceEvents::feed(std::string_view piece) {
  for (std::size_t i = 0; i < piece.size();) {
    if (within_) {
      i = in_value(piece, i);
    } else if (next_ == Next::in_key) {
      i = in_key(piece, i);
    } else if (is_blank(piece[i])) {
      ++i;
    } else {
      structure(piece[i], i);
      if (!within_) ++i;
    }
  }
  before_ += piece.size();
}

void TraceEvents::end() const {
  if (next_ != Next::nothing)
    fail(before_, "a whole " + document_.what, "a truncated file",
         "it is truncated; copy it again, or wait until the program has finished writing it");
  if (!has_events_ && !document_.may_lack_events)
    fail(before_, fmt::format("a list \"{}\"", document_.events), "none", "it is not a " + document_.what);
}

}  // namespace ringsim::profiles
