// Pages of messages: tests/data/messages/NAME.txt.
#pragma once

#include <string>
#include <utility>

namespace ringsim::test {

/// All messages of one subject as one page that people review. A better wording changes the page alone: run the tests
/// with RINGSIM_ACCEPT_MESSAGES=1, which writes it, and read the difference.
///
///   == what is wrong
///   s.json: /topology: expected ..., found ...
///     hint: ...
class MessagePage {
 public:
  explicit MessagePage(std::string name) : name_(std::move(name)) {}
  /// `what`: the heading, in one line; line ends in it are written as \n. Fails the test if the message is empty.
  void add(const std::string& what, const std::string& message);
  /// Fails the test for each message that is not that of the page, and for each of the page that was not added.
  void check() const;

 private:
  std::string name_, text_;
};

}  // namespace ringsim::test
