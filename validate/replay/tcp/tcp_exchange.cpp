#include "validate/replay/tcp/tcp_exchange.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

namespace ringsim::replay {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

static_assert(std::endian::native == std::endian::little, "lengths and floats go out as they lie in memory");

namespace {

struct Sending {
  std::span<const float> data;
  Ticket ticket;
};
struct Receiving {
  std::span<float> data;
  Ticket ticket;
};

/// The first that a connection carries.
struct Hello {
  std::uint32_t from = 0, channel = 0;
  std::array<char, 64> proof{};
};
static_assert(sizeof(Hello) == 72);

// A line has more than this only if it is not one of a replay.
constexpr std::size_t most_lines = 16, most_ports = 10000, times_of_line = 2000;
// Beyond this a begin is no moment of this machine's clock.
constexpr auto longest_lead = 60s;
// How long a process that lost a peer waits to hear why. The process that leads takes 300 ms to find out which process
// failed first (coordinator.cpp); chosen, three times as long.
constexpr auto longest_wait_for_reason = 1s;

const char* refusal_of(const std::string& word) {
  if (word == "secret")
    return "the secret of this process differs from that of process 0\n  hint: check that the --secret-file is the "
           "same on all machines";
  if (word == "scenario")
    return "this process replays a different scenario or message size than process 0\n  hint: check that the file and "
           "the options are the same on all machines";
  if (word == "rank") return "another process already uses this --rank\n  hint: give each process a different --rank";
  throw BadLine("expected \"secret\", \"scenario\" or \"rank\" as \"refused\"");
}

}  // namespace

struct TcpExchange::Outgoing {
  explicit Outgoing(asio::io_context& io) : socket(io) {}
  Tcp::socket socket;
  Actor to = 0;
  Hello hello;
  std::uint64_t length = 0;
  std::deque<Sending> queue;  // the first is under way
};

/// A connection that has yet to prove that it belongs to the replay.
struct TcpExchange::Knock {
  Tcp::socket socket;
  Hello hello;
  Moment came;
};

struct TcpExchange::Incoming {
  explicit Incoming(asio::io_context& io) : socket(io) {}
  Tcp::socket socket;
  Actor from = 0;
  bool connected = false;
  std::uint64_t length = 0;
  std::deque<Receiving> queue;
};

TcpExchange::TcpExchange(asio::io_context& io, Control::Socket control, const Schedule& schedule, TcpPart part,
                         const Secret& secret, const TcpOptions& options)
    : io_(io),
      control_(std::move(control)),
      schedule_(schedule),
      part_(std::move(part)),
      actor_(part_.actor),
      secret_(secret),
      options_(options),
      entrance_(io) {
  control_.listen(
      [this](const Control::Json& line) {
        if (line.contains("abort") && welcome_) {
          expect_members(line, {"abort"});
          aborted_ = line_text(line, "abort", longest_text);
        } else if (lines_.size() < most_lines) {
          lines_.push_back(line);
        } else {
          throw BadLine("expected fewer lines");
        }
      },
      [this](const std::string& why) {
        if (!ended_) ended_ = "lost the process that leads the replay: " + why;
      });
  each_op(schedule, actor_, [&](const Op& op) {
    if (op.what == Do::send) {
      auto& wire = outgoing_[{actor_, op.peer, op.channel}];
      if (!wire) wire = std::make_unique<Outgoing>(io);
      wire->to = op.peer;
    } else if (op.what == Do::receive || op.what == Do::receive_add) {
      auto& wire = incoming_[{op.peer, actor_, op.channel}];
      if (!wire) wire = std::make_unique<Incoming>(io);
      wire->from = op.peer;
    }
  });
}

TcpExchange::~TcpExchange() = default;

std::string TcpExchange::who(Actor actor) const {
  return fmt::format("{} {}", actor < schedule_.collective.ranks ? "rank" : "helper", actor);
}

Moment TcpExchange::now() const { return std::chrono::steady_clock::now(); }

void TcpExchange::lost(std::string why) {
  if (!lost_) lost_ = std::move(why);
}

std::optional<std::string> TcpExchange::wait_for_reason() {
  // The data that is still under way was that of the run, which has ended.
  error_code ignored;
  for (auto& [connection, wire] : outgoing_) wire->socket.close(ignored);
  for (auto& [connection, wire] : incoming_) wire->socket.close(ignored);
  const Moment until = now() + longest_wait_for_reason;
  while (!aborted_ && !ended_ && now() < until) {
    io_.run_one_for(20ms);
    if (io_.stopped()) io_.restart();
  }
  return aborted_;
}

void TcpExchange::step(Moment deadline, const char* waiting_for) {
  if (aborted_) throw PeerLost(*aborted_);
  if (ended_) throw PeerLost(*ended_);
  if (lost_) throw PeerLost(*lost_);
  if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed))
    throw Interrupted("the replay was stopped");
  const Moment at = now();
  if (at >= deadline)
    throw Late(fmt::format("{} took longer than {:g} s", waiting_for,
                           std::chrono::duration<double>(options_.timeout).count()));
  io_.run_one_for(std::min<std::chrono::nanoseconds>(deadline - at, 100ms));
  if (io_.stopped()) io_.restart();
}

Control::Json TcpExchange::next_line(const char* waiting_for) {
  // Whoever leads has a time-out of his own, and says more.
  const Moment deadline = now() + 3 * options_.timeout;
  while (lines_.empty()) step(deadline, waiting_for);
  Control::Json line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

template <class Read>
auto TcpExchange::hear(const char* waiting_for, Read read) {
  const Control::Json line = next_line(waiting_for);
  try {
    return read(line);
  } catch (const BadLine& bad) {
    throw EnvironmentError(fmt::format("the process that leads the replay sent an invalid line: {}", bad.what()));
  }
}

// What both ends of a connection need before it is made.
void TcpExchange::prepare(Tcp::socket::native_handle_type socket) {
  const auto note = [this](std::string text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
  };
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::string& congestion = options_.congestion;
  if (!congestion.empty() && setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                                        static_cast<socklen_t>(congestion.size())) != 0)
    note(fmt::format("TCP's congestion control is the system's, not {}: {}", congestion, std::strerror(errno)));
  int size = options_.receive_buffer;
  if (size == 0) return;
  if (setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0)  // beyond the limit: root's
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  int got = 0;
  socklen_t length = sizeof got;
  if (getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &got, &length) == 0 && got < 2 * size)  // Linux tells twice as much
    note(fmt::format("sockets have receive buffers of {} bytes, not {}, because net.core.rmem_max is too small",
                     got / 2, size));
}

// Both sides prove that they know the secret, for this connection alone.
void TcpExchange::introduce() {
  const std::string challenge = hear("joining", [](const Control::Json& line) {
    expect_members(line, {"challenge"});
    return line_digits(line, "challenge");
  });
  const std::string nonce = random_digits(), process = fmt::format("{}", part_.process);
  const auto port = entrance_.port();
  say({{"process", part_.process},
       {"port", port},
       {"key", part_.key},
       {"nonce", nonce},
       {"proof", secret_.proof({"join", challenge, nonce, process, fmt::format("{}", port), part_.key})}});
  hear("joining", [&](const Control::Json& line) {
    if (line.contains("refused")) {
      expect_members(line, {"refused"});
      throw EnvironmentError(refusal_of(line_text(line, "refused", 16)));
    }
    expect_members(line, {"welcome"});
    if (!same_proof(line_digits(line, "welcome"), secret_.proof({"lead", nonce, challenge, process})))
      throw BadLine("expected a proof that it has the same secret");
  });
  welcome_ = true;
  control_.trust();
}

std::vector<std::uint16_t> TcpExchange::hear_ports() {
  std::vector<std::uint16_t> ports;
  while (ports.size() < part_.hosts.size()) {
    hear("joining", [&](const Control::Json& line) {
      expect_members(line, {"session", "ports"});
      session_ = line_digits(line, "session");
      const auto more = line_wholes(line, "ports", 1, 65535, std::min(most_ports, part_.hosts.size() - ports.size()));
      if (more.empty()) throw BadLine("expected ports");
      ports.insert(ports.end(), more.begin(), more.end());
    });
  }
  return ports;
}

void TcpExchange::join() {
  try {
    entrance_.open({asio::ip::make_address(part_.address), 0}, [this](int socket) { prepare(socket); });
  } catch (const boost::system::system_error& error) {
    throw EnvironmentError(
        fmt::format("cannot listen at {}: {}{}", part_.address, error.code().message(),
                    error.code() == boost::system::errc::address_not_available
                        ? "\n  hint: this must be an address of this machine; check the hosts file and --rank"
                        : ""));
  }
  introduce();
  connect(hear_ports());
  say({{"connected", true}, {"notes", notes_}});
}

std::string TcpExchange::proof_of(const Connection& connection) const {
  return secret_.proof({"data", session_, fmt::format("{}", part_.job), fmt::format("{}", connection.from),
                        fmt::format("{}", connection.to), fmt::format("{}", connection.channel)});
}

void TcpExchange::connect(const std::vector<std::uint16_t>& ports) {
  unconnected_ = static_cast<int>(outgoing_.size() + incoming_.size());
  for (auto& [connection, wire] : outgoing_) {
    const std::string proof = proof_of(connection);
    wire->hello = {static_cast<std::uint32_t>(connection.from), connection.channel, {}};
    std::copy(proof.begin(), proof.end(), wire->hello.proof.begin());
    connect_to(*wire, ports.at(static_cast<std::size_t>(wire->to)));
  }
  if (!incoming_.empty())
    entrance_.accept([this] { return knocks_.size() < most_waiting; },
                     [this](Tcp::socket socket) { take_in(std::move(socket)); });
  const Moment deadline = now() + options_.timeout;
  while (unconnected_ > 0) {
    step(deadline, "connecting to the others");
    drop_slow();
    entrance_.look();
  }
  entrance_.close();
  for (const auto& knock : knocks_) knock->socket.close();
}

void TcpExchange::connect_to(Outgoing& wire, std::uint16_t port) {
  const std::string& host = part_.hosts.at(static_cast<std::size_t>(wire.to));
  const auto failed = [this, &wire, &host, port](const error_code& error) {
    lost(fmt::format("cannot connect to {} at {} port {}: {}", who(wire.to), host, port, error.message()));
  };
  const Tcp::endpoint here(asio::ip::make_address(part_.address), 0);
  error_code error;
  Tcp::resolver resolver(io_);
  const auto found = resolver.resolve(here.protocol(), host, fmt::format("{}", port), error);
  if (error) return failed(error);
  wire.socket.open(here.protocol(), error);
  if (error) return failed(error);
  prepare(wire.socket.native_handle());
  wire.socket.bind(here, error);
  if (error) return failed(error);
  wire.socket.async_connect(found.begin()->endpoint(), [this, &wire, failed](const error_code& refused) {
    if (refused) return failed(refused);
    asio::async_write(wire.socket, asio::buffer(&wire.hello, sizeof wire.hello),
                      [this, failed](const error_code& broken, std::size_t) {
                        if (broken) return failed(broken);
                        --unconnected_;
                      });
  });
}

// Strangers may knock: what proves no secret is closed.
void TcpExchange::take_in(Tcp::socket socket) {
  const auto knock = std::make_shared<Knock>(Knock{std::move(socket), {}, now()});
  knocks_.push_back(knock);
  asio::async_read(
      knock->socket, asio::buffer(&knock->hello, sizeof(Hello)), [this, knock](const error_code& broken, std::size_t) {
        knocks_.remove(knock);
        const Hello& hello = knock->hello;
        if (broken || hello.channel > std::numeric_limits<std::uint16_t>::max()) return;
        const Connection connection{static_cast<Actor>(hello.from), actor_, static_cast<std::uint16_t>(hello.channel)};
        const auto found = incoming_.find(connection);
        if (found == incoming_.end() || found->second->connected ||
            !same_proof({hello.proof.data(), hello.proof.size()}, proof_of(connection)))
          return;
        found->second->socket = std::move(knock->socket);
        found->second->connected = true;
        --unconnected_;
      });
}

// Only while there is no room: on a busy machine even a process of the replay may be slow.
void TcpExchange::drop_slow() {
  if (knocks_.size() < most_waiting) return;
  for (const auto& knock : knocks_)
    if (now() > knock->came + longest_waiting) knock->socket.close();
}

void TcpExchange::start_send(const Connection& connection, std::span<const float> data, Ticket ticket) {
  Outgoing& wire = *outgoing_.at(connection);
  wire.queue.push_back({data, ticket});
  if (wire.queue.size() == 1) send_next(wire);
}

void TcpExchange::send_next(Outgoing& wire) {
  const std::span<const float> data = wire.queue.front().data;
  wire.length = data.size_bytes();
  const std::array<asio::const_buffer, 2> parts{asio::buffer(&wire.length, sizeof wire.length),
                                                asio::buffer(data.data(), data.size_bytes())};
  asio::async_write(wire.socket, parts, [this, &wire](const error_code& error, std::size_t) {
    if (error) return lost(fmt::format("the connection to {} broke: {}", who(wire.to), error.message()));
    done_.push_back(wire.queue.front().ticket);
    wire.queue.pop_front();
    if (!wire.queue.empty()) send_next(wire);
  });
}

void TcpExchange::start_receive(const Connection& connection, std::span<float> data, Ticket ticket) {
  Incoming& wire = *incoming_.at(connection);
  wire.queue.push_back({data, ticket});
  if (wire.queue.size() == 1) receive_next(wire);
}

void TcpExchange::receive_next(Incoming& wire) {
  const auto broke = [this, &wire](const error_code& error) {
    lost(fmt::format("the connection from {} broke: {}", who(wire.from), error.message()));
  };
  asio::async_read(wire.socket, asio::buffer(&wire.length, sizeof wire.length),
                   [this, &wire, broke](const error_code& error, std::size_t) {
                     if (error) return broke(error);
                     const std::span<float> data = wire.queue.front().data;
                     if (wire.length != data.size_bytes())
                       throw EnvironmentError(fmt::format("{} sent a message of {} bytes, expected {}", who(wire.from),
                                                          wire.length, data.size_bytes()));
                     asio::async_read(wire.socket, asio::buffer(data.data(), data.size_bytes()),
                                      [this, &wire, broke](const error_code& cut, std::size_t) {
                                        if (cut) return broke(cut);
                                        done_.push_back(wire.queue.front().ticket);
                                        wire.queue.pop_front();
                                        if (!wire.queue.empty()) receive_next(wire);
                                      });
                   });
}

void TcpExchange::start_compute(std::chrono::nanoseconds time, Ticket ticket) {
  auto timer = std::make_shared<asio::steady_timer>(io_, time);
  timer->async_wait([this, timer, ticket](const error_code&) { done_.push_back(ticket); });
}

void TcpExchange::wait_some(std::vector<Ticket>& done) {
  while (done_.empty()) step(deadline_, "the run");
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

Moment TcpExchange::barrier() {
  say({{"ready", run_++}});
  const std::int64_t latest = (now() + longest_lead).time_since_epoch().count();
  const std::int64_t ns = hear("waiting for the others", [&](const Control::Json& line) {
    expect_members(line, {"begin_ns"});
    return line_whole(line, "begin_ns", 0, latest);
  });
  Moment begin = now();
  if (ns != 0) {
    const Moment agreed{std::chrono::nanoseconds(ns)};
    std::this_thread::sleep_until(agreed);
    begin = agreed;
  }
  deadline_ = begin + options_.timeout;
  return begin;
}

void TcpExchange::say_record(const ActorRecord& record) {
  Control::Json times = Control::Json::array();
  for (const auto& time : record.times) {
    if (times.size() == times_of_line) {
      say({{"times_ns", times}});
      times.clear();
    }
    times.push_back(time.count());
  }
  say({{"times_ns", times},
       {"checked", record.checked.value_or(0)},
       {"wrong", record.wrong},
       {"first_wrong", cut_text(record.first_wrong)}});
}

void TcpExchange::wait_for_end() {
  hear("waiting for the end", [](const Control::Json& line) { expect_members(line, {"done"}); });
}

}  // namespace ringsim::replay
