#include "validate/replay/mpi/mpi_session.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "sim/base/error.hpp"

#ifdef RINGSIM_MPI
#include <mpi.h>

#include <chrono>
#include <exception>
#include <thread>
#endif

namespace ringsim::replay {

#ifdef RINGSIM_MPI

namespace {
// For all_come() alone, so that its messages are not mistaken for others.
MPI_Comm endings = MPI_COMM_NULL;

constexpr auto ever = std::chrono::steady_clock::time_point::max();

bool barrier(MPI_Comm processes, std::chrono::steady_clock::time_point until) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(processes, &request);
  int there = 0;
  while (MPI_Test(&request, &there, MPI_STATUS_IGNORE), there == 0) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}
}  // namespace

std::unique_ptr<MpiSession> MpiSession::join() {
  bool by_mpi = false;  // MPI_Init alone would take a third of a second
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"})
    by_mpi = by_mpi || std::getenv(variable) != nullptr;
  if (!by_mpi) return nullptr;
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
    throw EnvironmentError("MPI cannot be started");
  std::unique_ptr<MpiSession> session(new MpiSession);
  MPI_Comm_rank(MPI_COMM_WORLD, &session->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &session->size_);
  MPI_Comm_dup(MPI_COMM_WORLD, &endings);
  return session;
}

MpiSession::~MpiSession() { MPI_Finalize(); }

int MpiSession::number_on_machine() const {
  MPI_Comm here = MPI_COMM_NULL;
  int number = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &number);
  MPI_Comm_free(&here);
  return number;
}

bool MpiSession::agree(const std::function<std::string()>& read) {
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
    failed = std::make_exception_ptr(
        EnvironmentError(fmt::format("process {} of {} has read a different scenario from the first\n  hint: check "
                                     "that the file is the same on all machines",
                                     rank_, size_)));
  int mine = failed ? rank_ : size_, lowest = 0;
  MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (lowest == size_) return true;
  if (lowest == rank_) std::rethrow_exception(failed);
  return false;
}

bool MpiSession::all_come(bool patient) {
  if (given_up_) return false;
  return barrier(endings, patient ? ever : std::chrono::steady_clock::now() + std::chrono::seconds(1));
}
void MpiSession::wait_for_all() const { barrier(MPI_COMM_WORLD, ever); }

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();
}

#else

std::unique_ptr<MpiSession> MpiSession::join() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(variable);
    if (size != nullptr && std::atoi(size) > 1)
      throw EnvironmentError(
          fmt::format("started by MPI as one of {} processes, but ringsim was built without MPI\n  hint: install MPI "
                      "and rebuild (cmake -DRINGSIM_MPI=ON shows what is missing)",
                      size));
  }
  return nullptr;
}

MpiSession::~MpiSession() = default;
int MpiSession::number_on_machine() const { return 0; }
bool MpiSession::agree(const std::function<std::string()>&) { return true; }
bool MpiSession::all_come(bool) { return true; }
void MpiSession::wait_for_all() const {}
void MpiSession::abort(int code) { std::_Exit(code); }

#endif

}  // namespace ringsim::replay
