#include "validate/replay/nccl/nccl.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "sim/base/error.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/nccl/nccl_library.hpp"

namespace ringsim::replay::gpu {

namespace {

/// Does each in a thread of its own. False: not all came back in time, and those are left to themselves.
bool in_time(const std::vector<std::function<void()>>& tasks, std::chrono::milliseconds patience) {
  struct Open {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t left;
  };
  const auto open = std::make_shared<Open>();
  open->left = tasks.size();
  for (const auto& task : tasks)
    std::thread([open, task] {
      task();
      const std::lock_guard lock(open->mutex);
      --open->left;
      open->changed.notify_one();
    }).detach();
  std::unique_lock lock(open->mutex);
  return open->changed.wait_for(lock, patience, [&] { return open->left == 0; });
}

Fault fault_of(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
    case ncclInProgress:
      return Fault::none;
    case ncclInvalidArgument:
      return Fault::misuse;
    default:  // includes ncclInvalidUsage: two ranks on one GPU, say, and that is the machine's fault
      return Fault::other;
  }
}

/// Every communicator is non-blocking: what takes time on the host is ncclInProgress, and asked after by query().
class Nccl : public Communicators {
 public:
  Nccl(NcclLibrary nccl, Device& device, NativeGpus& gpus, std::chrono::milliseconds leave_time)
      : nccl_(std::move(nccl)), device_(device), gpus_(gpus), leave_time_(leave_time) {}
  ~Nccl() override { clear(); }

  std::string name() const override { return "NCCL " + nccl_.version; }

  /// A kernel of NCCL's spins until its peer's is there, which may be queued after one that finds no room on its GPU:
  /// all that run at the same time must fit. One of its thread blocks per multiprocessor is assumed (they have 640
  /// threads: NCCL_MAX_NTHREADS in NVIDIA/nccl, src/include/device.h), and an eighth of the multiprocessors is left for
  /// additions. A power of two, because NCCL rounds sends and receives up to one (ncclTopoComputeP2pChannels() in
  /// src/graph/paths.cc). A single communicator is left to NCCL's own choice, so that it is as fast as anybody's.
  void expect(int communicators) override {
    const auto sms = static_cast<unsigned>(gpus_.multiprocessors());
    const auto n = static_cast<unsigned>(std::max(communicators, 1));
    most_blocks_ = n == 1 ? NCCL_CONFIG_UNDEF_INT : static_cast<int>(std::bit_floor((sms - sms / 8) / n));
    expected_ = communicators;
  }

  Result make_meeting_point(MeetingPoint& out) override {
    ncclUniqueId id;
    static_assert(sizeof id.internal == sizeof(MeetingPoint));
    Result made = result(nccl_.unique_id(&id));
    std::memcpy(out.data(), id.internal, out.size());
    return made;
  }

  Result join(int size, std::span<const Member> mine, const MeetingPoint& where, std::vector<End>& out) override {
    if (most_blocks_ == 0)
      return {Fault::other, "a GPU of " + std::to_string(gpus_.multiprocessors()) +
                                " multiprocessors has no room for the kernels of " + std::to_string(expected_) +
                                " communicators at the same time"};
    out.clear();
    ncclUniqueId id;
    std::memcpy(id.internal, where.data(), where.size());
    if (Result begun = begin_group(); !begun.good()) return begun;
    for (const Member& member : mine) {
      if (Result chosen = gpus_.choose(member.gpu); !chosen.good()) return chosen;
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      config.maxCTAs = most_blocks_;
      ends_->push_back({nullptr, communicators_, member.gpu});
      const ncclResult_t said = nccl_.init_rank(&ends_->back().comm, size, id, member.rank, &config);
      if (Result begun = result(said); !begun.good()) return begun;
      out.push_back(static_cast<End>(ends_->size() - 1));
    }
    ++communicators_;
    return end_group();
  }

  Result begin_group() override {
    Result begun = result(nccl_.group_start());
    group_is_open_ = begun.good();
    return begun;
  }
  Result end_group() override {
    group_is_open_ = false;
    return result(nccl_.group_end());
  }
  Result send(End end, Stream stream, Memory from, int to_rank) override {
    return call(end, stream, [&](ncclComm_t comm, cudaStream_t s) {
      return nccl_.send(from.data, size(from), ncclFloat32, to_rank, comm, s);
    });
  }
  Result receive(End end, Stream stream, Memory to, int from_rank) override {
    return call(end, stream, [&](ncclComm_t comm, cudaStream_t s) {
      return nccl_.receive(to.data, size(to), ncclFloat32, from_rank, comm, s);
    });
  }
  Result collective(End end, Stream stream, CollectiveOp op, Memory to, Memory from, int root) override {
    return call(end, stream, [&](ncclComm_t comm, cudaStream_t s) {
      switch (op) {  // counts: as nccl.h has them, a rank's share if the op divides
        case CollectiveOp::all_reduce:
          return nccl_.all_reduce(from.data, to.data, size(from), ncclFloat32, ncclSum, comm, s);
        case CollectiveOp::reduce_scatter:
          return nccl_.reduce_scatter(from.data, to.data, size(to), ncclFloat32, ncclSum, comm, s);
        case CollectiveOp::all_gather:
          return nccl_.all_gather(from.data, to.data, size(from), ncclFloat32, comm, s);
        case CollectiveOp::broadcast:
          return nccl_.broadcast(from.data, to.data, size(to), ncclFloat32, root, comm, s);
        case CollectiveOp::reduce:
          return nccl_.reduce(from.data, to.data, size(from), ncclFloat32, ncclSum, root, comm, s);
        default:
          return ncclInvalidArgument;
      }
    });
  }

  Result query(bool& done) override {
    done = true;
    for (const OfRank& end : *ends_) {
      if (end.comm == nullptr) continue;  // its join() failed
      ncclResult_t state = ncclSuccess;
      if (Result asked = result(nccl_.async_error(end.comm, &state)); !asked.good()) return asked;
      if (Result fine = result(state); !fine.good()) return fine;
      done = done && state != ncclInProgress;
    }
    return {};
  }

  void clear() noexcept override { leave(nccl_.destroy); }
  void abort() noexcept override {
    wait_for_host();
    leave(nccl_.abort);
  }

 private:
  struct OfRank {
    ncclComm_t comm;  // NCCL keeps its address, and writes there what is there already
    int communicator, gpu;
  };
  using Ends = std::deque<OfRank>;  // [end]

  static std::size_t size(const Memory& memory) { return static_cast<std::size_t>(memory.count); }

  template <class Call>
  Result call(End end, Stream stream, Call call) {
    const ncclComm_t comm = ends_->at(static_cast<std::size_t>(end)).comm;
    return result(call(comm, static_cast<cudaStream_t>(gpus_.native(stream))));
  }

  Result result(ncclResult_t said) const {
    const Fault fault = fault_of(said);
    if (fault == Fault::none) return {};
    std::string words = "NCCL: " + std::string(nccl_.error_string(said));
    if (const char* last = nccl_.last_error(nullptr); last != nullptr && *last != '\0')
      words += ": " + std::string(last);
    while (words.ends_with('\n')) words.pop_back();
    return {fault, words};
  }

  /// While NCCL's thread still works on a group of several communicators, aborting them at the same time would be a
  /// race (ncclGroupJobAbort() in src/group.cc: only the first waits for it). Mostly it is done at once; what waits for
  /// a peer is not, and goes on for ever.
  void wait_for_host() noexcept {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    for (bool done = false; std::chrono::steady_clock::now() < until;) {
      if (!query(done).good() || done) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// A communicator is left end by end, by one thread: the last end waits for the kernels of all. Several are left at
  /// the same time, because a kernel of one may be queued after another's, which spins until that one is also given
  /// up. Both wait for graphs with their kernels to go.
  void leave(ncclResult_t (*how)(ncclComm_t)) noexcept {
    if (std::exchange(group_is_open_, false)) nccl_.group_end();
    const auto ends = std::exchange(ends_, std::make_shared<Ends>());
    if (ends->empty()) return;
    std::vector<std::function<void()>> tasks{gpus_.take_graphs()};
    for (int each = 0; each <= communicators_; ++each)  // the last is one whose join() failed
      tasks.emplace_back([how, ends, each, &gpus = gpus_] {
        for (const OfRank& end : *ends) {
          if (end.communicator != each || end.comm == nullptr) continue;
          gpus.use(end.gpu);  // else it would be the first, which may be another process's
          how(end.comm);
        }
      });
    communicators_ = 0;
    if (!in_time(tasks, leave_time_)) device_.abandon();  // kernels may still be there, and would be waited for
  }

  NcclLibrary nccl_;
  Device& device_;
  NativeGpus& gpus_;
  std::chrono::milliseconds leave_time_;
  int most_blocks_ = NCCL_CONFIG_UNDEF_INT, expected_ = 1;
  int communicators_ = 0;
  bool group_is_open_ = false;
  std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();  // NCCL writes there until it has been left
};

}  // namespace

std::unique_ptr<Communicators> open_nccl(Device& device, std::chrono::milliseconds leave_time) {
  auto* gpus = dynamic_cast<NativeGpus*>(&device);
  ensure(gpus != nullptr, "the device knows CUDA's handles");
  return std::make_unique<Nccl>(load_nccl(), device, *gpus, leave_time);
}

}  // namespace ringsim::replay::gpu
