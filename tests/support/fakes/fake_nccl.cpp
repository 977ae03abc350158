#include "tests/support/fakes/fake_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "tests/support/fakes/fake_nccl_kernel.hpp"

namespace ringsim::test {

std::shared_ptr<FakeWorld> make_fake_world() { return std::make_shared<FakeWorld>(); }

FakeNccl::FakeNccl(FakeDevice& device, std::shared_ptr<FakeWorld> world, FakeNcclSettings settings)
    : device_(device), world_(std::move(world)), process_(std::make_shared<NcclProcess>()), settings_(settings) {}
FakeNccl::~FakeNccl() = default;

int FakeNccl::held() const { return static_cast<int>(ends_.size()); }
bool FakeNccl::aborted() const { return process_->aborted; }
Result FakeNccl::refuse(std::string why) { return {Fault::misuse, std::move(why)}; }

// What every call begins with: the failure that was asked for.
std::optional<Result> FakeNccl::call() {
  failed_ = failed_ || calls_++ == settings_.fails_at;
  if (failed_) return Result{settings_.fault, "the fake NCCL was set to fail"};
  if (process_->aborted) return refuse("a call after all was given up");
  return std::nullopt;
}

Result FakeNccl::make_meeting_point(MeetingPoint& out) {
  const std::lock_guard lock(world_->mutex);
  if (auto failed = call()) return *failed;
  const std::string text = fmt::format("point {}", world_->points++);
  out.fill(0);
  std::copy(text.begin(), text.end(), out.begin());
  world_->communicators[out] = std::make_shared<NcclCommunicator>();
  return {};
}

Result FakeNccl::join(int size, std::span<const Member> mine, const MeetingPoint& where, std::vector<End>& out) {
  const std::lock_guard lock(world_->mutex);
  if (auto failed = call()) return *failed;
  if (pending_ || group_) return refuse("joining while something else is under way");
  const auto found = world_->communicators.find(where);
  if (found == world_->communicators.end()) return refuse("a meeting point that nobody made");
  NcclCommunicator& communicator = *found->second;
  if (communicator.size != 0 && communicator.size != size) return refuse("a communicator of another size");
  communicator.size = size;
  std::set<int> gpus;
  out.clear();
  for (const Member& member : mine) {
    if (member.rank < 0 || member.rank >= size || !communicator.joined.insert(member.rank).second)
      return refuse("a rank that joins twice, or is none");
    if (member.gpu < 0 || member.gpu >= device_.gpus() || !gpus.insert(member.gpu).second)
      return refuse("two ranks on one GPU, or on none");
    auto end = std::make_shared<NcclLine>();
    end->communicator = found->second;
    end->rank = member.rank;
    end->gpu = member.gpu;
    out.push_back(static_cast<End>(ends_.size()));
    ends_.push_back(std::move(end));
  }
  process_->joining = found->second;
  pending_ = true;
  return {};
}

Result FakeNccl::begin_group() {
  const std::lock_guard lock(world_->mutex);
  if (auto failed = call()) return *failed;
  if (pending_ || group_) return refuse("a group while something else is under way");
  group_.emplace();
  return {};
}

std::optional<Result> FakeNccl::refuse_part(End end, Stream stream, const Memory& memory, int peer) {
  if (!group_) return refuse("a call outside a group");
  const NcclLine& line = *ends_.at(static_cast<std::size_t>(end));
  if (peer < 0 || peer >= line.communicator->size) return refuse("no such rank");
  if (device_.gpu_of(stream) != line.gpu) return refuse("a stream of another GPU");
  if (memory.place != line.gpu || !device_.has(memory)) return refuse("memory that is not there");
  for (const NcclPart& part : *group_)
    if (part.end.get() == &line && part.stream != stream) return refuse("one end on two streams of a group");
  return std::nullopt;
}

Result FakeNccl::send(End end, Stream stream, Memory from, int to_rank) {
  const std::lock_guard lock(world_->mutex);
  if (auto failed = call()) return *failed;
  if (auto refused = refuse_part(end, stream, from, to_rank)) return *refused;
  auto& line = ends_.at(static_cast<std::size_t>(end));
  if (line->rank == to_rank) return refuse("a message to oneself");
  group_->push_back({.what = NcclPart::What::send, .end = line, .stream = stream, .from = from, .peer = to_rank});
  return {};
}

Result FakeNccl::receive(End end, Stream stream, Memory to, int from_rank) {
  const std::lock_guard lock(world_->mutex);
  if (auto failed = call()) return *failed;
  if (auto refused = refuse_part(end, stream, to, from_rank)) return *refused;
  auto& line = ends_.at(static_cast<std::size_t>(end));
  if (line->rank == from_rank) return refuse("a message to oneself");
  group_->push_back({.what = NcclPart::What::receive, .end = line, .stream = stream, .to = to, .peer = from_rank});
  return {};
}

Result FakeNccl::collective(End end, Stream stream, CollectiveOp op, Memory to, Memory from, int root) {
  const std::lock_guard lock(world_->mutex);
  if (auto failed = call()) return *failed;
  if (auto refused = refuse_part(end, stream, from, root)) return *refused;
  if (auto refused = refuse_part(end, stream, to, root)) return *refused;
  auto& line = ends_.at(static_cast<std::size_t>(end));
  group_->push_back({.what = NcclPart::What::collective,
                     .end = line,
                     .stream = stream,
                     .to = to,
                     .from = from,
                     .peer = root,
                     .op = op});
  return {};
}

std::optional<Result> FakeNccl::refuse_collective(const NcclPart& part) {
  const int size = part.end->communicator->size;
  const std::int64_t times_from = part.op == CollectiveOp::all_gather ? size : 1;
  const std::int64_t times_to = part.op == CollectiveOp::reduce_scatter ? size : 1;
  if (part.from.count * times_from != part.to.count * times_to) return refuse("a collective of other counts");
  const bool apart = part.to.data + part.to.count <= part.from.data || part.from.data + part.from.count <= part.to.data;
  const bool in_place = part.to.data + (times_from > 1 ? part.end->rank * part.from.count : 0) ==
                        part.from.data + (times_to > 1 ? part.end->rank * part.to.count : 0);
  if (!apart && !in_place) return refuse("a collective on buffers that overlap");
  return std::nullopt;
}

std::optional<Result> FakeNccl::refuse_group() {
  const auto is_collective = [](const NcclPart& part) { return part.what == NcclPart::What::collective; };
  if (std::none_of(group_->begin(), group_->end(), is_collective)) return std::nullopt;
  const auto& communicator = group_->front().end->communicator;
  std::set<const NcclLine*> ends;
  for (const NcclPart& part : *group_) {
    if (!is_collective(part) || part.end->communicator != communicator || !ends.insert(part.end.get()).second)
      return refuse("a collective and something else in one group");
    if (auto refused = refuse_collective(part)) return refused;
  }
  for (const auto& end : ends_)
    if (end->communicator == communicator && !ends.contains(end.get()))
      return refuse("a collective without all ends of this process");
  return std::nullopt;
}

// What has not been used yet: both ends must be in the group, where both are here.
std::optional<Result> FakeNccl::connect(const std::vector<NcclPart>& parts) {
  for (const NcclPart& part : parts) {
    const NcclConnection connection = part.connection();
    auto& communicator = part.end->communicator;
    if (communicator->is_connected(connection)) continue;
    if (device_.is_captured(part.stream)) return refuse("a first use within a capture");
    const bool both_here = part.what != NcclPart::What::collective && part.end->is_mine(ends_, part.peer);
    const bool has_both = std::any_of(parts.begin(), parts.end(), [&](const NcclPart& other) {
      return other.end->communicator == communicator && other.end->rank == part.peer &&
             other.connection() == connection;
    });
    if (both_here && !has_both) return refuse("a first use in a group without its other end");
    process_->to_connect.emplace_back(communicator, connection);
  }
  for (const NcclPart& part : parts) part.end->communicator->asked[part.connection()].insert(part.end->rank);
  return std::nullopt;
}

Result FakeNccl::end_group() {
  std::vector<std::vector<NcclPart>> kernels;
  {
    const std::lock_guard lock(world_->mutex);
    if (auto failed = call()) return *failed;
    if (!group_) return refuse("the end of no group");
    if (auto refused = refuse_group()) return *refused;
    if (auto refused = connect(*group_)) return *refused;
    for (NcclPart& part : *group_) {
      auto of_end = std::find_if(kernels.begin(), kernels.end(),
                                 [&](const auto& kernel) { return kernel.front().end == part.end; });
      if (of_end == kernels.end()) of_end = kernels.emplace(of_end);
      of_end->push_back(std::move(part));
    }
    group_.reset();
    pending_ = true;
  }
  kernels_ += static_cast<int>(kernels.size());
  for (auto& parts : kernels) {
    const Stream stream = parts.front().stream;
    const auto& costs = device_.settings().costs;
    if (Result result =
            device_.run_kernel(stream, std::make_shared<NcclKernel>(world_, process_, costs, std::move(parts)));
        !result.good())
      return result;
  }
  return {};
}

Result FakeNccl::query(bool& done) {
  const std::lock_guard lock(world_->mutex);
  if (auto failed = call()) return *failed;
  if (!world_->broken.empty()) return refuse(world_->broken);
  if (world_->given_up && settings_.notices_peers) return {Fault::other, "a peer has given up"};
  const bool joined =
      !process_->joining || static_cast<int>(process_->joining->joined.size()) == process_->joining->size;
  const bool connected = std::all_of(process_->to_connect.begin(), process_->to_connect.end(),
                                     [](const auto& one) { return one.first->is_connected(one.second); });
  done = !pending_ || (joined && connected && ++asked_ % 3 != 1);  // now and then it takes a while
  if (!done) return {};
  pending_ = false;
  process_->joining = nullptr;
  process_->to_connect.clear();
  return {};
}

void FakeNccl::clear() noexcept {
  const std::lock_guard lock(world_->mutex);
  for (const auto& end : ends_) left_at_work_ = left_at_work_ || (end->communicator->at_work > 0 && !process_->aborted);
  ends_.clear();
  group_.reset();
}

void FakeNccl::abort() noexcept {
  const std::lock_guard lock(world_->mutex);
  for (const auto& end : ends_) {
    end->communicator->at_work -= static_cast<int>(end->kernels.size());
    end->kernels.clear();
  }
  process_->aborted = true;
  world_->given_up = true;
}

}  // namespace ringsim::test
