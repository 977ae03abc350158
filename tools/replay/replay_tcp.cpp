#include "tools/replay/replay_tcp.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "tools/exit.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"

namespace ringsim::tools {

using replay::TcpHosts;
using replay::TcpOutcome;

namespace {

replay::TcpOptions options_of(const ReplayArguments& arguments) {
  replay::TcpOptions options;
  options.timeout = arguments.timeout;
  options.stop = &stop_requested;
  return options;
}

class OnThisMachine : public ReplayBackend {
 public:
  explicit OnThisMachine(const ReplayArguments& arguments) : options_(options_of(arguments)) {}
  int most_ranks() const override { return 1024; }  // a process each, and a socket for each of its peers
  bool does_training() const override { return true; }
  std::vector<replay::Measured> replay(const ReplayPoint& point) override {
    const TcpOutcome outcome = replay::replay_here(tcp_replay_of(point, options_));
    warnings_.say(outcome.notes);
    return outcome.jobs;
  }

 private:
  replay::TcpOptions options_;
  Warnings warnings_;
};

class OnHosts : public ReplayBackend {
 public:
  explicit OnHosts(const ReplayArguments& arguments)
      : options_(options_of(arguments)),
        hosts_(replay::read_hosts(arguments.hosts)),
        secret_(replay::Secret::from_file(arguments.secret_file)),
        process_(*arguments.rank) {
    options_.receive_buffer = 0;  // real networks are longer than any fixed window
    file_ = arguments.hosts;
    if (process_ >= static_cast<int>(hosts_.hosts.size()))
      throw InputError("--rank", fmt::format("expected a process of {}, 0 to {}, found {}", file_,
                                             hosts_.hosts.size() - 1, process_));
  }
  bool writes() const override { return process_ == 0; }
  bool does_training() const override { return true; }
  std::vector<replay::Measured> replay(const ReplayPoint& point) override {
    const replay::TcpReplay replay = tcp_replay_of(point, options_);
    if (const int n = replay::n_processes(replay); n != static_cast<int>(hosts_.hosts.size()))
      throw InputError(file_,
                       fmt::format("expected one line for each of {} processes, found {}", n, hosts_.hosts.size()),
                       "write one line per rank, then one per helper, such as a parameter server");
    if (process_ != 0) {
      follow_replay(replay, hosts_, process_, secret_);
      return {};
    }
    const TcpOutcome outcome = lead_replay(replay, hosts_, secret_);
    warnings_.say(outcome.notes);
    return outcome.jobs;
  }

 private:
  replay::TcpOptions options_;
  TcpHosts hosts_;
  replay::Secret secret_;
  int process_;
  std::string file_;
  Warnings warnings_;
};

}  // namespace

replay::TcpReplay tcp_replay_of(const ReplayPoint& point, const replay::TcpOptions& options) {
  replay::TcpReplay replay{.jobs = {}, .repeats = point.repeats, .options = options, .key = point.key};
  for (const PlacedSchedule& job : point.jobs)
    replay.jobs.push_back({job.job, &job.schedule.schedule(), point.program});
  return replay;
}

std::unique_ptr<ReplayBackend> make_tcp_backend(const ReplayArguments& arguments) {
  if (arguments.hosts.empty()) return std::make_unique<OnThisMachine>(arguments);
  if (arguments.secret_file.empty())
    throw UsageError("--hosts", "expected --secret-file as well",
                     "create one with (umask 077; openssl rand -hex 32 > secret) and copy it to all hosts");
  return std::make_unique<OnHosts>(arguments);
}

}  // namespace ringsim::tools
