#include "validate/replay/tcp/control.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace ringsim::replay {

namespace asio = boost::asio;

namespace {
constexpr std::chrono::milliseconds longest_send{5000};
}  // namespace

struct Control::State {
  explicit State(Socket of) : socket(std::move(of)) {}
  void end(const std::string& why) {
    boost::system::error_code ignored;
    socket.close(ignored);
    buffer = {};
    if (on_end) std::exchange(on_end, nullptr)(why);
  }

  Socket socket;
  std::string buffer;
  std::size_t longest = longest_of_stranger;
  bool deaf = false;  // it took nothing
  std::function<void(const Json&)> on_line;
  std::function<void(const std::string&)> on_end;
};

Control::Control(Socket socket) : state_(std::make_shared<State>(std::move(socket))) {}

Control::~Control() {
  state_->on_line = nullptr;
  state_->on_end = nullptr;
  boost::system::error_code ignored;
  state_->socket.close(ignored);
}

void Control::trust() { state_->longest = longest_of_member; }

void Control::send(const Json& line) {
  if (!state_->socket.is_open() || state_->deaf) return;
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  const int socket = state_->socket.native_handle();
  const auto deadline = std::chrono::steady_clock::now() + longest_send;
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      state_->deaf = true;
      shutdown(socket, SHUT_RDWR);  // what listens hears of it
      return;
    }
    pollfd room{.fd = socket, .events = POLLOUT, .revents = 0};
    poll(&room, 1, static_cast<int>(left.count()));
  }
}

void Control::listen(std::function<void(const Json&)> on_line, std::function<void(const std::string&)> on_end) {
  state_->on_line = std::move(on_line);
  state_->on_end = std::move(on_end);
  read_next(state_);
}

void Control::read_next(const std::shared_ptr<State>& state) {
  asio::async_read_until(state->socket, asio::dynamic_buffer(state->buffer, state->longest), '\n',
                         [state](const boost::system::error_code& error, std::size_t n) {
                           if (!state->on_line) return;
                           if (error == asio::error::not_found && state->buffer.size() < state->longest)
                             return read_next(state);  // trusted since it began to read
                           if (error == asio::error::not_found)
                             return state->end(fmt::format("it sent a line of more than {} bytes", state->longest));
                           if (error)
                             return state->end(state->deaf ? "it does not read what is sent to it" : error.message());
                           try {
                             const Json line = parse_line(std::string_view(state->buffer).substr(0, n));
                             state->buffer.erase(0, n);
                             state->on_line(line);
                           } catch (const BadLine& bad) {
                             return state->end(fmt::format("it sent an invalid line: {}", bad.what()));
                           }
                           if (state->on_line) read_next(state);
                         });
}

}  // namespace ringsim::replay
