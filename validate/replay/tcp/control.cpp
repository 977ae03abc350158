#include "validate/replay/tcp/control.hpp"

#include <utility>

namespace ringsim::replay {

namespace asio = boost::asio;

namespace {
// Of a schedule of thousands of ranks the addresses of all are one line.
constexpr std::size_t longest_line = 64U << 20U;
}  // namespace

void Control::send(const Json& line) {
  boost::system::error_code ignored;
  asio::write(socket_, asio::buffer(line.dump() + '\n'), ignored);
}

void Control::listen(std::function<void(const Json&)> on_line, std::function<void(const std::string&)> on_end) {
  on_line_ = std::move(on_line);
  on_end_ = std::move(on_end);
  read_next();
}

void Control::read_next() {
  asio::async_read_until(socket_, asio::dynamic_buffer(buffer_, longest_line), '\n',
                         [this](const boost::system::error_code& error, std::size_t n) {
                           if (error) return on_end_(error.message());
                           const Json line = Json::parse(buffer_.substr(0, n), nullptr, false);
                           buffer_.erase(0, n);
                           if (!line.is_object()) return on_end_("what came is no line of JSON");
                           on_line_(line);
                           read_next();
                         });
}

}  // namespace ringsim::replay
