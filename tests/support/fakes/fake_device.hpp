// Fake GPUs: what is issued to them is kept as a graph and done in a random legal order, on real arrays.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "validate/replay/gpu/device.hpp"

namespace ringsim::test {

using replay::gpu::Device;
using replay::gpu::Difference;
using replay::gpu::Event;
using replay::gpu::Fault;
using replay::gpu::Graph;
using replay::gpu::host_memory;
using replay::gpu::Memory;
using replay::gpu::Numbers;
using replay::gpu::Place;
using replay::gpu::Result;
using replay::gpu::Stream;

/// What things cost on the fake's clock. Different for each, so that who mixes them up is seen.
struct FakeCosts {
  std::chrono::nanoseconds call{1000};                          ///< of the host, for each call
  std::chrono::nanoseconds copy{2000};                          ///< before the first byte of a copy
  std::chrono::nanoseconds kernel{3000};                        ///< before a kernel does anything
  std::chrono::nanoseconds event{0};                            ///< of what waits for one
  std::chrono::nanoseconds first{0};                            ///< that the first launch of a graph takes more
  double inside = 2000, peer = 400, to_gpu = 50, to_host = 40;  ///< bytes a nanosecond, of copies
  double a_block = 25;                                          ///< of a copy kernel, each block, up to `inside`
  double add = 1000, add_on_host = 10;                          ///< bytes of the result a nanosecond
};

struct FakeSettings {
  int gpus = 1;
  std::uint64_t seed = 0;
  std::int64_t elements = INT64_MAX;  ///< that a GPU, and the host, have room for
  std::optional<int> fails_at;        ///< the call, counted from 0, that fails, with `fault`
  Fault fault = Fault::other;         ///< lost: all later calls fail as well
  std::optional<int> stalls_after;    ///< so many operations nothing goes on
  FakeCosts costs;
};

/// What another library has the fake GPU do. Unlike the rest it may have to wait, and takes as many moments as it
/// likes.
class FakeKernel {
 public:
  virtual ~FakeKernel() = default;
  /// It has been issued: a run of it, with its place in line. Of a graph's, at each launch.
  virtual std::shared_ptr<FakeKernel> issue() const = 0;
  virtual bool may_start() const = 0;
  /// `now`: what comes before it on its stream is done, on the fake's clock.
  virtual void start(std::chrono::nanoseconds now) = 0;
  /// One thing happens, by chance one of several. False: nothing can at present.
  virtual bool go_on(std::mt19937_64& random) = 0;
  virtual bool is_done() const = 0;
  virtual std::chrono::nanoseconds finish() const = 0;
};

/// In each place streams are served in order and events are waited for; nothing else orders anything. Every operation
/// reads at one moment and writes at a later one, so that two which nothing orders can be seen to disturb each other.
/// Misuse, as of memory on another GPU, of memory that is not there or of a capture that is not joined, is refused.
class FakeDevice : public Device {
 public:
  explicit FakeDevice(FakeSettings settings);
  ~FakeDevice() override;

  std::string name() const override { return "a fake GPU"; }
  int gpus() const override { return settings_.gpus; }
  Result allocate(Place place, std::int64_t count, Memory& out) override;
  Result make_stream(int gpu, Stream& out) override;
  Result make_event(int gpu, bool timed, Event& out) override;
  void clear() noexcept override;
  void abandon() noexcept override { abandoned_ = true; }
  Result copy(Stream stream, Memory to, Memory from, int blocks) override;
  Result add(Stream stream, Memory to, Memory base, Memory what) override;
  Result set(Stream stream, Memory to, float value) override;
  Result put(Stream stream, Memory to, Numbers numbers) override;
  Result compute(Stream stream, std::chrono::nanoseconds time) override;
  Result record(Stream stream, Event event) override;
  Result wait(Stream stream, Event event) override;
  Result begin_capture(Stream origin) override;
  Result end_capture(Stream origin, Graph& out) override;
  Result launch(Stream stream, Graph graph) override;
  Result query(Event event, bool& done) override;
  Result elapsed(Event from, Event to, std::chrono::nanoseconds& out) override;
  Result compare(Stream stream, Memory memory, Numbers numbers, Difference& out) override;

  /// A kernel of another library's, on the stream's GPU.
  Result run_kernel(Stream stream, std::shared_ptr<const FakeKernel> kernel);
  int gpu_of(Stream stream) const { return streams_.at(static_cast<std::size_t>(stream)).gpu; }
  bool has(const Memory& memory) const;  ///< was it allocated here?
  /// Is what is issued to the stream kept for a graph?
  bool is_captured(Stream stream) const;
  const FakeSettings& settings() const { return settings_; }
  /// From now on nothing goes on.
  void stall() { settings_.stalls_after = 0; }

  int calls() const { return calls_; }
  std::int64_t copies() const { return copies_; }  ///< done so far
  std::int64_t adds() const { return adds_; }
  /// Memory that was not given back, in elements.
  std::int64_t held() const;
  bool abandoned() const { return abandoned_; }

 private:
  enum class What : std::uint8_t { nothing, copy, add, set, put, compute, kernel };
  struct Work {
    What what = What::nothing;
    Memory to, base, from;
    float value = 0;
    Numbers numbers;
    std::chrono::nanoseconds time{0};
    int gpu = 0, blocks = 0;
    std::shared_ptr<const FakeKernel> kernel;
  };
  struct Node {
    Work work;
    std::vector<std::size_t> after, next;
    std::size_t unmet = 0;
    bool done = false;
    std::vector<float> taken;
    std::shared_ptr<FakeKernel> run;  // of kernel
    std::chrono::nanoseconds issued{0}, finish{0};
  };
  struct StreamState {
    int gpu = 0;
    std::optional<std::size_t> last, captured;  // nodes, of nodes_ and of capture_
  };
  struct EventState {
    int gpu = 0;
    bool timed = false;
    std::optional<std::size_t> node, captured;
  };
  struct Room {
    Place place;
    std::vector<float> data;
  };

  std::optional<Result> call();
  Result refuse(std::string why);
  Result issue(Stream stream, Work work, std::vector<std::size_t> also = {});
  std::size_t add_node(std::vector<Node>& nodes, Work work, std::vector<std::size_t> after);
  std::size_t start_node(Work work, std::vector<std::size_t> after);
  bool step();
  bool begin(std::size_t id);
  bool end(std::size_t id);
  void take(Node& node);
  void give(Node& node);
  std::chrono::nanoseconds cost(const Work& work) const;
  StreamState& state(Stream stream) { return streams_.at(static_cast<std::size_t>(stream)); }
  EventState& state(Event event) { return events_.at(static_cast<std::size_t>(event)); }

  FakeSettings settings_;
  std::mt19937_64 random_;
  int calls_ = 0, operations_ = 0;
  std::int64_t copies_ = 0, adds_ = 0;
  bool lost_ = false, abandoned_ = false;
  std::chrono::nanoseconds host_now_{0};
  std::vector<Room> rooms_;
  std::vector<StreamState> streams_;
  std::vector<EventState> events_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> ready_, begun_;
  std::optional<Stream> capturing_;
  std::vector<Node> capture_;
  std::vector<std::vector<Node>> graphs_;
  std::vector<bool> launched_;                                       // [graph]
  std::map<std::pair<int, int>, std::chrono::nanoseconds> free_at_;  // {from, to} a way is free again
};

}  // namespace ringsim::test
