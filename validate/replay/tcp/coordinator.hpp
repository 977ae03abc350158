// Who leads a replay: makes the others known to each other, lets runs begin, takes what they saw.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/exchange.hpp"
#include "validate/replay/tcp/control.hpp"
#include "validate/replay/tcp/entrance.hpp"
#include "validate/replay/tcp/secret.hpp"
#include "validate/replay/tcp/tcp_replay.hpp"

namespace ringsim::replay {

/// Children of this process. Those that still run are killed when it goes, and none is left unwaited for.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();

  /// Runs `work` in a child, with one end of a socket pair, and returns the other. The child has no other sockets of
  /// this kind, and ends without what a process does at its end: nothing is flushed twice.
  Control::Socket::native_handle_type start(const std::function<void(int control)>& work);
  /// How the child that was started as number `i` ended: "was killed by signal 9 (Killed)"; nothing if it runs.
  std::optional<std::string> ended(std::size_t i);
  pid_t pid(std::size_t i) const { return pids_[i]; }
  std::size_t size() const { return pids_.size(); }

 private:
  std::vector<pid_t> pids_;
  std::vector<int> ends_;  // of sockets that stay here
  std::vector<std::optional<int>> status_;
};

/// "rank 3", "helper 8", "rank 1 of job b": the process of that number.
std::string process_name(const TcpReplay& replay, int process);
/// Which actor of which job it is.
std::pair<std::size_t, Actor> actor_of(const TcpReplay& replay, int process);

/// Holds every line to what its process may say at that time (validate/replay/tcp/tcp_exchange.hpp). Strangers are
/// turned away; a process that has joined and then says something else is lost, and ends the replay.
class Coordinator {
 public:
  /// `children`: of those processes that are. All references must outlive it.
  Coordinator(boost::asio::io_context& io, const TcpReplay& replay, const Secret& secret, Children& children);

  /// The end of a socket pair that Children::start() returned for that process.
  void add_child(Control::Socket socket, int process);
  /// Others may join there, until all have. Throws boost::system::system_error.
  void open(const Entrance::Tcp::endpoint& here);
  /// Ends with what was measured. `same_clock`: all processes are on this machine. Before this, all have been added, or
  /// have joined.
  TcpOutcome lead(bool same_clock, const TcpMeanwhile& meanwhile);

  /// Runs what is ready until `until` says true. Throws if a process is lost, at the deadline (`late()` says of
  /// what), or if the user stops it.
  void run_until(const std::function<bool()>& until, Moment deadline, const std::function<std::string()>& late);
  /// Those that have said who they are.
  const std::set<int>& joined() const { return joined_; }
  /// "2 connections came that ...": those that did not become a process of the replay; empty: none.
  std::string turned_away() const;
  /// Lets no more processes join.
  void close();
  /// Tells all others why this ends.
  void abort(const std::string& why);

 private:
  struct Failure {
    std::string text, kind;
  };
  struct Member {
    explicit Member(Control::Socket socket) : control(std::move(socket)) {}
    Control control;
    Moment came = std::chrono::steady_clock::now();
    std::string challenge = random_digits();
    int process = -1;  // who it is; -1: not known yet
    int said = 0;      // how many of its lines came, in the order of tcp_exchange.hpp
    // What they held.
    std::uint16_t port = 0;
    std::vector<std::string> notes;
    ActorRecord record;
    std::optional<Failure> failed;
    std::optional<std::string> ended;
  };

  Member& add(Control::Socket socket);
  void take(Member& member, const Control::Json& line);
  void take_join(Member& member, const Control::Json& line);
  bool take_record(Member& member, const Control::Json& line);
  [[noreturn]] void refuse(Member& member, const char* why, int& count);
  std::size_t n_waiting() const;
  /// Drops those that are not of the replay.
  void drop_strangers();
  /// Waits until each process has said one line more.
  void gather(std::string_view doing, std::chrono::nanoseconds longest);
  void tell_ports();
  void to_all(const Control::Json& line);
  [[noreturn]] void fail();
  std::string late(std::string_view doing) const;
  /// "rank 1, rank 2": the processes that have said nothing since the last gather(); empty if there are none.
  std::string silent() const;
  void meanwhile_now();

  boost::asio::io_context& io_;
  const TcpReplay& replay_;
  const Secret& secret_;
  Children& children_;
  Entrance entrance_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> by_process_;
  std::set<int> joined_;
  int gathered_ = 0;  // lines of each process
  int strangers_ = 0, other_secrets_ = 0, other_scenarios_ = 0, second_ranks_ = 0;
  bool trouble_ = false;
  const TcpMeanwhile* meanwhile_ = nullptr;
  Moment begin_{};
  std::size_t next_act_ = 0;
  std::chrono::nanoseconds latest_{0};  // how late an act was done, at worst
};

}  // namespace ringsim::replay
