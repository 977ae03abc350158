// What the processes of a replay say to each other apart from its data: lines of JSON over a stream socket.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "validate/replay/tcp/asio.hpp"

namespace ringsim::replay {

/// One end of it. What comes in is handed on while the io_context runs.
class Control {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Json = nlohmann::ordered_json;

  explicit Control(Socket socket) : socket_(std::move(socket)) {}

  /// Waits until it is handed to the system. Where nobody listens any more nothing is said: on_end tells that.
  void send(const Json& line);
  /// Calls `on_line` with each line, then `on_end` once, with what ended it. Call it once.
  void listen(std::function<void(const Json&)> on_line, std::function<void(const std::string&)> on_end);

 private:
  void read_next();

  Socket socket_;
  std::string buffer_;
  std::function<void(const Json&)> on_line_;
  std::function<void(const std::string&)> on_end_;
};

}  // namespace ringsim::replay
