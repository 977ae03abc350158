// The nodes, the GPUs and the release of NCCL that a log of nccl-tests names. Only the readers of measured files
// include this header.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim::measured {

/// Collects these facts from the lines of a log. A fact counts only if all runs agree.
class LogMachine {
 public:
  /// The release: "NCCL version 2.21.5+cuda12.4" (NCCL_DEBUG=VERSION), "nccl-library=22105" (nccl-tests from 2.17 on).
  void take_release(std::string_view line);
  /// "Pid 27255 on kolyoz1 device 0 [0x42] NVIDIA H100 80GB HBM3": of a rank, by the words from "Pid" on.
  void take_rank(const std::vector<std::string_view>& words);
  /// Ends the lines of a run with so many ranks. If fewer ranks were listed, the number of nodes is unknown.
  void end_run(int ranks);
  /// Sets `library`, `gpu` and `nodes`, as tables have them in comments `# key: value`, unless the file says them.
  void tell(std::map<std::string, std::string>& about) const;

 private:
  std::set<std::string> releases_, gpus_, nodes_;
  std::set<std::string, std::less<>> hosts_;  // of the run
  int listed_ = 0;
};

}  // namespace ringsim::measured
