#include "tests/support/fake_nccl/fake_nccl.hpp"

#include <nccl.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

struct ncclComm {
  int rank, meeting_point;
  int in_progress = 0;  // questions left
  bool told = false;
};

namespace {

using ringsim::test::FakeNcclScript;

std::mutex mutex;
FakeNcclScript script;
std::vector<std::string> made;
std::vector<ncclComm*> open_ends, in_group;
bool graphs = false;
int depth = 0, meeting_points = 0;

ncclResult_t asked(const char* function, const std::string& what) {
  const std::lock_guard lock(mutex);
  made.push_back(what);
  return script.fails == function ? static_cast<ncclResult_t>(script.result) : ncclSuccess;
}

// As NCCL does: an end in progress is not to be used.
ncclResult_t used(const char* function, ncclComm* comm, const std::string& what, cudaStream_t stream) {
  char where[32];
  std::snprintf(where, sizeof where, " on stream %p", static_cast<void*>(stream));
  const ncclResult_t result = asked(function, "rank " + std::to_string(comm->rank) + ": " + what + where);
  if (result != ncclSuccess) return result;
  if (comm->in_progress != 0) return ncclInvalidArgument;
  in_group.push_back(comm);
  return depth > 0 ? ncclSuccess : ncclInvalidUsage;
}

// As NCCL does: who leaves a communicator last waits, and frees all of its ends.
ncclResult_t left(ncclComm* comm, const char* how) {
  std::vector<ncclComm*> together;
  {
    const std::lock_guard lock(mutex);
    made.push_back(std::string(how) + " rank " + std::to_string(comm->rank));
    comm->told = true;
    for (ncclComm* each : open_ends) {
      if (each->meeting_point != comm->meeting_point) continue;
      if (!each->told) return ncclSuccess;
      together.push_back(each);
    }
  }
  const auto must_wait = [] {
    const std::lock_guard lock(mutex);
    bool all_told = true;
    for (const ncclComm* each : open_ends) all_told = all_told && each->told;
    return !script.leaves || (script.waits_for_graphs && graphs) || (script.aborts_together && !all_told);
  };
  while (must_wait()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::lock_guard lock(mutex);
  for (ncclComm* each : together) each->rank = -1;  // the memory stays, for others may look at `told`
  return ncclSuccess;
}

std::string count_of(size_t count, ncclDataType_t type) {
  return std::to_string(count) + (type == ncclFloat32 ? " floats" : " of another type");
}

std::string places(const void* from, const void* to) {
  char text[64];
  std::snprintf(text, sizeof text, " from %p to %p", from, to);
  return text;
}

class Fake : public ringsim::test::FakeNccl {
 public:
  void follow(const FakeNcclScript& told) override {
    const std::lock_guard lock(mutex);
    script = told;
    made.clear();
    open_ends.clear();
    in_group.clear();
    graphs = true;
    depth = 0;
  }
  void graphs_are_gone() override {
    const std::lock_guard lock(mutex);
    graphs = false;
  }
  void note(const std::string& what) override {
    const std::lock_guard lock(mutex);
    made.push_back(what);
  }
  std::vector<std::string> calls() const override {
    const std::lock_guard lock(mutex);
    return made;
  }
  int open() const override {
    const std::lock_guard lock(mutex);
    int n = 0;
    for (const ncclComm* each : open_ends) n += each->rank >= 0 ? 1 : 0;
    return n;
  }
};

}  // namespace

extern "C" ringsim::test::FakeNccl* ringsim::test::fake_nccl() {
  static Fake fake;
  return &fake;
}

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = script.version;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSystemError ? "system error" : "an error"; }
const char* ncclGetLastError(ncclComm_t) { return "the fake was set to fail\n"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 'n', sizeof id->internal);
  std::memcpy(id->internal, &meeting_points, sizeof meeting_points);
  ++meeting_points;
  return asked("ncclGetUniqueId", "meeting point");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int n, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const std::string blocks = config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? "any" : std::to_string(config->maxCTAs);
  const ncclResult_t result =
      asked("ncclCommInitRankConfig", "rank " + std::to_string(rank) + " of " + std::to_string(n) + " at " +
                                          id.internal[127] + ", blocking " + std::to_string(config->blocking) +
                                          ", blocks " + blocks);
  if (result != ncclSuccess) return result;
  int meeting_point = 0;
  std::memcpy(&meeting_point, id.internal, sizeof meeting_point);
  static auto& all = *new std::deque<ncclComm>;  // for ever: threads that are left behind look at them
  *comm = &all.emplace_back(ncclComm{rank, meeting_point});
  open_ends.push_back(*comm);
  in_group.push_back(*comm);
  return ncclInProgress;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  in_group.clear();
  return asked("ncclGroupStart", "{");
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  --depth;
  const ncclResult_t result = asked("ncclGroupEnd", "}");
  if (result != ncclSuccess) return result;
  for (ncclComm* comm : in_group) comm->in_progress = script.in_progress;
  return ncclInProgress;  // as from 2.23 on, whatever it was
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const bool in_progress = comm->in_progress != 0;
  if (comm->in_progress > 0) --comm->in_progress;
  *state = in_progress ? ncclInProgress : static_cast<ncclResult_t>(script.async_error);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return left(comm, "destroy"); }
#ifndef LACKS_ABORT
ncclResult_t ncclCommAbort(ncclComm_t comm) { return left(comm, "abort"); }
#endif

ncclResult_t ncclSend(const void*, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return used("ncclSend", comm, "send " + count_of(n, type) + " to " + std::to_string(peer), stream);
}
ncclResult_t ncclRecv(void*, size_t n, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return used("ncclRecv", comm, "receive " + count_of(n, type) + " from " + std::to_string(peer), stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return used("ncclAllReduce", comm,
              "all_reduce " + count_of(n, type) + (op == ncclSum ? "" : " not summed") + places(from, to), stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return used("ncclReduceScatter", comm,
              "reduce_scatter " + count_of(n, type) + (op == ncclSum ? "" : " not summed") + places(from, to), stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return used("ncclAllGather", comm, "all_gather " + count_of(n, type) + places(from, to), stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return used("ncclBroadcast", comm,
              "broadcast " + count_of(n, type) + " of " + std::to_string(root) + places(from, to), stream);
}
ncclResult_t ncclReduce(const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return used("ncclReduce", comm,
              "reduce " + count_of(n, type) + " for " + std::to_string(root) + (op == ncclSum ? "" : " not summed") +
                  places(from, to),
              stream);
}
}
