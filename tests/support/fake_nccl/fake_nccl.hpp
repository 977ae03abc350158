// A libnccl.so.2 for tests: it does nothing, writes down what it is asked, and fails as its script says.
#pragma once

#include <string>
#include <vector>

namespace ringsim::test {

struct FakeNcclScript {
  int version = 22809;
  int in_progress = 0;  ///< how often an end says that what a group began on it is not done; -1: for ever
  std::string fails;    ///< the function that fails, with `result`
  int result = 0;       ///< an ncclResult_t
  int async_error = 0;  ///< what an end says of itself when it is asked, unless it is in progress
  /// As of NCCL's kernels: an abort is done when all communicators have been told, ...
  bool aborts_together = false;
  bool waits_for_graphs = false;  ///< ... any leaving when graphs_are_gone() has been called, ...
  bool leaves = true;             ///< ... or never, while false.
};

class FakeNccl {
 public:
  virtual ~FakeNccl() = default;
  /// Forgets all that was before.
  virtual void follow(const FakeNcclScript& script) = 0;
  virtual void graphs_are_gone() = 0;
  virtual void note(const std::string& what) = 0;
  /// What it was asked, and what was noted.
  virtual std::vector<std::string> calls() const = 0;
  /// Ends that were begun and have not been left.
  virtual int open() const = 0;
};

/// Under this name in the library: what it is.
extern "C" FakeNccl* fake_nccl();

}  // namespace ringsim::test
