// Who leads a replay: makes the others known to each other, lets runs begin, takes what they saw.
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/exchange.hpp"
#include "validate/replay/tcp/control.hpp"
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
  /// How the child that was started as number `i` ended: "was killed by signal 9 (Killed)"; nothing where it runs.
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

class Coordinator {
 public:
  /// `children`: of those processes that are; must outlive it.
  Coordinator(boost::asio::io_context& io, const TcpReplay& replay, Children& children);

  /// `child`: of that process, which is a child; else that is known with its first line.
  void add(Control::Socket socket, std::optional<int> child = std::nullopt);
  /// Ends with what was measured. `hosts`: [process] where the others find it. `same_clock`: all processes are on this
  /// machine. Before this, all have been added.
  TcpOutcome lead(const std::vector<std::string>& hosts, bool same_clock, const TcpMeanwhile& meanwhile);

  /// Runs what is ready until `until` says true. Throws where a process is lost, at the deadline (`late()` says of
  /// what), or where the user stops it.
  void run_until(const std::function<bool()>& until, Moment deadline, const std::function<std::string()>& late);
  /// Those that have said who they are.
  const std::set<int>& joined() const { return joined_; }
  /// Tells all others why this ends.
  void abort(const std::string& why);

 private:
  struct Member {
    explicit Member(Control::Socket socket) : control(std::move(socket)) {}
    Control control;
    int process = -1;     // who it is; -1: not known yet
    bool joined = false;  // it said so
    std::deque<Control::Json> lines;
    std::optional<std::string> ended;
    std::optional<Control::Json> failed;
  };

  void take(Member& member, const Control::Json& line);
  /// One line of each process, [process].
  std::vector<Control::Json> gather(std::string_view doing, std::chrono::nanoseconds longest);
  void to_all(const Control::Json& line);
  [[noreturn]] void fail();
  std::string late(std::string_view doing) const;
  /// "rank 1, rank 2": the processes that have said nothing since the last gather(); empty if there are none.
  std::string silent() const;
  void meanwhile_now();

  boost::asio::io_context& io_;
  const TcpReplay& replay_;
  Children& children_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> by_process_;
  std::set<int> joined_;
  bool trouble_ = false;
  const TcpMeanwhile* meanwhile_ = nullptr;
  Moment begin_{};
  std::size_t next_act_ = 0;
  std::chrono::nanoseconds latest_{0};  // how late an act was done, at worst
};

}  // namespace ringsim::replay
