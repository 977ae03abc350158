// NCCL on fake GPUs: kernels that run when they may, in random legal orders, and wait for each other as NCCL's do,
// within a process or across several, which are threads here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fakes/fake_device.hpp"
#include "validate/replay/gpu/communicators.hpp"

namespace ringsim::test {

using replay::gpu::Communicators;
using replay::gpu::End;
using replay::gpu::MeetingPoint;
using replay::gpu::Member;

/// What the processes of a replay share: messages on their way, and which ranks have joined what.
struct FakeWorld;
struct NcclProcess;
struct NcclLine;
struct NcclPart;
std::shared_ptr<FakeWorld> make_fake_world();

struct FakeNcclSettings {
  std::optional<int> fails_at;  ///< the call, counted from 0, that fails, with `fault`; and so does every later one
  Fault fault = Fault::other;
  bool notices_peers = true;  ///< when a peer gives up, query() says so; else one waits for it in vain
};

/// Held to what communicators.hpp says: a kernel starts when its stream and its end are free, in the order of groups on
/// an end, and ends when all its messages have been matched by kernels that run. A send takes its data at some moment
/// in between, a receive writes it at some moment later. So orders that cannot finish hang, and what is not ordered
/// is seen as wrong numbers.
///
/// Refused is what NCCL would hang or crash on: calls outside a group, or before what was begun is done; one end on
/// two streams of a group; memory or streams of another GPU; messages of two lengths; two ends on one GPU; a collective
/// without all ends of this process, or on buffers that overlap otherwise than in place; a connection used for the
/// first time in a capture, or in a group that lacks its other end though that is in this process as well.
class FakeNccl : public Communicators {
 public:
  explicit FakeNccl(FakeDevice& device, std::shared_ptr<FakeWorld> world = make_fake_world(),
                    FakeNcclSettings settings = {});
  ~FakeNccl() override;

  std::string name() const override { return "a fake NCCL"; }
  void expect(int communicators) override { expected_ = communicators; }
  Result make_meeting_point(MeetingPoint& out) override;
  Result join(int size, std::span<const Member> mine, const MeetingPoint& where, std::vector<End>& out) override;
  Result begin_group() override;
  Result end_group() override;
  Result send(End end, Stream stream, Memory from, int to_rank) override;
  Result receive(End end, Stream stream, Memory to, int from_rank) override;
  Result collective(End end, Stream stream, CollectiveOp op, Memory to, Memory from, int root) override;
  Result query(bool& done) override;
  void clear() noexcept override;
  void abort() noexcept override;

  /// From now on every call fails.
  void fail() { failed_ = true; }

  int calls() const { return calls_; }
  int expected() const { return expected_; }
  int kernels() const { return kernels_; }  ///< given to the device so far, or to a graph
  int held() const;                         ///< ends that were not left
  bool aborted() const;
  /// clear() came while kernels were at work, here or at a peer's, and no abort() before: NCCL would wait for them, or
  /// they for it.
  bool left_at_work() const { return left_at_work_; }

 private:
  std::optional<Result> call();
  Result refuse(std::string why);
  std::optional<Result> refuse_part(End end, Stream stream, const Memory& memory, int peer);
  std::optional<Result> refuse_group();
  std::optional<Result> refuse_collective(const NcclPart& part);
  std::optional<Result> connect(const std::vector<NcclPart>& parts);

  FakeDevice& device_;
  std::shared_ptr<FakeWorld> world_;
  std::shared_ptr<NcclProcess> process_;
  FakeNcclSettings settings_;
  std::vector<std::shared_ptr<NcclLine>> ends_;
  std::optional<std::vector<NcclPart>> group_;
  int calls_ = 0, expected_ = 0, kernels_ = 0, asked_ = 0;
  bool pending_ = false, failed_ = false, left_at_work_ = false;
};

}  // namespace ringsim::test
