#include "validate/replay/mpi/mpi_processes.hpp"

#ifdef RINGSIM_MPI

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

#include "sim/base/error.hpp"

namespace ringsim::replay {

namespace {

void finish(MPI_Request request, const MpiPatience& patience, std::string_view late) {
  for (int there = 0;;) {
    require_mpi(MPI_Test(&request, &there, MPI_STATUS_IGNORE), "waiting for other processes");
    if (there != 0) return;
    patience.stand_by(late);
  }
}

}  // namespace

void require_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw EnvironmentError(fmt::format("MPI: {}: {}", what, std::string(text.data(), static_cast<std::size_t>(length))));
}

void MpiPatience::stand_by(std::string_view what) const {
  if (stop_ != nullptr && *stop_) throw Interrupted("a replay was under way");
  if (std::chrono::steady_clock::now() > deadline_)
    throw EnvironmentError(fmt::format("{} within {:g} s", what, std::chrono::duration<double>(timeout_).count()));
  std::this_thread::yield();
}

FirstProcesses::FirstProcesses(const MpiSession& session, int n) {
  if (session.size() < n)
    throw InputError(
        "", fmt::format("expected {} processes or more, found {}", n, session.size()),
        fmt::format("use mpirun -n {}, one process per rank and per helper, such as a parameter server", n));
  session.wait_for_all();  // some had no part in the replay before, and would keep the cores busy
  MPI_Comm_split(MPI_COMM_WORLD, session.rank() < n ? 0 : MPI_UNDEFINED, session.rank(), &processes_);
  if (processes_ != MPI_COMM_NULL) MPI_Comm_set_errhandler(processes_, MPI_ERRORS_RETURN);
}

FirstProcesses::~FirstProcesses() {
  // While an error is on its way messages may also be, and this would wait for them.
  if (processes_ != MPI_COMM_NULL && std::uncaught_exceptions() == 0) MPI_Comm_free(&processes_);
}

void FirstProcesses::barrier(const MpiPatience& patience) const {
  MPI_Request request = MPI_REQUEST_NULL;
  require_mpi(MPI_Ibarrier(processes_, &request), "a barrier");
  finish(request, patience, "not all processes reached the start of a run");
}

void FirstProcesses::tell(std::span<char> text, const MpiPatience& patience) const {
  MPI_Request request = MPI_REQUEST_NULL;
  require_mpi(MPI_Ibcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, processes_, &request), "a broadcast");
  finish(request, patience, "process 0 did not announce its address");
}

std::vector<ActorRecord> FirstProcesses::gathered(const ActorRecord& mine) const {
  int rank = 0, size = 0;
  MPI_Comm_rank(processes_, &rank);
  MPI_Comm_size(processes_, &size);
  const std::size_t n_times = mine.times.size(), n = n_times + 2, n_text = 256;
  const std::size_t all = rank == 0 ? static_cast<std::size_t>(size) : 0;
  std::vector<std::int64_t> numbers{mine.checked.value_or(0), mine.wrong}, all_numbers(all * n);
  for (const auto time : mine.times) numbers.push_back(time.count());
  std::string text = mine.first_wrong, all_text(all * n_text, '\0');
  text.resize(n_text);
  require_mpi(MPI_Gather(numbers.data(), static_cast<int>(n), MPI_INT64_T, all_numbers.data(), static_cast<int>(n),
                         MPI_INT64_T, 0, processes_),
              "results");
  require_mpi(MPI_Gather(text.data(), static_cast<int>(n_text), MPI_CHAR, all_text.data(), static_cast<int>(n_text),
                         MPI_CHAR, 0, processes_),
              "results");
  std::vector<ActorRecord> records(all);
  for (std::size_t i = 0; i < all; ++i) {
    records[i].checked = all_numbers[i * n];
    records[i].wrong = all_numbers[i * n + 1];
    for (std::size_t t = 0; t < n_times; ++t) records[i].times.emplace_back(all_numbers[i * n + 2 + t]);
    records[i].first_wrong = std::string(&all_text[i * n_text], strnlen(&all_text[i * n_text], n_text));
  }
  return records;
}

}  // namespace ringsim::replay
#endif
