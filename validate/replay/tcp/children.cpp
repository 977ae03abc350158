#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "sim/base/error.hpp"
#include "validate/replay/tcp/coordinator.hpp"

namespace ringsim::replay {

Children::~Children() {
  for (std::size_t i = 0; i < pids_.size(); ++i)
    if (!status_[i]) kill(pids_[i], SIGKILL);
  for (std::size_t i = 0; i < pids_.size(); ++i)
    while (!status_[i] && waitpid(pids_[i], nullptr, 0) == -1 && errno == EINTR) {
    }
}

Control::Socket::native_handle_type Children::start(const std::function<void(int)>& work) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw EnvironmentError(fmt::format("no sockets for {} processes: {}", size() + 1, std::strerror(errno)));
  std::fflush(nullptr);  // what waits to be written is the parent's, and a child that flushes would write it again
  const pid_t parent = getpid(), child = fork();
  if (child == -1) {
    const int why = errno;
    close(ends[0]);
    close(ends[1]);
    throw EnvironmentError(fmt::format("cannot start process {} of the replay: {}", size(), std::strerror(why)));
  }
  if (child == 0) {
    std::signal(SIGINT, SIG_IGN);  // the terminal sends it to all; the parent decides
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGHUP, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    for (const int other : ends_) close(other);
    close(ends[0]);
    work(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  pids_.push_back(child);
  ends_.push_back(ends[0]);
  status_.emplace_back();
  return ends[0];
}

std::optional<std::string> Children::ended(std::size_t i) {
  int status = 0;
  if (!status_[i] && waitpid(pids_[i], &status, WNOHANG) == pids_[i]) status_[i] = status;
  if (!status_[i]) return std::nullopt;
  if (WIFSIGNALED(*status_[i]))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(*status_[i]), strsignal(WTERMSIG(*status_[i])));
  return fmt::format("ended with exit code {}", WEXITSTATUS(*status_[i]));
}

}  // namespace ringsim::replay
