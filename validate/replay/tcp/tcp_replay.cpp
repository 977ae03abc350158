#include "validate/replay/tcp/tcp_replay.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "sim/base/error.hpp"
#include "validate/replay/tcp/coordinator.hpp"
#include "validate/replay/tcp/tcp_exchange.hpp"

namespace ringsim::replay {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Json = Control::Json;
using namespace std::chrono_literals;

namespace {

/// One process's part, from joining to its record. What fails is said to the process that leads, and thrown.
void take_part(asio::io_context& io, Control::Socket control, const TcpReplay& replay, int process,
               const std::string& own_address) {
  const auto [job, actor] = actor_of(replay, process);
  const Schedule& schedule = *replay.jobs[job].schedule;
  TcpExchange exchange(io, std::move(control), schedule, actor, own_address, replay.options);
  const auto tell = [&](const std::exception& error, const char* kind) {
    exchange.say({{"failed", error.what()}, {"kind", kind}});
  };
  try {
    prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps end when they should: 50 us by default
    const int priority = replay.options.priority;
    if (priority != 0 && setpriority(PRIO_PROCESS, 0, priority) != 0)
      throw EnvironmentError(fmt::format("a priority of {} is not to be had: {}", priority, std::strerror(errno)));
    exchange.join(process, replay.key);
    const ActorRecord record = replay_actor(schedule, actor, exchange, replay.repeats);
    Json times = Json::array();
    for (const auto& time : record.times) times.push_back(time.count());
    exchange.say({{"times_ns", times}, {"wrong", record.wrong}, {"first_wrong", record.first_wrong}});
    exchange.wait_for_end();
  } catch (const PeerLost& error) {
    tell(error, "lost");
    throw;
  } catch (const Late& error) {
    tell(error, "late");
    throw;
  } catch (const InvariantError& error) {
    tell(error, "invariant");
    throw;
  } catch (const std::exception& error) {
    tell(error, "environment");
    throw;
  }
}

void enter(const std::string& net_namespace) {
  const int file = open(net_namespace.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_in = file != -1 && setns(file, CLONE_NEWNET) == 0;
  const int why = errno;
  if (file != -1) close(file);
  if (!is_in) throw EnvironmentError(fmt::format("{}: cannot be entered: {}", net_namespace, std::strerror(why)));
}

/// What a child does. Never returns an error: it has been said, or the child says it by its exit code.
void child(int control, const TcpReplay& replay, int process, const TcpPlace& place) {
  prctl(PR_SET_NAME, fmt::format("ringsim-{}", process).c_str());
  try {
    asio::io_context io(1);
    Control::Socket socket(io, asio::generic::stream_protocol(AF_UNIX, 0), control);
    try {
      if (!place.net_namespace.empty()) enter(place.net_namespace);
    } catch (const EnvironmentError& error) {
      Control(std::move(socket)).send({{"failed", error.what()}, {"kind", "environment"}});
      _exit(1);
    }
    take_part(io, std::move(socket), replay, process, place.address);
  } catch (...) {
    _exit(1);
  }
}

}  // namespace

TcpOutcome replay_here(const TcpReplay& replay, const std::vector<TcpPlace>& places, const TcpMeanwhile& meanwhile) {
  const int n = n_processes(replay);
  ensure(places.empty() || places.size() == static_cast<std::size_t>(n), "each process of a replay has a place");
  Children children;
  std::vector<int> controls;
  std::vector<std::string> hosts;
  for (int process = 0; process < n; ++process) {
    const TcpPlace place = places.empty() ? TcpPlace{} : places[static_cast<std::size_t>(process)];
    hosts.push_back(place.address);
    controls.push_back(children.start([&](int control) { child(control, replay, process, place); }));
  }
  asio::io_context io(1);
  Coordinator coordinator(io, replay, children);
  for (int process = 0; process < n; ++process)
    coordinator.add(
        Control::Socket(io, asio::generic::stream_protocol(AF_UNIX, 0), controls[static_cast<std::size_t>(process)]),
        process);
  return coordinator.lead(hosts, true, meanwhile);
}

TcpHosts read_hosts(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  TcpHosts hosts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    std::string host = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
    const std::string where = fmt::format("{}:{}", path, number);
    const auto colon = host.find(':');
    if (hosts.hosts.empty()) {
      const char* end = host.data() + host.size();
      const auto [after, error] = std::from_chars(host.data() + std::min(colon + 1, host.size()), end, hosts.port);
      if (colon == std::string::npos || colon == 0 || error != std::errc() || after != end || hosts.port == 0)
        throw InputError(where, fmt::format("expected HOST:PORT, found \"{}\"", host),
                         "the first process listens there for the others, say 10.0.0.1:7117");
      host.resize(colon);
    } else if (host.find_first_of(" \t:") != std::string::npos) {
      throw InputError(where, fmt::format("expected one host, found \"{}\"", host),
                       "one line per process; only the first has a port");
    }
    hosts.hosts.push_back(host);
  }
  if (hosts.hosts.empty()) throw InputError(path, "expected one host per line, found none");
  return hosts;
}

TcpOutcome lead_replay(const TcpReplay& replay, const TcpHosts& hosts) {
  const int n = n_processes(replay);
  ensure(hosts.hosts.size() == static_cast<std::size_t>(n), "each process of a replay has a host");
  Children children;
  const int own = children.start([&](int control) { child(control, replay, 0, {.address = "", .net_namespace = ""}); });
  asio::io_context io(1);
  Coordinator coordinator(io, replay, children);
  coordinator.add(Control::Socket(io, asio::generic::stream_protocol(AF_UNIX, 0), own), 0);
  try {
    Tcp::acceptor acceptor(io);
    try {
      const Tcp::endpoint here(asio::ip::address_v4::any(), hosts.port);
      acceptor.open(here.protocol());
      acceptor.set_option(Tcp::acceptor::reuse_address(true));
      acceptor.bind(here);
      acceptor.listen();
    } catch (const boost::system::system_error& error) {
      throw EnvironmentError(fmt::format("port {} cannot be listened at: {}\n  hint: choose another in the hosts file",
                                         hosts.port, error.code().message()));
    }
    const std::function<void()> accept_next = [&] {
      acceptor.async_accept([&](const boost::system::error_code& error, Tcp::socket socket) {
        if (error) return;
        coordinator.add(Control::Socket(std::move(socket)));
        accept_next();
      });
    };
    accept_next();
    const auto all = [&] { return coordinator.joined().size() == static_cast<std::size_t>(n); };
    coordinator.run_until(all, std::chrono::steady_clock::now() + replay.options.timeout, [&] {
      std::string missing;
      for (int process = 0; process < n; ++process)
        if (coordinator.joined().count(process) == 0)
          missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", process_name(replay, process),
                                 hosts.hosts[static_cast<std::size_t>(process)]);
      return fmt::format(
          "{} did not come within {:g} s\n  hint: start it there with its --rank; --timeout sets how long "
          "it is waited for",
          missing, std::chrono::duration<double>(replay.options.timeout).count());
    });
    acceptor.close();  // a process that comes for the next point finds nobody yet, and tries again
    return coordinator.lead(hosts.hosts, false, {});
  } catch (const std::exception& error) {
    coordinator.abort(fmt::format("process 0 says: {}", error.what()));
    throw;
  }
}

void follow_replay(const TcpReplay& replay, const TcpHosts& hosts, int process) {
  asio::io_context io(1);
  const auto deadline = std::chrono::steady_clock::now() + replay.options.timeout;
  const auto wait_or_end = [&](const boost::system::error_code& error) {
    if (replay.options.stop != nullptr && *replay.options.stop) throw Interrupted("the replay was stopped");
    if (std::chrono::steady_clock::now() >= deadline)
      throw EnvironmentError(fmt::format("process 0 does not answer at {}:{} within {:g} s: {}", hosts.hosts.front(),
                                         hosts.port, std::chrono::duration<double>(replay.options.timeout).count(),
                                         error.message()));
    std::this_thread::sleep_for(100ms);
  };
  Tcp::socket socket(io);
  for (boost::system::error_code error;; wait_or_end(error)) {
    const auto found = Tcp::resolver(io).resolve(Tcp::v4(), hosts.hosts.front(), std::to_string(hosts.port), error);
    if (error) continue;
    socket = Tcp::socket(io);
    socket.connect(found.begin()->endpoint(), error);
    if (!error) break;
  }
  take_part(io, Control::Socket(std::move(socket)), replay, process, "");
}

}  // namespace ringsim::replay
