#include "tests/support/fakes/fake_device.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "validate/replay/contribution.hpp"

namespace ringsim::test {

namespace {

using replay::contribution;

float sum_of(const Numbers& numbers, std::int64_t element) {
  float sum = 0;
  for (Actor rank = numbers.first; rank <= numbers.last; ++rank)
    sum += contribution(numbers.ranks, rank, numbers.chunk, element);
  return sum;
}

}  // namespace

FakeDevice::FakeDevice(FakeSettings settings) : settings_(settings), random_(settings.seed) {}
FakeDevice::~FakeDevice() = default;

std::int64_t FakeDevice::held() const {
  std::int64_t sum = 0;
  for (const Room& room : rooms_) sum += static_cast<std::int64_t>(room.data.size());
  return sum;
}

// What every call begins with: the failure that was asked for.
std::optional<Result> FakeDevice::call() {
  host_now_ += settings_.costs.call;
  if (lost_) return Result{Fault::lost, "the fake GPU is gone"};
  if (calls_++ != settings_.fails_at) return std::nullopt;
  lost_ = settings_.fault == Fault::lost;
  return Result{settings_.fault, "the fake GPU was set to fail"};
}

Result FakeDevice::refuse(std::string why) { return {Fault::misuse, std::move(why)}; }

bool FakeDevice::has(const Memory& memory) const {
  return std::any_of(rooms_.begin(), rooms_.end(), [&](const Room& room) {
    return room.place == memory.place && memory.data >= room.data.data() &&
           memory.data + memory.count <= room.data.data() + room.data.size();
  });
}

Result FakeDevice::allocate(Place place, std::int64_t count, Memory& out) {
  if (auto failed = call()) return *failed;
  std::int64_t taken = count;
  for (const Room& room : rooms_)
    if (room.place == place) taken += static_cast<std::int64_t>(room.data.size());
  if (taken > settings_.elements) return {Fault::memory, "the fake GPU is full"};
  rooms_.push_back({place, std::vector<float>(static_cast<std::size_t>(count))});
  out = {place, rooms_.back().data.data(), count};
  return {};
}

Result FakeDevice::make_stream(int gpu, Stream& out) {
  if (auto failed = call()) return *failed;
  out = static_cast<Stream>(streams_.size());
  streams_.push_back({.gpu = gpu, .last = {}, .captured = {}});
  return {};
}

Result FakeDevice::make_event(int gpu, bool timed, Event& out) {
  if (auto failed = call()) return *failed;
  out = static_cast<Event>(events_.size());
  events_.push_back({.gpu = gpu, .timed = timed, .node = {}, .captured = {}});
  return {};
}

void FakeDevice::clear() noexcept {
  rooms_.clear();
  streams_.clear();
  events_.clear();
  nodes_.clear();
  ready_.clear();
  begun_.clear();
  capturing_.reset();
  capture_.clear();
  graphs_.clear();
  launched_.clear();
  free_at_.clear();
}

std::size_t FakeDevice::add_node(std::vector<Node>& nodes, Work work, std::vector<std::size_t> after) {
  Node node;
  node.work = std::move(work);
  node.after = std::move(after);
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

std::size_t FakeDevice::start_node(Work work, std::vector<std::size_t> after) {
  const std::size_t id = add_node(nodes_, std::move(work), std::move(after));
  Node& node = nodes_[id];
  node.issued = host_now_;
  if (node.work.kernel) node.run = node.work.kernel->issue();
  for (const std::size_t before : node.after) {
    if (nodes_[before].done) continue;
    nodes_[before].next.push_back(id);
    ++node.unmet;
  }
  if (node.unmet == 0) ready_.push_back(id);
  return id;
}

Result FakeDevice::issue(Stream stream, Work work, std::vector<std::size_t> also) {
  StreamState& s = state(stream);
  work.gpu = s.gpu;
  if (capturing_ && (s.captured || stream == *capturing_)) {
    if (s.captured) also.push_back(*s.captured);
    s.captured = add_node(capture_, std::move(work), std::move(also));
  } else {
    if (s.last) also.push_back(*s.last);
    s.last = start_node(std::move(work), std::move(also));
  }
  return {};
}

Result FakeDevice::copy(Stream stream, Memory to, Memory from, int blocks) {
  if (auto failed = call()) return *failed;
  if (!has(to) || !has(from)) return refuse("a copy of memory that is not there");
  if (to.count != from.count) return refuse("a copy of another size");
  return issue(stream, {.what = What::copy, .to = to, .from = from, .blocks = blocks});
}

Result FakeDevice::add(Stream stream, Memory to, Memory base, Memory what) {
  if (auto failed = call()) return *failed;
  if (!has(to) || !has(base) || !has(what)) return refuse("an addition of memory that is not there");
  if (to.count != base.count || to.count != what.count) return refuse("an addition of another size");
  if (to.place != base.place || to.place != what.place) return refuse("an addition across places");
  if (to.place != host_memory && to.place != state(stream).gpu) return refuse("an addition on another GPU");
  return issue(stream, {.what = What::add, .to = to, .base = base, .from = what});
}

Result FakeDevice::set(Stream stream, Memory to, float value) {
  if (auto failed = call()) return *failed;
  if (!has(to)) return refuse("a kernel on memory that is not there");
  if (to.place != host_memory && to.place != state(stream).gpu) return refuse("a kernel on another GPU's memory");
  return issue(stream, {.what = What::set, .to = to, .value = value});
}

Result FakeDevice::put(Stream stream, Memory to, Numbers numbers) {
  if (auto failed = call()) return *failed;
  if (!has(to)) return refuse("a kernel on memory that is not there");
  if (to.place != host_memory && to.place != state(stream).gpu) return refuse("a kernel on another GPU's memory");
  return issue(stream, {.what = What::put, .to = to, .numbers = numbers});
}

Result FakeDevice::compute(Stream stream, std::chrono::nanoseconds time) {
  if (auto failed = call()) return *failed;
  return issue(stream, {.what = What::compute, .time = time});
}

// Not a call of this library's: it counts, and fails, by itself.
Result FakeDevice::run_kernel(Stream stream, std::shared_ptr<const FakeKernel> kernel) {
  return issue(stream, {.what = What::kernel, .kernel = std::move(kernel)});
}

bool FakeDevice::is_captured(Stream stream) const {
  return capturing_ && (streams_.at(static_cast<std::size_t>(stream)).captured || stream == *capturing_);
}

Result FakeDevice::record(Stream stream, Event event) {
  if (auto failed = call()) return *failed;
  EventState& e = state(event);
  if (e.gpu != state(stream).gpu) return refuse("an event of another GPU");
  Result result = issue(stream, {});
  const StreamState& s = state(stream);
  e.node = s.captured ? std::nullopt : s.last;
  e.captured = s.captured;
  return result;
}

Result FakeDevice::wait(Stream stream, Event event) {
  if (auto failed = call()) return *failed;
  const EventState& e = state(event);
  StreamState& s = state(stream);
  if (!e.node && !e.captured) return {};  // never recorded: for nothing, as CUDA has it
  const bool is_captured = capturing_ && (s.captured || stream == *capturing_);
  if (e.captured) {
    if (!capturing_) return refuse("waiting for an event of a capture that has ended");
    std::vector<std::size_t> after{*e.captured};
    if (s.captured) after.push_back(*s.captured);
    s.captured = add_node(capture_, {.time = settings_.costs.event, .gpu = s.gpu}, std::move(after));
    return {};
  }
  if (is_captured) return refuse("a capture waits for what is outside it");
  return issue(stream, {.time = settings_.costs.event}, {*e.node});
}

Result FakeDevice::begin_capture(Stream origin) {
  if (auto failed = call()) return *failed;
  if (capturing_) return refuse("a capture within a capture");
  capturing_ = origin;
  capture_.clear();
  return {};
}

Result FakeDevice::end_capture(Stream origin, Graph& out) {
  if (auto failed = call()) return *failed;
  if (capturing_ != origin) return refuse("the end of another capture");
  std::set<std::size_t> joined;
  std::vector<std::size_t> open;
  if (const auto& last = state(origin).captured) open.push_back(*last);
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (!joined.insert(node).second) continue;
    open.insert(open.end(), capture_[node].after.begin(), capture_[node].after.end());
  }
  if (joined.size() != capture_.size()) return refuse("a capture with work that its origin does not wait for");
  for (StreamState& stream : streams_) stream.captured.reset();
  capturing_.reset();
  out = static_cast<Graph>(graphs_.size());
  graphs_.push_back(std::move(capture_));
  launched_.push_back(false);
  return {};
}

Result FakeDevice::launch(Stream stream, Graph graph) {
  if (auto failed = call()) return *failed;
  if (capturing_) return refuse("a launch within a capture");
  const bool again = launched_.at(static_cast<std::size_t>(graph));
  launched_[static_cast<std::size_t>(graph)] = true;
  const auto begins = again ? std::chrono::nanoseconds(0) : settings_.costs.first;
  if (Result begun = issue(stream, {.time = begins}); !begun.good()) return begun;
  const std::size_t root = *state(stream).last;
  std::vector<std::size_t> ids;
  for (const Node& node : graphs_.at(static_cast<std::size_t>(graph))) {
    std::vector<std::size_t> after{root};
    for (const std::size_t before : node.after) after.push_back(ids[before]);
    ids.push_back(start_node(node.work, std::move(after)));
  }
  return issue(stream, {}, std::move(ids));
}

// One thing happens: an operation reads, or one that has read writes. Kernels that wait for others are passed over.
bool FakeDevice::step() {
  if (ready_.empty() && begun_.empty()) return false;
  if (settings_.stalls_after && operations_ >= *settings_.stalls_after) return false;
  const std::size_t n = ready_.size() + begun_.size();
  const std::size_t chosen = std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t which = (chosen + i) % n;
    const bool begins = which < ready_.size();
    std::vector<std::size_t>& list = begins ? ready_ : begun_;
    const std::size_t at = begins ? which : which - ready_.size(), id = list[at];
    if (begins ? !begin(id) : !end(id)) continue;
    if (!begins && !nodes_[id].done) return true;  // a kernel that goes on
    list[at] = list.back();
    list.pop_back();
    if (begins) begun_.push_back(id);
    return true;
  }
  return false;
}

bool FakeDevice::begin(std::size_t id) {
  Node& node = nodes_[id];
  if (node.run && !node.run->may_start()) return false;
  take(node);
  return true;
}

bool FakeDevice::end(std::size_t id) {
  Node& node = nodes_[id];
  if (node.run) {
    if (!node.run->is_done()) return node.run->go_on(random_);
    node.finish = node.run->finish();
    node.run = nullptr;
  }
  give(node);
  node.done = true;
  ++operations_;
  for (const std::size_t next : node.next)
    if (--nodes_[next].unmet == 0) ready_.push_back(next);
  return true;
}

void FakeDevice::take(Node& node) {
  const Work& work = node.work;
  const auto count = static_cast<std::size_t>(work.to.count);
  if (work.what == What::copy) node.taken.assign(work.from.data, work.from.data + count);
  if (work.what == What::add) {
    node.taken.resize(count);
    for (std::size_t i = 0; i < count; ++i) node.taken[i] = work.base.data[i] + work.from.data[i];
  }
  // Ways of one kind serve in turn; what is added or set has the GPU for itself.
  std::chrono::nanoseconds start = node.issued;
  for (const std::size_t before : node.after) start = std::max(start, nodes_[before].finish);
  if (node.run) return node.run->start(start);
  if (work.what == What::nothing || work.what == What::compute) {
    node.finish = start + work.time;
    return;
  }
  const std::pair way{work.what == What::copy ? work.from.place : work.to.place, work.to.place};
  std::chrono::nanoseconds& free_at = free_at_[way];
  node.finish = free_at = std::max(start, free_at) + cost(work);
}

void FakeDevice::give(Node& node) {
  const Work& work = node.work;
  if (work.what == What::copy || work.what == What::add) {
    std::copy(node.taken.begin(), node.taken.end(), work.to.data);
    ++(work.what == What::copy ? copies_ : adds_);
    node.taken = {};
  }
  if (work.what == What::set) std::fill_n(work.to.data, work.to.count, work.value);
  if (work.what == What::put)
    for (std::int64_t i = 0; i < work.to.count; ++i) work.to.data[i] = sum_of(work.numbers, i);
}

std::chrono::nanoseconds FakeDevice::cost(const Work& work) const {
  const FakeCosts& c = settings_.costs;
  const double bytes = static_cast<double>(work.to.count) * sizeof(float);
  const auto takes = [&](std::chrono::nanoseconds latency, double rate) {
    return latency + std::chrono::nanoseconds(static_cast<std::int64_t>(bytes / rate));
  };
  if (work.what == What::add) return takes(c.kernel, work.to.place == host_memory ? c.add_on_host : c.add);
  if (work.what != What::copy) return takes(c.kernel, c.inside);
  if (work.blocks > 0) return takes(c.kernel, std::min(c.inside, c.a_block * work.blocks));
  if (work.from.place == host_memory) return takes(c.copy, c.to_gpu);
  if (work.to.place == host_memory) return takes(c.copy, c.to_host);
  return takes(c.copy, work.from.place == work.to.place ? c.inside : c.peer);
}

Result FakeDevice::query(Event event, bool& done) {
  if (auto failed = call()) return *failed;
  if (capturing_) return refuse("a question within a capture");
  const EventState& e = state(event);
  if (e.captured) return refuse("a question about an event of a capture");
  for (int i = 0; i < 1000 && step(); ++i) {
  }
  done = !e.node || nodes_[*e.node].done;
  if (e.node && done) host_now_ = std::max(host_now_, nodes_[*e.node].finish);  // it was waited for
  return {};
}

Result FakeDevice::elapsed(Event from, Event to, std::chrono::nanoseconds& out) {
  if (auto failed = call()) return *failed;
  const EventState &a = state(from), &b = state(to);
  if (!a.timed || !b.timed || !a.node || !b.node) return refuse("the time between events that were not timed");
  if (!nodes_[*a.node].done || !nodes_[*b.node].done) return refuse("the time between events that are not done");
  out = nodes_[*b.node].finish - nodes_[*a.node].finish;
  return {};
}

Result FakeDevice::compare(Stream stream, Memory memory, Numbers numbers, Difference& out) {
  if (auto failed = call()) return *failed;
  if (!has(memory)) return refuse("comparing memory that is not there");
  if (memory.place != host_memory && memory.place != state(stream).gpu) return refuse("comparing another GPU's memory");
  for (const auto& last = state(stream).last; last && !nodes_[*last].done;)
    if (!step()) return {Fault::other, "the fake GPU stands still"};
  out = {};
  for (std::int64_t i = 0; i < memory.count; ++i) {
    const float expected = sum_of(numbers, i), found = memory.data[i];
    if (std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected)) continue;
    if (out.wrong++ == 0) out = {.wrong = 1, .first = i, .expected = expected, .found = found};
  }
  return {};
}

}  // namespace ringsim::test
