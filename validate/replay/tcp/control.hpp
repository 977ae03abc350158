// What the processes of a replay say to each other apart from its data: lines of JSON over a stream socket.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "validate/replay/tcp/asio.hpp"
#include "validate/replay/tcp/lines.hpp"

namespace ringsim::replay {

/// One end of it. What comes in is handed on while the io_context runs, until the Control goes.
class Control {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Json = LineJson;

  /// The longest lines that are taken, in bytes: of one that has yet to prove that it belongs to the replay, and of one
  /// that has.
  static constexpr std::size_t longest_of_stranger = 1024, longest_of_member = 65536;

  explicit Control(Socket socket);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  /// Waits until it is handed to the system. If nobody listens any more nothing is said: on_end tells that. One that
  /// takes nothing for 5 s has ended.
  void send(const Json& line);
  /// Calls `on_line` with each line, then `on_end` once, with what ended it: the connection, or a line that is not
  /// JSON, or for which `on_line` throws BadLine. Call it once.
  void listen(std::function<void(const Json&)> on_line, std::function<void(const std::string&)> on_end);
  /// The other side has proved that it belongs to the replay.
  void trust();

 private:
  struct State;
  static void read_next(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // what is under way has it too
};

}  // namespace ringsim::replay
