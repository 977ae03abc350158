// Namespaces that are there: made, entered by replays, taken down.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "validate/replay/lab/lab_plan.hpp"

namespace ringsim::replay {

/// Throws EnvironmentError if this is not root, or `ip` and `tc` are missing.
void require_lab();

/// Does what the commands say, those that follow each other in one place by one process. Throws EnvironmentError with
/// what the program said; Interrupted between two processes.
void carry_out(const std::vector<LabCommand>& commands, const std::atomic<bool>* stop = nullptr);

/// A lab for as long as it lives: its namespaces are gone afterwards, whatever happens in between.
class Lab {
 public:
  /// Throws as carry_out() does; the lab has then been taken down again.
  Lab(LabPlan plan, const std::atomic<bool>* stop);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  const LabPlan& plan() const { return plan_; }
  /// It stays when this goes.
  void keep() { keep_ = true; }

 private:
  LabPlan plan_;
  bool keep_ = false;
};

/// Those that are there whose names begin so.
std::vector<std::string> namespaces_of(const std::string& prefix);
/// Takes them down, and all that is in them.
void take_down(const std::vector<std::string>& namespaces);

}  // namespace ringsim::replay
