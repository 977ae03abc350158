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
  std::uint64_t token = 0;
  std::uint32_t from = 0, channel = 0;
};
static_assert(sizeof(Hello) == 16);

}  // namespace

struct TcpExchange::Outgoing {
  explicit Outgoing(asio::io_context& io) : socket(io) {}
  Tcp::socket socket;
  Actor to = 0;
  Hello hello;
  std::uint64_t length = 0;
  std::deque<Sending> queue;  // the first is under way
};

struct TcpExchange::Incoming {
  explicit Incoming(asio::io_context& io) : socket(io) {}
  Tcp::socket socket;
  Actor from = 0;
  bool connected = false;
  std::uint64_t length = 0;
  std::deque<Receiving> queue;
};

TcpExchange::TcpExchange(asio::io_context& io, Control::Socket control, const Schedule& schedule, Actor actor,
                         const std::string& own_address, const TcpOptions& options)
    : io_(io),
      control_(std::move(control)),
      schedule_(schedule),
      actor_(actor),
      own_address_(own_address),
      options_(options),
      acceptor_(io) {
  control_.listen(
      [this](const Control::Json& line) {
        if (line.contains("abort"))
          aborted_ = line["abort"].get<std::string>();
        else
          lines_.push_back(line);
      },
      [this](const std::string& why) {
        if (!aborted_) aborted_ = "the process that leads the replay is gone: " + why;
      });
  each_op(schedule, actor, [&](const Op& op) {
    if (op.what == Do::send) {
      auto& wire = outgoing_[{actor, op.peer, op.channel}];
      if (!wire) wire = std::make_unique<Outgoing>(io);
      wire->to = op.peer;
    } else if (op.what == Do::receive || op.what == Do::receive_add) {
      auto& wire = incoming_[{op.peer, actor, op.channel}];
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

void TcpExchange::step(Moment deadline, const char* waiting_for) {
  if (aborted_) throw PeerLost(*aborted_);
  if (lost_) throw PeerLost(*lost_);
  if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed))
    throw Interrupted("the replay was stopped");
  const Moment at = now();
  if (at >= deadline)
    throw Late(fmt::format("{} took longer than {:g} s", waiting_for,
                           std::chrono::duration<double>(options_.timeout).count()));
  io_.run_one_for(std::min<std::chrono::nanoseconds>(deadline - at, 100ms));
}

Control::Json TcpExchange::next_line(const char* waiting_for) {
  // Whoever leads has a time-out of his own, and says more.
  const Moment deadline = now() + 3 * options_.timeout;
  while (lines_.empty()) step(deadline, waiting_for);
  Control::Json line = std::move(lines_.front());
  lines_.pop_front();
  return line;
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
    note(fmt::format("sockets have receive buffers of {} bytes, not {}: net.core.rmem_max allows no more", got / 2,
                     size));
}

void TcpExchange::join(int process, const std::string& key) {
  try {
    const Tcp::endpoint here(
        own_address_.empty() ? asio::ip::address_v4::any() : asio::ip::make_address_v4(own_address_), 0);
    acceptor_.open(here.protocol());
    prepare(acceptor_.native_handle());
    acceptor_.bind(here);
    acceptor_.listen();
  } catch (const boost::system::system_error& error) {
    throw EnvironmentError(fmt::format("no socket can listen at {}: {}",
                                       own_address_.empty() ? "any address" : own_address_, error.code().message()));
  }
  say({{"process", process}, {"key", key}, {"port", acceptor_.local_endpoint().port()}});
  const Control::Json line = next_line("joining");
  std::vector<Endpoint> peers;
  for (const auto& peer : line.at("peers"))
    peers.push_back({peer.at(0).get<std::string>(), peer.at(1).get<std::uint16_t>()});
  connect(peers, line.at("token").get<std::uint64_t>());
  say({{"connected", true}, {"notes", notes_}});
}

void TcpExchange::connect(const std::vector<Endpoint>& peers, std::uint64_t token) {
  unconnected_ = static_cast<int>(outgoing_.size() + incoming_.size());
  for (auto& [connection, wire] : outgoing_) {
    wire->hello = {token, static_cast<std::uint32_t>(connection.from), connection.channel};
    connect_to(*wire, peers.at(static_cast<std::size_t>(wire->to)), token);
  }
  if (!incoming_.empty()) accept_next(token);
  const Moment deadline = now() + options_.timeout;
  while (unconnected_ > 0) step(deadline, "connecting to the others");
  error_code ignored;
  acceptor_.close(ignored);
}

void TcpExchange::connect_to(Outgoing& wire, const Endpoint& peer, std::uint64_t token) {
  const auto failed = [this, &wire, peer](const error_code& error) {
    lost(fmt::format("cannot connect to {} at {} port {}: {}", who(wire.to), peer.host, peer.port, error.message()));
  };
  wire.hello.token = token;
  error_code error;
  Tcp::resolver resolver(io_);
  const auto found = resolver.resolve(Tcp::v4(), peer.host, std::to_string(peer.port), error);
  if (error) return failed(error);
  wire.socket.open(Tcp::v4(), error);
  if (error) return failed(error);
  prepare(wire.socket.native_handle());
  if (!own_address_.empty()) wire.socket.bind({asio::ip::make_address_v4(own_address_), 0}, error);
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

void TcpExchange::accept_next(std::uint64_t token) {
  acceptor_.async_accept([this, token](const error_code& error, Tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) return lost("no connection can be accepted: " + error.message());
    auto came = std::make_shared<std::pair<Tcp::socket, Hello>>(std::move(socket), Hello{});
    asio::async_read(came->first, asio::buffer(&came->second, sizeof(Hello)),
                     [this, token, came](const error_code& broken, std::size_t) {
                       const Hello& hello = came->second;
                       const auto found = incoming_.find(
                           {static_cast<Actor>(hello.from), actor_, static_cast<std::uint16_t>(hello.channel)});
                       // Strangers may knock: what is not of this replay is closed.
                       if (broken || hello.token != token || found == incoming_.end() || found->second->connected)
                         return;
                       found->second->socket = std::move(came->first);
                       found->second->connected = true;
                       --unconnected_;
                     });
    accept_next(token);
  });
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
                     ensure(wire.length == data.size_bytes(), "both ends of a message agree in its size");
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
  const auto ns = next_line("waiting for the others").at("begin_ns").get<std::int64_t>();
  Moment begin = now();
  if (ns != 0) {
    const Moment agreed{std::chrono::nanoseconds(ns)};
    std::this_thread::sleep_until(agreed);
    begin = agreed;
  }
  deadline_ = begin + options_.timeout;
  return begin;
}

}  // namespace ringsim::replay
