#include "tools/processes.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "sim/error.hpp"
#include "tools/commands.hpp"

#ifdef RINGSIM_MPI
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#endif

namespace ringsim::tools {

#ifdef RINGSIM_MPI

namespace {

constexpr int result_tag = 1, point_tag = 2;
constexpr std::uint64_t no_point = UINT64_MAX;

/// Waits for a message and tells its sender and size. A process that waits leaves the core to those that work, which
/// MPI_Recv would not.
MPI_Status wait_for(int from, int tag) {
  MPI_Status status = {};
  int there = 0;
  for (int tries = 0; MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status), there == 0; ++tries) {
    if (tries < 20)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return status;
}

}  // namespace

struct Processes::Impl {
  int rank = 0, size = 1;
  int at_work = 0;  // rank 0: how many were not sent home

  void send_point(int to, std::uint64_t point) const {
    MPI_Send(&point, 1, MPI_UINT64_T, to, point_tag, MPI_COMM_WORLD);
  }

  void send_home(int worker) {
    send_point(worker, no_point);
    --at_work;
  }

  /// Who asks for work next; `result` becomes what it brings, empty at its first time.
  int next_worker(std::string& result) const {
    const MPI_Status status = wait_for(MPI_ANY_SOURCE, result_tag);
    int n = 0;
    MPI_Get_count(&status, MPI_CHAR, &n);
    result.resize(static_cast<std::size_t>(n));
    MPI_Recv(result.data(), n, MPI_CHAR, status.MPI_SOURCE, result_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return status.MPI_SOURCE;
  }
};

std::unique_ptr<Processes> Processes::join() {
  bool by_mpi = false;  // MPI_Init alone would take a third of a second
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"})
    by_mpi = by_mpi || std::getenv(variable) != nullptr;
  if (!by_mpi) return nullptr;
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
    throw EnvironmentError("MPI cannot be started");
  auto impl = std::make_unique<Impl>();
  MPI_Comm_rank(MPI_COMM_WORLD, &impl->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &impl->size);
  if (impl->size == 1) {  // one process has its threads
    MPI_Finalize();
    return nullptr;
  }
  return std::unique_ptr<Processes>(new Processes(std::move(impl)));
}

Processes::~Processes() {
  std::string dropped;
  while (impl_->at_work > 0) impl_->send_home(impl_->next_worker(dropped));
  MPI_Finalize();
}

bool Processes::agree(const std::function<std::string()>& read) {
  std::exception_ptr failed;
  std::string hash(32, ' ');
  try {
    hash = read();
    hash.resize(32, ' ');
  } catch (...) {
    failed = std::current_exception();
  }
  std::string first = hash;
  MPI_Bcast(first.data(), 32, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (!failed && first != hash && first != std::string(32, ' '))
    failed = std::make_exception_ptr(EnvironmentError(
        fmt::format("process {} of {} has read another scenario than the first\n  hint: is the file the same on all "
                    "machines?",
                    impl_->rank, impl_->size)));
  int mine = failed ? impl_->rank : impl_->size, lowest = 0;
  MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest == impl_->size) {
    if (this->first()) impl_->at_work = impl_->size - 1;
    return true;
  }
  if (lowest == impl_->rank) std::rethrow_exception(failed);
  return false;
}

void Processes::hand_out(const std::vector<std::size_t>& points,
                         const std::function<bool(std::size_t, PointOutcome&&)>& take) {
  std::vector<std::size_t> given(static_cast<std::size_t>(impl_->size));  // [rank] its point
  std::size_t next = 0, out = 0;
  for (std::string result; next < points.size() || out > 0;) {
    const int worker = impl_->next_worker(result);
    const auto of_worker = static_cast<std::size_t>(worker);
    try {
      if (!result.empty()) {
        --out;
        if (!take(given[of_worker], unpacked(result))) next = points.size();
      }
    } catch (...) {
      impl_->send_home(worker);  // it waits for an answer; the others are sent home when they ask
      throw;
    }
    if (stop_requested) next = points.size();
    if (next < points.size()) {
      given[of_worker] = points[next];
      impl_->send_point(worker, points[next++]);
      ++out;
    } else {
      impl_->send_home(worker);
    }
  }
}

void Processes::work(const std::function<PointOutcome(std::size_t)>& simulate) {
  for (std::string result;;) {
    MPI_Send(result.data(), static_cast<int>(result.size()), MPI_CHAR, 0, result_tag, MPI_COMM_WORLD);
    wait_for(0, point_tag);
    std::uint64_t point = 0;
    MPI_Recv(&point, 1, MPI_UINT64_T, 0, point_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (point == no_point) return;
    result = packed(simulate(point));
  }
}

#else

struct Processes::Impl {
  int rank = 0;
};

std::unique_ptr<Processes> Processes::join() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(variable);
    if (size != nullptr && std::atoi(size) > 1)
      throw EnvironmentError(
          fmt::format("started as one of {} processes by MPI, but ringsim was built without it\n  hint: build it where "
                      "MPI is found "
                      "(cmake -DRINGSIM_MPI=ON says what is missing), or use --shard",
                      size));
  }
  return nullptr;
}

Processes::~Processes() = default;
bool Processes::agree(const std::function<std::string()>&) { return true; }
void Processes::hand_out(const std::vector<std::size_t>&, const std::function<bool(std::size_t, PointOutcome&&)>&) {}
void Processes::work(const std::function<PointOutcome(std::size_t)>&) {}

#endif

Processes::Processes(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
bool Processes::first() const { return impl_->rank == 0; }

}  // namespace ringsim::tools
