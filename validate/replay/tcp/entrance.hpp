// Accepts connections of other processes at one address, and no more at a time than there is room for.
#pragma once

#include <cstdint>
#include <functional>

#include "validate/replay/tcp/asio.hpp"

namespace ringsim::replay {

/// The most connections that may wait until they have said whom they belong to, and how long each may take for it.
constexpr std::size_t most_waiting = 128;
constexpr std::chrono::seconds longest_waiting{5};

class Entrance {
 public:
  using Tcp = boost::asio::ip::tcp;

  explicit Entrance(boost::asio::io_context& io) : acceptor_(io) {}

  /// Listens there; `prepare` changes the socket before. Throws boost::system::system_error.
  void open(const Tcp::endpoint& here, const std::function<void(int socket)>& prepare = {});
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  /// From now on hands each connection to `on_come`, while `has_room`. The others wait in the system's queue.
  void accept(std::function<bool()> has_room, std::function<void(Tcp::socket)> on_come);
  /// There may be room again, or files that the system lacked: ask now and then.
  void look();
  void close();

 private:
  Tcp::acceptor acceptor_;
  bool accepting_ = false;
  std::function<bool()> has_room_;
  std::function<void(Tcp::socket)> on_come_;
};

}  // namespace ringsim::replay
