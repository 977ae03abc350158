// On what a log of nccl-tests says that it was measured: nodes, GPUs, and the release of NCCL. For sources alone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim::measured {

/// Collects what the lines of a log say. Only what all runs agree on counts.
class LogMachine {
 public:
  /// The release: "NCCL version 2.21.5+cuda12.4" (NCCL_DEBUG=VERSION), "nccl-library=22105" (nccl-tests from 2.17 on).
  void take_release(std::string_view line);
  /// "Pid 27255 on kolyoz1 device 0 [0x42] NVIDIA H100 80GB HBM3": of a rank, by the words from "Pid" on.
  void take_rank(const std::vector<std::string_view>& words);
  /// The lines of a run end. `ranks`: how many the run has; of fewer lines the nodes are not all known.
  void end_run(int ranks);
  /// Sets `library`, `gpu` and `nodes`, as tables have them in comments `# key: value`, unless the file says them.
  void tell(std::map<std::string, std::string>& about) const;

 private:
  std::set<std::string> releases_, gpus_, nodes_;
  std::set<std::string, std::less<>> hosts_;  // of the run
  int listed_ = 0;
};

}  // namespace ringsim::measured
