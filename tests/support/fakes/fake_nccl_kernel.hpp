// What the fake NCCL has at work: messages between ends, and the kernels queued at an end.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/fakes/fake_nccl.hpp"

namespace ringsim::test {

/// Between two ends, or of a collective.
struct NcclMessage {
  std::optional<std::int64_t> sent, received;  // elements, once that kernel runs
  std::chrono::nanoseconds since{0};           // both run
  bool taken = false;
  std::vector<float> data;
};

struct NcclWire {
  std::size_t sends = 0, receives = 0;
  std::map<std::size_t, std::shared_ptr<NcclMessage>> open;  // [number]

  std::shared_ptr<NcclMessage> next(bool is_send) {
    const std::size_t number = is_send ? sends++ : receives++;
    auto& message = open[number];
    if (!message) message = std::make_shared<NcclMessage>();
    const auto found = message;
    if (number < std::min(sends, receives)) open.erase(number);  // both have it
    return found;
  }
};

/// The k-th collective of a communicator.
struct NcclRound {
  CollectiveOp op{};
  int root = 0, running = 0, given = 0;
  std::chrono::nanoseconds since{0};
  std::vector<std::vector<float>> from;  // [rank]
};

/// A connection is made when both have asked for it; of a collective, when all have.
using NcclConnection = std::tuple<int, int, CollectiveOp, std::int64_t>;

struct NcclCommunicator {
  int size = 0;
  std::set<int> joined;
  int at_work = 0;                                // kernels, of all processes that have not given up
  std::map<std::pair<int, int>, NcclWire> wires;  // {from, to}
  std::map<int, std::size_t> rounds_of;           // [rank] that it has begun
  std::map<std::size_t, std::shared_ptr<NcclRound>> rounds;
  std::map<NcclConnection, std::set<int>> asked;  // by ranks

  bool is_connected(const NcclConnection& connection) const {
    const auto found = asked.find(connection);
    if (found == asked.end()) return false;
    const bool is_collective = std::get<0>(connection) < 0;
    return static_cast<int>(found->second.size()) == (is_collective ? size : 2);
  }
};

struct FakeWorld {
  std::mutex mutex;
  int points = 0;
  std::map<MeetingPoint, std::shared_ptr<NcclCommunicator>> communicators;
  std::string broken;  // how, by whomever
  bool given_up = false;
};

class NcclKernel;

/// What kernels need to know of those that issued them. All of it under the world's mutex.
struct NcclProcess {
  bool aborted = false;
  std::vector<std::pair<std::shared_ptr<NcclCommunicator>, NcclConnection>> to_connect;
  std::shared_ptr<NcclCommunicator> joining;
};

/// An end, and the kernels queued at it.
struct NcclLine {
  std::shared_ptr<NcclCommunicator> communicator;
  int rank = 0, gpu = 0;
  std::deque<const NcclKernel*> kernels;
  bool is_mine(const std::vector<std::shared_ptr<NcclLine>>& ends, int other) const {
    return std::any_of(ends.begin(), ends.end(),
                       [&](const auto& end) { return end->communicator == communicator && end->rank == other; });
  }
};

struct NcclPart {
  enum class What : std::uint8_t { send, receive, collective } what = What::send;
  std::shared_ptr<NcclLine> end;
  Stream stream{};
  Memory to, from;
  int peer = 0;  // the root, of a collective
  CollectiveOp op{};
  // Of a run:
  bool given = false, done = false;
  std::shared_ptr<NcclMessage> message;
  std::shared_ptr<NcclRound> round;

  NcclConnection connection() const {
    if (what == What::collective) return {-1, -1, op, std::max(from.count, to.count)};
    const auto [a, b] = what == What::send ? std::pair{end->rank, peer} : std::pair{peer, end->rank};
    return {a, b, {}, 0};
  }
};

/// A group's part at one end.
class NcclKernel : public FakeKernel {
 public:
  NcclKernel(std::shared_ptr<FakeWorld> world, std::shared_ptr<NcclProcess> process, FakeCosts costs,
             std::vector<NcclPart> parts)
      : world_(std::move(world)), process_(std::move(process)), costs_(costs), parts_(std::move(parts)) {}

  std::shared_ptr<FakeKernel> issue() const override;
  bool may_start() const override;
  void start(std::chrono::nanoseconds now) override;
  bool go_on(std::mt19937_64& random) override;
  bool is_done() const override;
  std::chrono::nanoseconds finish() const override { return finish_; }

 private:
  NcclLine& line() const { return *parts_.front().end; }
  void post(NcclPart& part, std::chrono::nanoseconds now);
  void enter(NcclPart& part, std::chrono::nanoseconds now);
  bool may_go_on(const NcclPart& part) const;
  void go_on(NcclPart& part);
  void result(const NcclPart& part) const;

  std::shared_ptr<FakeWorld> world_;
  std::shared_ptr<NcclProcess> process_;
  FakeCosts costs_;
  std::vector<NcclPart> parts_;
  bool done_ = false;
  std::chrono::nanoseconds finish_{0};
};

}  // namespace ringsim::test
