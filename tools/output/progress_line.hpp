// How far long work is.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace ringsim::tools {

/// Says on stderr how far work is, what is being done, how long the rest will take at the speed so far, and how much
/// memory is in use. On a terminal as one line that changes, from the first second on; elsewhere, such as in a log, as
/// a line after 20 seconds, 40, 80 and so on, so that short work leaves no trace.
class ProgressLine {
 public:
  /// Work of `parts` equal parts: points, or cases.
  explicit ProgressLine(std::size_t parts);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// That share of a part, 0 to 1, was done. From any thread.
  void add(double share);
  /// What is done from now on: "simulating 4190208 messages". From any thread.
  void now(const std::string& stage);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// f(), with a line that says what is done, should it take long.
template <class F>
auto while_saying(const std::string& stage, F f) {
  ProgressLine line(1);
  line.now(stage);
  return f();
}

}  // namespace ringsim::tools
