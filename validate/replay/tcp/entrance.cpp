#include "validate/replay/tcp/entrance.hpp"

#include <utility>

namespace ringsim::replay {

using boost::system::error_code;

void Entrance::open(const Tcp::endpoint& here, const std::function<void(int)>& prepare) {
  acceptor_.open(here.protocol());
  // A port of the last replay is to be had at once; one that the system chooses should be nobody else's.
  if (here.port() != 0) acceptor_.set_option(Tcp::acceptor::reuse_address(true));
  if (prepare) prepare(acceptor_.native_handle());
  acceptor_.bind(here);
  acceptor_.listen();
}

void Entrance::accept(std::function<bool()> has_room, std::function<void(Tcp::socket)> on_come) {
  has_room_ = std::move(has_room);
  on_come_ = std::move(on_come);
  look();
}

void Entrance::look() {
  if (accepting_ || !acceptor_.is_open() || !on_come_ || !has_room_()) return;
  accepting_ = true;
  acceptor_.async_accept([this](const error_code& error, Tcp::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    accepting_ = false;
    if (error) return;  // that one is gone, or there are no files left: look() tries again
    on_come_(std::move(socket));
    look();
  });
}

void Entrance::close() {
  error_code ignored;
  acceptor_.close(ignored);
}

}  // namespace ringsim::replay
