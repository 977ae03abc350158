// One actor's messages over TCP: a socket for each connection that its schedule uses.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/schedule.hpp"
#include "validate/replay/exchange.hpp"
#include "validate/replay/tcp/asio.hpp"
#include "validate/replay/tcp/control.hpp"
#include "validate/replay/tcp/tcp_options.hpp"

namespace ringsim::replay {

/// Where an actor's process listens.
struct Endpoint {
  std::string host;  ///< a name or an address
  std::uint16_t port = 0;
};

/// Each message is its length as 8 bytes, the lowest first, and its data as they lie in memory. The sender connects.
///
/// With the coordinator (validate/replay/tcp/tcp_replay.cpp) it speaks in lines, in this order:
///
///     here    {"process": 3, "key": "...", "port": 40321}      who it is, of which replay, where it listens
///     there   {"token": N, "peers": [["10.0.0.1", 40321], ...]}      [actor]
///     here    {"connected": true, "notes": ["..."]}
///     here    {"ready": 0}    there   {"begin_ns": N}    once a run: the moment on the machine's clock, 0: now
///     here    {"times_ns": [...], "wrong": 0, "first_wrong": ""}    there   {"done": true}
///     here    {"failed": "...", "kind": "..."} at any time
///     there   {"abort": "..."} at any time
class TcpExchange : public Exchange {
 public:
  /// Takes `control` over. `own_address`: the address that its sockets have; empty: any. All references must outlive
  /// it.
  TcpExchange(boost::asio::io_context& io, Control::Socket control, const Schedule& schedule, Actor actor,
              const std::string& own_address, const TcpOptions& options);
  ~TcpExchange() override;

  /// Tells where it listens, hears of the others, and connects. `process`, `key`: as above.
  void join(int process, const std::string& key);
  void say(const Control::Json& line) { control_.send(line); }
  /// Until all others are done too: sockets that close early might be taken for a process that is lost.
  void wait_for_end() { next_line("waiting for the end"); }

  void start_send(const Connection& connection, std::span<const float> data, Ticket ticket) override;
  void start_receive(const Connection& connection, std::span<float> data, Ticket ticket) override;
  void start_compute(std::chrono::nanoseconds time, Ticket ticket) override;
  void wait_some(std::vector<Ticket>& done) override;
  Moment barrier() override;
  Moment now() const override;

 private:
  using Tcp = boost::asio::ip::tcp;
  struct Outgoing;
  struct Incoming;

  void connect(const std::vector<Endpoint>& peers, std::uint64_t token);
  void connect_to(Outgoing& wire, const Endpoint& peer, std::uint64_t token);
  void accept_next(std::uint64_t token);
  void send_next(Outgoing& wire);
  void receive_next(Incoming& wire);
  void prepare(Tcp::socket::native_handle_type socket);
  void lost(std::string why);
  Control::Json next_line(const char* waiting_for);
  /// Runs what is ready, or waits a little for it. Throws where it is time to end.
  void step(Moment deadline, const char* waiting_for);
  std::string who(Actor actor) const;

  boost::asio::io_context& io_;
  Control control_;
  std::deque<Control::Json> lines_;
  const Schedule& schedule_;
  Actor actor_;
  std::string own_address_;
  const TcpOptions& options_;
  Tcp::acceptor acceptor_;
  std::map<Connection, std::unique_ptr<Outgoing>> outgoing_;
  std::map<Connection, std::unique_ptr<Incoming>> incoming_;
  int unconnected_ = 0;
  std::vector<Ticket> done_;
  std::optional<std::string> lost_;     // the first connection that broke
  std::optional<std::string> aborted_;  // what the coordinator says
  std::vector<std::string> notes_;
  Moment deadline_{};
  int run_ = 0;
};

}  // namespace ringsim::replay
