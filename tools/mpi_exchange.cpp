#include "tools/mpi_exchange.hpp"

#include <fmt/format.h>

#include "sim/error.hpp"

#ifdef RINGSIM_MPI
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#endif

namespace ringsim::tools {

#ifdef RINGSIM_MPI

namespace {

using namespace replay;

void require(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw EnvironmentError(fmt::format("MPI: {}: {}", what, std::string(text.data(), static_cast<std::size_t>(length))));
}

int count_of(std::size_t elements) {
  if (elements <= INT_MAX) return static_cast<int>(elements);
  throw InputError("", fmt::format("expected messages of at most {} elements, found one of {}", INT_MAX, elements),
                   "MPI counts in 32 bits; more ranks or segments make messages smaller");
}

/// Messages of one connection have the sender and a tag of their own, and MPI keeps the order of such.
class MpiExchange : public Exchange {
 public:
  /// `first`: the process of actor 0.
  MpiExchange(MPI_Comm processes, int first, const MpiReplay& replay)
      : processes_(processes), first_(first), timeout_(replay.timeout), stop_(replay.stop) {}

  void start_send(const Connection& connection, std::span<const float> data, Ticket ticket) override {
    require(MPI_Isend(data.data(), count_of(data.size()), MPI_FLOAT, first_ + connection.to, connection.channel,
                      processes_, add(ticket, -1)),
            "a send");
  }
  void start_receive(const Connection& connection, std::span<float> data, Ticket ticket) override {
    const int count = count_of(data.size());
    require(MPI_Irecv(data.data(), count, MPI_FLOAT, first_ + connection.from, connection.channel, processes_,
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
      if (done.empty()) stand_by("nothing was done");
    } while (done.empty());
  }

  Moment barrier() override {
    deadline_ = now() + timeout_;
    MPI_Request request = MPI_REQUEST_NULL;
    require(MPI_Ibarrier(processes_, &request), "a barrier");
    for (int there = 0;;) {
      require(MPI_Test(&request, &there, MPI_STATUS_IGNORE), "a barrier");
      if (there != 0) break;
      stand_by("not all processes came to the begin of a run");
    }
    const Moment begin = now();
    deadline_ = begin + timeout_;
    return begin;
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
      for (int i = 0; i < n_done; ++i) require(statuses_[static_cast<std::size_t>(i)].MPI_ERROR, "a message");
    }
    require(code, "messages");
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

  // Leaves the core to others: there may be more processes than cores.
  void stand_by(const char* what) const {
    if (stop_ != nullptr && *stop_) throw Interrupted("a replay was under way");
    if (now() > deadline_)
      throw EnvironmentError(fmt::format("{} within {:g} s", what, std::chrono::duration<double>(timeout_).count()));
    std::this_thread::yield();
  }

  MPI_Comm processes_;
  int first_;
  std::chrono::nanoseconds timeout_;
  const std::atomic<bool>* stop_;
  Moment deadline_{};
  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;  // [request]
  std::vector<Computing> computing_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

/// Those of the first `n` processes, while it lives; null for the others.
class FirstProcesses {
 public:
  FirstProcesses(const MpiSession& session, int n) {
    MPI_Comm_split(MPI_COMM_WORLD, session.rank() < n ? 0 : MPI_UNDEFINED, session.rank(), &processes_);
    if (processes_ != MPI_COMM_NULL) MPI_Comm_set_errhandler(processes_, MPI_ERRORS_RETURN);
  }
  ~FirstProcesses() {
    // While an error is on its way messages may be, too, and this would wait for them.
    if (processes_ != MPI_COMM_NULL && std::uncaught_exceptions() == 0) MPI_Comm_free(&processes_);
  }
  FirstProcesses(const FirstProcesses&) = delete;
  FirstProcesses& operator=(const FirstProcesses&) = delete;
  MPI_Comm get() const { return processes_; }

 private:
  MPI_Comm processes_ = MPI_COMM_NULL;
};

/// At process 0: [process] what each saw; else nothing.
std::vector<ActorRecord> gathered(MPI_Comm processes, const ActorRecord& mine) {
  int rank = 0, size = 0;
  MPI_Comm_rank(processes, &rank);
  MPI_Comm_size(processes, &size);
  const std::size_t n_times = mine.times.size(), n = n_times + 1, n_text = 256;
  const std::size_t all = rank == 0 ? static_cast<std::size_t>(size) : 0;
  std::vector<std::int64_t> numbers{mine.wrong}, all_numbers(all * n);
  for (const auto time : mine.times) numbers.push_back(time.count());
  std::string text = mine.first_wrong, all_text(all * n_text, '\0');
  text.resize(n_text);
  require(MPI_Gather(numbers.data(), static_cast<int>(n), MPI_INT64_T, all_numbers.data(), static_cast<int>(n),
                     MPI_INT64_T, 0, processes),
          "results");
  require(MPI_Gather(text.data(), static_cast<int>(n_text), MPI_CHAR, all_text.data(), static_cast<int>(n_text),
                     MPI_CHAR, 0, processes),
          "results");
  std::vector<ActorRecord> records(all);
  for (std::size_t i = 0; i < all; ++i) {
    records[i].wrong = all_numbers[i * n];
    for (std::size_t t = 0; t < n_times; ++t) records[i].times.emplace_back(all_numbers[i * n + 1 + t]);
    records[i].first_wrong = std::string(&all_text[i * n_text], strnlen(&all_text[i * n_text], n_text));
  }
  return records;
}

std::vector<ActorRecord> replayed(MpiSession& session, MPI_Comm processes, const Schedule& own, int first,
                                  const MpiReplay& replay) {
  try {
    MpiExchange exchange(processes, first, replay);
    return gathered(processes, replay_actor(own, session.rank() - first, exchange, replay.repeats));
  } catch (...) {
    session.give_up();
    throw;
  }
}

}  // namespace

std::vector<Measured> replay_by_mpi(MpiSession& session, const MpiReplay& replay) {
  int n = 0, first = 0;
  const Schedule* own = nullptr;
  for (const PlacedSchedule& job : replay.jobs) {
    const Schedule& schedule = job.schedule.schedule();
    if (session.rank() >= n && session.rank() < n + schedule.actors) {
      own = &schedule;
      first = n;
    }
    n += schedule.actors;
  }
  if (session.size() < n)
    throw InputError(
        "", fmt::format("expected {} processes or more, found {}", n, session.size()),
        fmt::format("mpirun -n {}: one for each rank, and one for each helper, such as a parameter server", n));
  session.wait_for_all();  // some had no part in the replay before, and would keep the cores busy
  const FirstProcesses processes(session, n);
  if (own == nullptr) return {};
  const std::vector<ActorRecord> records = replayed(session, processes.get(), *own, first, replay);
  std::vector<Measured> measured;
  if (!session.first()) return measured;
  auto next = records.begin();
  for (const PlacedSchedule& job : replay.jobs) {
    const auto end = next + job.schedule.schedule().actors;
    measured.push_back(combine({next, end}));
    next = end;
  }
  return measured;
}

#else

std::vector<replay::Measured> replay_by_mpi(MpiSession&, const MpiReplay&) {
  throw EnvironmentError("ringsim was built without MPI");
}

#endif

}  // namespace ringsim::tools
