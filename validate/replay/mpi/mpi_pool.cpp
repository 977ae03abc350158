#include "validate/replay/mpi/mpi_pool.hpp"

#include <utility>

#include "validate/replay/mpi/mpi_session.hpp"

#ifdef RINGSIM_MPI
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <thread>
#endif

namespace ringsim::replay {

#ifdef RINGSIM_MPI

namespace {

constexpr int result_tag = 1, item_tag = 2;
constexpr std::uint64_t no_item = UINT64_MAX;

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

struct MpiPool::Impl {
  std::unique_ptr<MpiSession> session;
  int at_work = 0;  // rank 0: how many were not sent home

  void send_item(int to, std::uint64_t item) const { MPI_Send(&item, 1, MPI_UINT64_T, to, item_tag, MPI_COMM_WORLD); }

  void send_home(int worker) {
    send_item(worker, no_item);
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

MpiPool::~MpiPool() {
  std::string dropped;
  while (impl_->at_work > 0) impl_->send_home(impl_->next_worker(dropped));
}

void MpiPool::hand_out(const std::vector<std::size_t>& items,
                       const std::function<bool(std::size_t, std::string&&)>& take, const std::atomic<bool>& stop) {
  std::vector<std::size_t> given(static_cast<std::size_t>(impl_->session->size()));  // [rank] its item
  std::size_t next = 0, out = 0;
  for (std::string result; next < items.size() || out > 0;) {
    const int worker = impl_->next_worker(result);
    const auto of_worker = static_cast<std::size_t>(worker);
    try {
      if (!result.empty()) {
        --out;
        if (!take(given[of_worker], std::move(result))) next = items.size();
      }
    } catch (...) {
      impl_->send_home(worker);  // it waits for an answer; the others are sent home when they ask
      throw;
    }
    if (stop) next = items.size();
    if (next < items.size()) {
      given[of_worker] = items[next];
      impl_->send_item(worker, items[next++]);
      ++out;
    } else {
      impl_->send_home(worker);
    }
  }
}

void MpiPool::work(const std::function<std::string(std::size_t)>& f) {
  for (std::string result;;) {
    MPI_Send(result.data(), static_cast<int>(result.size()), MPI_CHAR, 0, result_tag, MPI_COMM_WORLD);
    wait_for(0, item_tag);
    std::uint64_t item = 0;
    MPI_Recv(&item, 1, MPI_UINT64_T, 0, item_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (item == no_item) return;
    result = f(item);
  }
}

#else

struct MpiPool::Impl {
  std::unique_ptr<MpiSession> session;
  int at_work = 0;
};

MpiPool::~MpiPool() = default;
void MpiPool::hand_out(const std::vector<std::size_t>&, const std::function<bool(std::size_t, std::string&&)>&,
                       const std::atomic<bool>&) {}
void MpiPool::work(const std::function<std::string(std::size_t)>&) {}

#endif

std::unique_ptr<MpiPool> MpiPool::join() {
  auto session = MpiSession::join();
  if (!session || session->size() == 1) return nullptr;
  auto impl = std::make_unique<Impl>();
  impl->session = std::move(session);
  return std::unique_ptr<MpiPool>(new MpiPool(std::move(impl)));
}

bool MpiPool::agree(const std::function<std::string()>& read) {
  if (!impl_->session->agree(read)) return false;
  if (first()) impl_->at_work = impl_->session->size() - 1;
  return true;
}

MpiPool::MpiPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
bool MpiPool::first() const { return impl_->session->first(); }

}  // namespace ringsim::replay
