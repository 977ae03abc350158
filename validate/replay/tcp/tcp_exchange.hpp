// One actor's messages over TCP: a socket for each connection that its schedule uses.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/schedule.hpp"
#include "validate/replay/exchange.hpp"
#include "validate/replay/replay.hpp"
#include "validate/replay/tcp/asio.hpp"
#include "validate/replay/tcp/control.hpp"
#include "validate/replay/tcp/entrance.hpp"
#include "validate/replay/tcp/secret.hpp"
#include "validate/replay/tcp/tcp_options.hpp"

namespace ringsim::replay {

/// One process's part of a replay.
struct TcpPart {
  int process = 0;
  std::size_t job = 0;
  Actor actor = 0;                 ///< of that job
  std::string address;             ///< that its sockets have
  std::vector<std::string> hosts;  ///< [actor] of that job: a name or an address
  std::string key;                 ///< of which replay
};

/// Each message is its length as 8 bytes, the lowest first, and its data as they lie in memory. The sender connects,
/// and begins with 4 bytes for its actor, 4 for the channel, and the 64 digits of its proof.
///
/// With the coordinator (validate/replay/tcp/tcp_replay.cpp) it speaks in lines, in this order. Those before "welcome"
/// have at most 1 KiB, those after it 64 KiB; texts have 4 KiB. A line that is not as here ends the connection.
///
///     there   {"challenge": "64 digits"}
///     here    {"process": 3, "port": 40321, "key": "...", "nonce": "64 digits", "proof": "64 digits"}
///     there   {"welcome": "64 digits"}      or {"refused": "secret"}, "scenario", "rank": then it closes
///     there   {"session": "64 digits", "ports": [40321, ...]}    [actor]; as many lines as it takes
///     here    {"connected": true, "notes": ["..."]}
///     here    {"ready": 0}    there   {"begin_ns": N}    once a run: the moment on the machine's clock, 0: now
///     here    {"times_ns": [...]}    as many lines as it takes; the last has "checked": 9, "wrong": 0 and
///                                      "first_wrong": "" too
///     there   {"done": true}
///     here    {"failed": "...", "kind": "..."} at any time
///     there   {"abort": "..."} at any time after "welcome"
///
/// Proofs are keyed hashes (Secret::proof): of who joins over "join", challenge, nonce, process, port and key; of who
/// leads over "lead", nonce, challenge and process; of a connection over "data", session, job, from, to and channel.
class TcpExchange : public Exchange {
 public:
  /// Takes `control` over. All references must outlive it.
  TcpExchange(boost::asio::io_context& io, Control::Socket control, const Schedule& schedule, TcpPart part,
              const Secret& secret, const TcpOptions& options);
  ~TcpExchange() override;

  /// Tells where it listens, hears of the others, and connects.
  void join();
  void say(const Control::Json& line) { control_.send(line); }
  void say_record(const ActorRecord& record);
  /// Why a connection broke, as the process that leads says it; nothing if it does not say so within a second. Closes
  /// all connections: the data of sends and receives may be gone by now.
  std::optional<std::string> wait_for_reason();
  /// Until all others are done too: sockets that close early might be taken for a process that is lost.
  void wait_for_end();

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

  struct Knock;

  void introduce();
  std::vector<std::uint16_t> hear_ports();
  void connect(const std::vector<std::uint16_t>& ports);
  void connect_to(Outgoing& wire, std::uint16_t port);
  void take_in(Tcp::socket socket);
  void drop_slow();
  std::string proof_of(const Connection& connection) const;
  void send_next(Outgoing& wire);
  void receive_next(Incoming& wire);
  void prepare(Tcp::socket::native_handle_type socket);
  void lost(std::string why);
  Control::Json next_line(const char* waiting_for);
  /// Reads the next line by `read`. Throws EnvironmentError if it is not the one that is due.
  template <class Read>
  auto hear(const char* waiting_for, Read read);
  /// Runs what is ready, or waits a little for it. Throws if it is time to end.
  void step(Moment deadline, const char* waiting_for);
  std::string who(Actor actor) const;

  boost::asio::io_context& io_;
  Control control_;
  std::deque<Control::Json> lines_;
  const Schedule& schedule_;
  const TcpPart part_;
  const Actor actor_;
  const Secret& secret_;
  const TcpOptions& options_;
  Entrance entrance_;
  std::string session_;
  bool welcome_ = false;
  std::map<Connection, std::unique_ptr<Outgoing>> outgoing_;
  std::map<Connection, std::unique_ptr<Incoming>> incoming_;
  std::list<std::shared_ptr<Knock>> knocks_;  // those that came first are first
  int unconnected_ = 0;
  std::vector<Ticket> done_;
  std::optional<std::string> lost_;     // the first connection that broke
  std::optional<std::string> aborted_;  // what the coordinator says
  std::optional<std::string> ended_;    // why it says nothing any more
  std::vector<std::string> notes_;
  Moment deadline_{};
  int run_ = 0;
};

}  // namespace ringsim::replay
