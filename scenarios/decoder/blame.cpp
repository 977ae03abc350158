#include "scenarios/decoder/blame.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

std::string child(const std::string& pointer, std::string_view key) {
  const std::string safe = in_quotes(key);
  std::string out = pointer + '/';
  for (const char c : std::string_view(safe).substr(1, safe.size() - 2)) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string child(const std::string& pointer, std::size_t index) { return pointer + '/' + std::to_string(index); }

const Blame::Origin* Blame::origin_of(const std::string& pointer) const {
  const auto covers = [&](const Origin& origin) {
    return pointer.starts_with(origin.pointer) &&
           (pointer.size() == origin.pointer.size() || pointer[origin.pointer.size()] == '/');
  };
  const auto last = std::find_if(origins_.rbegin(), origins_.rend(), covers);
  return last == origins_.rend() ? nullptr : &*last;
}

std::string Blame::where(const std::string& below) const {
  const std::string pointer = prefix_ + below;
  const Origin* origin = origin_of(pointer);
  std::string where = origin == nullptr ? file_ : origin->where;
  if ((origin == nullptr || origin->with_pointer) && !pointer.empty()) where += ": " + pointer;
  return where;
}

void Blame::fail(const std::string& pointer, std::string message, std::string hint) const {
  if (const Origin* origin = origin_of(prefix_ + pointer); origin != nullptr && !origin->hint.empty())
    hint = origin->hint;
  throw InputError(where(pointer), std::move(message), std::move(hint));
}

}  // namespace ringsim::scenarios
