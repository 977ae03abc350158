// Who is to blame for a mistake: the file, one of its sweeps, or --set; and the pointer that errors name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim::scenarios {

/// The JSON pointer of a member: "/topology" + "link" is "/topology/link". Safe to print; long keys are cut.
std::string child(const std::string& pointer, std::string_view key);
std::string child(const std::string& pointer, std::size_t index);

/// Turns the place of a mistake into the `where` of an InputError.
class Blame {
 public:
  explicit Blame(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }

  /// Records that the values at and below `pointer` come from `--set`, not from the file's text. `hint`: a likely
  /// mistake in how the option is written; it replaces other hints.
  void from_override(std::string pointer, const std::string& option, std::string hint = "") {
    origins_.push_back({std::move(pointer), option, true, std::move(hint)});
  }
  /// Records that they come from the sweep at `place`.
  void from_sweep(std::string pointer, const std::string& place) {
    origins_.push_back({std::move(pointer), file_ + ": " + place, false, ""});
  }

  /// Blame for a part of the file: for pointers that begin at `prefix`.
  Blame within(const std::string& prefix) const {
    Blame part = *this;
    part.prefix_ += prefix;
    return part;
  }

  /// How errors and warnings call the place.
  std::string where(const std::string& pointer) const;
  [[noreturn]] void fail(const std::string& pointer, std::string message, std::string hint = "") const;

 private:
  struct Origin {
    std::string pointer, where;
    bool with_pointer;
    std::string hint;
  };
  const Origin* origin_of(const std::string& pointer) const;
  std::string file_;
  std::string prefix_;
  std::vector<Origin> origins_;
};

}  // namespace ringsim::scenarios
