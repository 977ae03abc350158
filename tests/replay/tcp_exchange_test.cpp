// One process of a replay over TCP, led by hand: which connections it takes for those of the replay.
#include "validate/replay/tcp/tcp_exchange.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/written_schedule.hpp"

namespace tcp_exchange_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using nlohmann::json;

namespace {

/// A socket that gives up after 10 s, and is closed at the end.
class Wire {
 public:
  explicit Wire(int file) : file_(file) {
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  static int connected_to(int port) {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<std::uint16_t>(port));
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(file, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0);
    return file;
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() { close(file_); }

  void send(const std::string& text) const {
    CHECK(::send(file_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  void say(const json& line) const { send(line.dump() + "\n"); }
  json line() const {
    std::string text;
    for (char c = 0; recv(file_, &c, 1, 0) == 1 && c != '\n';) text += c;
    return json::parse(text, nullptr, /*allow_exceptions=*/false);
  }
  /// True if the other side closes it before it says anything.
  bool is_closed() const {
    char c = 0;
    return recv(file_, &c, 1, 0) == 0;
  }

 private:
  int file_;
};

}  // namespace

TEST_CASE("a connection is taken once: who repeats what another process said stands for nobody else") {
  // Ranks 0 and 2 send to rank 1, which is led here.
  WrittenSchedule written = of_moves(3, {4_B, 4_B}, {{0, 1}, {2, 1}});
  for (const Actor from : {0, 2}) {
    const std::uint32_t move = from == 0 ? 0 : 1;
    written.step(from).send(1, {Buffer::input, move, 1});
    written.step(1).receive(from, {Buffer::output, move, 1});
  }
  const Schedule schedule = written.schedule();
  const Secret secret("a secret of this test alone");
  const TcpOptions options;
  const std::string digits(64, '0');

  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const Wire control(ends[0]);
  std::string failed;
  std::jthread process([&] {
    try {
      boost::asio::io_context io;
      Control::Socket socket(io, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[1]);
      const std::string here = "127.0.0.1";
      TcpExchange exchange(
          io, std::move(socket), schedule,
          {.process = 1, .job = 0, .actor = 1, .address = here, .hosts = {here, here, here}, .key = "key"}, secret,
          options);
      exchange.join();
    } catch (const std::exception& error) {
      failed = error.what();
    }
  });
  control.say({{"challenge", digits}});
  const json joins = control.line();
  control.say({{"welcome", secret.proof({"lead", joins.value("nonce", ""), digits, "1"})}});
  control.say({{"session", digits}, {"ports", {1, 1, 1}}});
  const auto hello = [&](const char* from) {  // and channel 0
    return std::string{from[0] == '0' ? '\0' : '\2', 0, 0, 0, 0, 0, 0, 0} +
           secret.proof({"data", digits, "0", from, "1", "0"});
  };
  const int port = joins.value("port", 0);
  const Wire first(Wire::connected_to(port));
  first.send(hello("0"));
  const Wire again(Wire::connected_to(port));
  again.send(hello("0"));
  CHECK(again.is_closed());
  const Wire third(Wire::connected_to(port));
  third.send(hello("2"));
  CHECK(control.line().contains("connected"));
  process.join();
  CHECK(failed == "");
}

}  // namespace tcp_exchange_test
