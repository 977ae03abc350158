#include "sim/base/error.hpp"

#include <utility>

#include "sim/base/setting_error.hpp"
#include "sim/base/utf8.hpp"

namespace ringsim {

namespace {
std::string full_text(const std::string& where, const std::string& message, const std::string& hint) {
  std::string text = where.empty() ? message : where + ": " + message;
  if (!hint.empty()) text += "\n  hint: " + hint;
  return text;
}
}  // namespace

InputError::InputError(std::string where, std::string message, std::string hint)
    : std::runtime_error(as_utf8(full_text(where, message, hint))),
      where_(as_utf8(std::move(where))),
      message_(as_utf8(std::move(message))),
      hint_(as_utf8(std::move(hint))) {}

UnservedError::UnservedError(std::string algorithm, std::string where, std::string message, std::string hint)
    : InputError(std::move(where), std::move(message), std::move(hint)), algorithm_(std::move(algorithm)) {}

void fail_invariant(std::string_view law) { throw InvariantError("invariant broken: " + std::string(law)); }

void fail_too_large(std::string_view what) {
  throw SettingError(SettingError::Setting::scale, "too large: " + std::string(what),
                     "use smaller sizes, fewer ranks, shorter latencies or faster links");
}

}  // namespace ringsim
