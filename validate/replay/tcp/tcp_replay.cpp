#include "validate/replay/tcp/tcp_replay.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

/// Numbers a process through all jobs. `hosts`: [process].
TcpPart part_of(const TcpReplay& replay, int process, const std::string& address,
                const std::vector<std::string>& hosts) {
  const auto [job, actor] = actor_of(replay, process);
  const auto first = hosts.begin() + (process - actor);
  return {.process = process,
          .job = job,
          .actor = actor,
          .address = address,
          .hosts = {first, first + replay.jobs[job].schedule->actors},
          .key = replay.key};
}

/// One process's part, from joining to its record. What fails is said to the process that leads, and thrown.
void take_part(asio::io_context& io, Control::Socket control, const TcpReplay& replay, const TcpPart& part,
               const Secret& secret) {
  const TcpJob& job = replay.jobs[part.job];
  const Schedule& schedule = *job.schedule;
  TcpExchange exchange(io, std::move(control), schedule, part, secret, replay.options);
  const auto tell = [&](const std::exception& error, const char* kind) {
    exchange.say({{"failed", cut_text(error.what())}, {"kind", kind}});
  };
  try {
    prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps end when they should: 50 us by default
    const int priority = replay.options.priority;
    if (priority != 0 && setpriority(PRIO_PROCESS, 0, priority) != 0)
      throw EnvironmentError(fmt::format("cannot set a priority of {}: {}", priority, std::strerror(errno)));
    exchange.join();
    exchange.say_record(replay_actor(schedule, part.actor, exchange, replay.repeats, job.program));
    exchange.wait_for_end();
  } catch (const PeerLost& error) {
    tell(error, "lost");
    // Its peer may have lost one of its own: only the process that leads knows which failed first.
    if (const auto reason = exchange.wait_for_reason()) throw PeerLost(*reason);
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
  if (!is_in) throw EnvironmentError(fmt::format("cannot enter {}: {}", net_namespace, std::strerror(why)));
}

/// What a child does. Never returns an error: it has been said, or the child says it by its exit code.
void child(int control, const TcpReplay& replay, const TcpPart& part, const std::string& net_namespace,
           const Secret& secret) {
  prctl(PR_SET_NAME, fmt::format("ringsim-{}", part.process).c_str());
  try {
    asio::io_context io(1);
    Control::Socket socket(io, asio::generic::stream_protocol(AF_UNIX, 0), control);
    try {
      if (!net_namespace.empty()) enter(net_namespace);
    } catch (const EnvironmentError& error) {
      Control(std::move(socket)).send({{"failed", error.what()}, {"kind", "environment"}});
      _exit(1);
    }
    take_part(io, std::move(socket), replay, part, secret);
  } catch (...) {
    _exit(1);
  }
}

}  // namespace

TcpOutcome replay_here(const TcpReplay& replay, const std::vector<TcpPlace>& places, const TcpMeanwhile& meanwhile) {
  const int n = n_processes(replay);
  ensure(places.empty() || places.size() == static_cast<std::size_t>(n), "each process of a replay has a place");
  const Secret secret = Secret::random();
  std::vector<TcpPlace> place(places);
  place.resize(static_cast<std::size_t>(n));
  std::vector<std::string> hosts;
  for (const TcpPlace& of : place) hosts.push_back(of.address);
  Children children;
  std::vector<int> controls;
  for (int process = 0; process < n; ++process) {
    const TcpPlace& here = place[static_cast<std::size_t>(process)];
    const TcpPart part = part_of(replay, process, here.address, hosts);
    controls.push_back(children.start([&](int control) { child(control, replay, part, here.net_namespace, secret); }));
  }
  asio::io_context io(1);
  Coordinator coordinator(io, replay, secret, children);
  for (int process = 0; process < n; ++process)
    coordinator.add_child(
        Control::Socket(io, asio::generic::stream_protocol(AF_UNIX, 0), controls[static_cast<std::size_t>(process)]),
        process);
  return coordinator.lead(true, meanwhile);
}

TcpOutcome lead_replay(const TcpReplay& replay, const TcpHosts& hosts, const Secret& secret) {
  const int n = n_processes(replay);
  ensure(hosts.hosts.size() == static_cast<std::size_t>(n), "each process of a replay has a host");
  const std::string address = own_address(hosts, 0);
  Children children;
  const TcpPart part = part_of(replay, 0, address, hosts.hosts);
  const int own = children.start([&](int control) { child(control, replay, part, "", secret); });
  asio::io_context io(1);
  Coordinator coordinator(io, replay, secret, children);
  coordinator.add_child(Control::Socket(io, asio::generic::stream_protocol(AF_UNIX, 0), own), 0);
  try {
    try {
      coordinator.open({asio::ip::make_address(address), hosts.port});
    } catch (const boost::system::system_error& error) {
      throw EnvironmentError(
          fmt::format("cannot listen on port {}: {}\n  hint: the first line of the hosts file must have an address of "
                      "this machine and a free port",
                      hosts.port, error.code().message()));
    }
    const auto all = [&] { return coordinator.joined().size() == static_cast<std::size_t>(n); };
    coordinator.run_until(all, std::chrono::steady_clock::now() + replay.options.timeout, [&] {
      std::string missing;
      for (int process = 0; process < n; ++process)
        if (coordinator.joined().count(process) == 0)
          missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", process_name(replay, process),
                                 hosts.hosts[static_cast<std::size_t>(process)]);
      const std::string others = coordinator.turned_away();
      return fmt::format(
          "{} did not connect within {:g} s{}\n  hint: start it there with its --rank; to wait longer, use --timeout",
          missing, std::chrono::duration<double>(replay.options.timeout).count(), others.empty() ? "" : "; " + others);
    });
    coordinator.close();  // a process that comes for the next point finds nobody yet, and tries again
    return coordinator.lead(false, {});
  } catch (const std::exception& error) {
    coordinator.abort(fmt::format("process 0 reports: {}", error.what()));
    throw;
  }
}

void follow_replay(const TcpReplay& replay, const TcpHosts& hosts, int process, const Secret& secret) {
  const std::string address = own_address(hosts, process);
  const Tcp::endpoint here(asio::ip::make_address(address), 0);
  asio::io_context io(1);
  const auto deadline = std::chrono::steady_clock::now() + replay.options.timeout;
  const auto check_time = [&](const boost::system::error_code& error) {
    if (replay.options.stop != nullptr && *replay.options.stop) throw Interrupted("the replay was stopped");
    if (std::chrono::steady_clock::now() >= deadline)
      throw EnvironmentError(
          fmt::format("process 0 does not answer at {} port {} within {:g} s: {}", hosts.hosts.front(), hosts.port,
                      std::chrono::duration<double>(replay.options.timeout).count(), error.message()));
  };
  for (;;) {
    boost::system::error_code error;
    const auto found =
        Tcp::resolver(io).resolve(here.protocol(), hosts.hosts.front(), fmt::format("{}", hosts.port), error);
    Tcp::socket socket(io);
    if (!error) socket.open(here.protocol(), error);
    if (!error) socket.bind(here, error);
    if (error == boost::system::errc::address_not_available)
      throw EnvironmentError(
          fmt::format("{} is not an address of this machine\n  hint: check the hosts file and --rank", address));
    if (!error) {
      error = asio::error::would_block;
      socket.async_connect(found.begin()->endpoint(), [&](const boost::system::error_code& how) { error = how; });
      while (error == asio::error::would_block) {
        io.restart();
        io.run_for(100ms);
        if (error == asio::error::would_block) check_time(asio::error::timed_out);
      }
    }
    if (!error)
      return take_part(io, Control::Socket(std::move(socket)), replay, part_of(replay, process, address, hosts.hosts),
                       secret);
    check_time(error);
    std::this_thread::sleep_for(100ms);
  }
}

}  // namespace ringsim::replay
