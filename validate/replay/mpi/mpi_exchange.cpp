#include "validate/replay/mpi/mpi_exchange.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"

#ifdef RINGSIM_MPI
#include <climits>

#include "validate/replay/mpi/mpi_processes.hpp"
#endif

namespace ringsim::replay {

#ifdef RINGSIM_MPI

namespace {

int count_of(std::size_t elements) {
  if (elements <= INT_MAX) return static_cast<int>(elements);
  throw InputError("", fmt::format("expected messages of at most {} elements, found one of {}", INT_MAX, elements),
                   "MPI counts have 32 bits; use more ranks or segments to make messages smaller");
}

/// Messages of one connection have the sender and a tag of their own, and MPI keeps the order of such.
class MpiExchange : public Exchange {
 public:
  /// `first`: the process of actor 0.
  MpiExchange(const FirstProcesses& processes, int first, const MpiReplay& replay)
      : processes_(processes), first_(first), replay_(replay), patience_(replay.timeout, replay.stop) {}

  void start_send(const Connection& connection, std::span<const float> data, Ticket ticket) override {
    require_mpi(MPI_Isend(data.data(), count_of(data.size()), MPI_FLOAT, first_ + connection.to, connection.channel,
                          processes_.get(), add(ticket, -1)),
                "a send");
  }
  void start_receive(const Connection& connection, std::span<float> data, Ticket ticket) override {
    const int count = count_of(data.size());
    require_mpi(MPI_Irecv(data.data(), count, MPI_FLOAT, first_ + connection.from, connection.channel, processes_.get(),
                          add(ticket, count)),
                "a receive");
  }
  void start_compute(std::chrono::nanoseconds time, Ticket ticket) override {
    computing_.push_back({now() + time, ticket});
  }

  void wait_some(std::vector<Ticket>& done) override {
    do {
      test_messages(done);
      test_computing(done);
      if (done.empty()) patience_.stand_by("nothing was done");
    } while (done.empty());
  }

  Moment barrier() override {
    processes_.barrier({replay_.timeout, replay_.stop});
    patience_ = {replay_.timeout, replay_.stop};
    return now();
  }
  Moment now() const override { return std::chrono::steady_clock::now(); }

 private:
  struct Pending {
    Ticket ticket;
    int count;  // elements to receive; -1: a send
  };
  struct Computing {
    Moment until;
    Ticket ticket;
  };

  MPI_Request* add(Ticket ticket, int count) {
    pending_.push_back({ticket, count});
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }

  void test_messages(std::vector<Ticket>& done) {
    if (requests_.empty()) return;
    const std::size_t n = requests_.size();
    indices_.resize(n);
    statuses_.resize(n);
    int n_done = 0;
    const int code = MPI_Testsome(static_cast<int>(n), requests_.data(), &n_done, indices_.data(), statuses_.data());
    if (code == MPI_ERR_IN_STATUS) {
      for (int i = 0; i < n_done; ++i) require_mpi(statuses_[static_cast<std::size_t>(i)].MPI_ERROR, "a message");
    }
    require_mpi(code, "messages");
    if (n_done <= 0) return;  // MPI_UNDEFINED is less than 0
    for (std::size_t i = 0; i < static_cast<std::size_t>(n_done); ++i) {
      const Pending& pending = pending_[static_cast<std::size_t>(indices_[i])];
      int came = pending.count;
      if (pending.count >= 0) MPI_Get_count(&statuses_[i], MPI_FLOAT, &came);
      ensure(came == pending.count, "both ends of a message agree on its size");
      done.push_back(pending.ticket);
    }
    std::size_t left = 0;  // those that are done became null
    for (std::size_t i = 0; i < n; ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[left] = requests_[i];
      pending_[left++] = pending_[i];
    }
    requests_.resize(left);
    pending_.resize(left);
  }

  void test_computing(std::vector<Ticket>& done) {
    if (computing_.empty()) return;
    const Moment moment = now();
    std::erase_if(computing_, [&](const Computing& each) {
      if (each.until > moment) return false;
      done.push_back(each.ticket);
      return true;
    });
  }

  const FirstProcesses& processes_;
  int first_;
  const MpiReplay& replay_;
  MpiPatience patience_;
  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;  // [request]
  std::vector<Computing> computing_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

std::vector<ActorRecord> replayed(MpiSession& session, const FirstProcesses& processes, const Schedule& own, int first,
                                  const MpiReplay& replay) {
  try {
    MpiExchange exchange(processes, first, replay);
    return processes.gathered(replay_actor(own, session.rank() - first, exchange, replay.repeats, replay.program));
  } catch (...) {
    session.give_up();
    throw;
  }
}

}  // namespace

std::vector<Measured> replay_by_mpi(MpiSession& session, const MpiReplay& replay) {
  int n = 0, first = 0;
  const Schedule* own = nullptr;
  for (const Schedule* schedule : replay.jobs) {
    if (session.rank() >= n && session.rank() < n + schedule->actors) {
      own = schedule;
      first = n;
    }
    n += schedule->actors;
  }
  const FirstProcesses processes(session, n);
  if (own == nullptr) return {};
  const std::vector<ActorRecord> records = replayed(session, processes, *own, first, replay);
  std::vector<Measured> measured;
  if (!session.first()) return measured;
  auto next = records.begin();
  for (const Schedule* schedule : replay.jobs) {
    const auto end = next + schedule->actors;
    measured.push_back(combine({next, end}));
    next = end;
  }
  return measured;
}

#else

std::vector<Measured> replay_by_mpi(MpiSession&, const MpiReplay&) {
  throw EnvironmentError("ringsim was built without MPI");
}

#endif

}  // namespace ringsim::replay
