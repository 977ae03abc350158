#include "algorithms/formats/mscclpp_export.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "algorithms/formats/mscclpp_blocks.hpp"
#include "algorithms/formats/mscclpp_import.hpp"
#include "algorithms/formats/mscclpp_plan.hpp"
#include "algorithms/formats/thread_blocks.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/text/json.hpp"

namespace ringsim {

namespace mscclpp {

namespace {

/// All of them have to be on the GPU at the same time, one per multiprocessor: an A100 has 108, the fewest of the GPUs
/// that MSCCL++ is tested on.
constexpr std::size_t most_blocks = 108;
/// Its executor computes addresses in 32 bits, and moves 16 bytes at a time.
constexpr std::int64_t largest_message = (std::int64_t{1} << 32) - 16;

std::string word_for(const StoredSchedule& stored) {
  switch (stored.op) {
    case CollectiveOp::all_reduce:
      return "allreduce";
    case CollectiveOp::all_gather:
      return "allgather";
    case CollectiveOp::reduce_scatter:
      return "reducescatter";
    case CollectiveOp::all_to_all:
      return "alltoall";
    case CollectiveOp::send_recv:
      return "sendrecv";
    default:
      refuse_plan(stored, fmt::format("the format has no name for {} or does not state its root", to_string(stored.op)),
                  "--to json supports every collective");
  }
}

Refusal refusal_of_plan(const StoredSchedule& stored) {
  return [&stored](const std::string& what, const std::string& hint) { refuse_plan(stored, what, hint); };
}

void check_holds(const StoredSchedule& stored) {
  if (!stored.tree.empty())
    refuse_plan(stored, "its switches add or multicast, and ringsim cannot write switch channels",
                "use an algorithm in which the GPUs do this");
  require_ranks_that_only_move(stored, refusal_of_plan(stored));
}

/// A GPU's list of names, in the order of their first use.
template <class T>
class Numbers {
 public:
  int of(const T& each) {
    const auto found = numbers_.try_emplace(each, static_cast<int>(list_.size()));
    if (found.second) list_.push_back(each);
    return found.first->second;
  }
  const std::vector<T>& list() const { return list_; }

 private:
  std::map<T, int> numbers_;
  std::vector<T> list_;
};

class PlanWriter {
 public:
  PlanWriter(const StoredSchedule& original, const StoredSchedule& stored, int chunks)
      : original_(original), stored_(stored), chunks_(chunks), laid_out_(lay_out(stored)) {}

  std::string text() {
    number_channels();
    std::string out = fmt::format(
        "{{\n  \"name\": {},\n  \"collective\": \"{}\",\n  \"protocol\": \"Simple\",\n  \"inplace\": {},\n"
        "  \"reuse_resources\": false,\n  \"num_threads_per_block\": 1024,\n  \"use_double_scratch_buffer\": false,\n"
        "  \"buffer_alignment\": 16,\n  \"min_message_size\": {},\n  \"max_message_size\": {},\n  \"gpus\": [",
        json_text(Json(stored_.name)), word_for(stored_), stored_.placement == Placement::in_place, stored_.min_bytes,
        stored_.max_bytes == 0 ? largest_message : std::min(stored_.max_bytes, largest_message));
    for (Actor rank = 0; rank < stored_.ranks; ++rank) out += fmt::format("{}{}", rank == 0 ? "\n" : ",\n", gpu(rank));
    return out + "\n  ]\n}\n";
  }

 private:
  using RemoteBuffer = std::pair<Actor, char>;
  /// Both thread blocks of a connection, and how it moves data: signals of one never meet waits of another.
  struct Pair {
    Actor from, to;
    int channel;
    bool pulled;
    int sender, receiver;
    auto operator<=>(const Pair&) const = default;
  };

  Pair pair_of(const Message& message) const {
    return {message.from, message.to, message.channel, message.pulled, message.sender, message.receiver};
  }

  /// Both GPUs list the channels between them in one order: that is how their ends find each other.
  void number_channels() {
    std::map<Pair, int> pairs;
    for (const Message& message : laid_out_.messages) pairs.try_emplace(pair_of(message), 0);
    peers_.resize(static_cast<std::size_t>(stored_.ranks));
    for (const auto& [pair, unused] : pairs)
      for (const bool sender : {true, false}) {
        auto& list = peers_[static_cast<std::size_t>(sender ? pair.from : pair.to)];
        ends_[{pair, sender}] = static_cast<int>(list.size());
        list.push_back(sender ? pair.to : pair.from);
      }
  }

  std::string gpu(Actor rank) {
    const auto& blocks = laid_out_.blocks[static_cast<std::size_t>(rank)];
    if (blocks.size() > most_blocks)
      refuse_plan(original_,
                  fmt::format("gpu {} needs {} thread blocks, but only {} fit on an A100 at the same time", rank,
                              blocks.size(), most_blocks),
                  "use fewer channels, slices or segments");
    const auto [input, output] = declared();
    buffers_ = {};
    semaphores_ = {};
    std::string text;
    for (std::size_t b = 0; b < blocks.size(); ++b)
      text += fmt::format("{}{}", b == 0 ? "\n" : ",\n", block(rank, static_cast<int>(b), blocks[b]));
    std::vector<std::string> remote;
    for (const auto& [peer, letter] : buffers_.list())
      remote.push_back(
          fmt::format(R"({{"rank": {}, "type": "{}", "access_channel_types": ["memory"]}})", peer, letter));
    const std::vector<std::string> semaphores(semaphores_.list().size(), R"({"init_value": 0})");
    const auto& peers = peers_[static_cast<std::size_t>(rank)];
    const std::string channels =
        peers.empty() ? ""
                      : fmt::format(R"({{"channel_type": "memory", "connected_to": [{}]}})", fmt::join(peers, ", "));
    return fmt::format(
        "    {{\n      \"id\": {}, \"input_chunks\": {}, \"output_chunks\": {}, \"scratch_chunks\": {},\n"
        "      \"channels\": [{}],\n      \"remote_buffers\": [{}],\n      \"semaphores\": [{}],\n"
        "      \"threadblocks\": [{}\n      ]\n    }}",
        rank, input, output, stored_.grids[static_cast<std::size_t>(Buffer::scratch)].chunks, channels,
        fmt::join(remote, ", "), fmt::join(semaphores, ", "), text);
  }

  /// Chunks of input and output. In place both name the larger buffer's parts; neither may be 0, for the executor
  /// divides by it.
  std::pair<int, int> declared() const {
    const int block = chunks_ / stored_.ranks;
    if (stored_.op == CollectiveOp::all_gather) return {block, chunks_};
    if (stored_.op == CollectiveOp::reduce_scatter) return {chunks_, block};
    return {chunks_, chunks_};
  }

  std::string block(Actor rank, int number, const std::vector<PlanOp>& ops) {
    Numbers<int> channels, remote;
    std::string text;
    for (const PlanOp& op : ops)
      text += fmt::format("{}            {}", text.empty() ? "\n" : ",\n", operation(rank, op, channels, remote));
    if (channels.list().size() > most_channels || remote.list().size() > most_channels)
      refuse_plan(original_, fmt::format("thread block {} of gpu {} uses {} channels and {} buffers of other gpus; the "
                                         "executor supports {} of each",
                                         number, rank, channels.list().size(), remote.list().size(), most_channels));
    const auto list = [](const char* type, const char* ids, const std::vector<int>& numbers) {
      return numbers.empty() ? ""
                             : fmt::format(R"({{"{}": "memory", "{}": [{}]}})", type, ids, fmt::join(numbers, ", "));
    };
    return fmt::format(
        "        {{\n          \"id\": {},\n          \"channels\": [{}],\n          \"remote_buffer_refs\": [{}],\n"
        "          \"ops\": [{}\n          ]\n        }}",
        number, list("channel_type", "channel_ids", channels.list()),
        list("access_channel_type", "remote_buffer_ids", remote.list()), text);
  }

  std::string operation(Actor rank, const PlanOp& op, Numbers<int>& channels, Numbers<int>& remote) {
    const auto far = [&](Actor peer, const Region& region) {
      const auto [letter, index] = place(region);
      return fmt::format(R"({{"buffer_id": {}, "index": {}, "size": {}}})", remote.of(buffers_.of({peer, letter})),
                         index, region.count);
    };
    const auto move = [](const char* name, const std::string& from, const std::string& to, const char* more) {
      return fmt::format(R"({{"name": "{}", "src_buff": [{}], "dst_buff": [{}]{}}})", name, from, to, more);
    };
    constexpr const char* by_memory = R"(, "channel_type": "memory")";
    constexpr const char* sum = R"(, "reduce_op": "sum")";
    switch (op.what) {
      case PlanOp::nop:
        return R"({"name": "nop"})";
      case PlanOp::barrier:
        return fmt::format(R"({{"name": "barrier", "barrier_id": {}, "num_threadblocks": {}}})", op.number, op.blocks);
      case PlanOp::acquire:
      case PlanOp::release: {
        std::vector<int> ids;
        for (const int wait : op.waits) ids.push_back(semaphore(laid_out_.waits[static_cast<std::size_t>(wait)]));
        return fmt::format(R"({{"name": "{}", "semaphore_ids": [{}]}})",
                           op.what == PlanOp::acquire ? "sem_acquire" : "sem_release", fmt::join(ids, ", "));
      }
      case PlanOp::copy:
        return move("copy", near(op.operand), near(op.region), "");
      case PlanOp::add:
        return move("re", fmt::format("{}, {}", near(op.region), near(op.operand)), near(op.region), sum);
      default:
        break;
    }
    const Message& message = laid_out_.messages[static_cast<std::size_t>(op.number)];
    if (op.what == PlanOp::signal || op.what == PlanOp::wait)
      return fmt::format(R"({{"name": "{}", "channel_ids": [{}], "channel_type": "memory"}})",
                         op.what == PlanOp::signal ? "signal" : "wait",
                         channels.of(ends_.at({pair_of(message), message.from == rank})));
    if (op.what == PlanOp::put) return move("put", near(message.source), far(message.to, message.target), by_memory);
    const Region& operand = message.operand.count > 0 ? message.operand : message.target;
    return move("rre", fmt::format("{}, {}", near(operand), far(message.from, message.source)), near(message.target),
                R"(, "channel_type": "memory", "reduce_op": "sum")");
  }

  std::pair<char, std::uint32_t> place(const Region& region) const {
    if (region.buffer == Buffer::scratch) return {'s', region.first};
    const bool output =
        region.buffer == Buffer::output || (region.buffer == Buffer::data && stored_.op == CollectiveOp::all_gather);
    return {output ? 'o' : 'i', region.first};
  }
  std::string near(const Region& region) const {
    const auto [letter, index] = place(region);
    return fmt::format(R"({{"type": "{}", "index": {}, "size": {}}})", letter, index, region.count);
  }

  /// One for each two thread blocks of a GPU of which one waits for the other: their waits are in one order.
  int semaphore(const PlanWait& wait) { return semaphores_.of({wait.releasing, wait.acquiring}); }

  const StoredSchedule &original_, &stored_;
  int chunks_;
  LaidOut laid_out_;
  std::vector<std::vector<Actor>> peers_;      // [rank][channel]
  std::map<std::pair<Pair, bool>, int> ends_;  // of the sender or the receiver: its number of the channel
  Numbers<RemoteBuffer> buffers_;              // of the GPU being written
  Numbers<std::pair<int, int>> semaphores_;
};

}  // namespace

}  // namespace mscclpp

std::string export_mscclpp(const StoredSchedule& stored) {
  mscclpp::check_holds(stored);
  (void)mscclpp::word_for(stored);
  const int chunks = common_chunks(stored, mscclpp::refusal_of_plan(stored));
  const StoredSchedule plain = in_plain_buffers(stored);
  std::string text = mscclpp::PlanWriter(stored, plain, chunks).text();
  const auto again = std::make_shared<StoredSchedule>();
  try {
    *again = import_mscclpp(text, "plan");
    check(schedule_of(again, even_size(*again)));
  } catch (const InputError& error) {
    mscclpp::refuse_plan(
        stored, fmt::format("operations of a step would run one after another, and then: {}", error.message()),
        "a plan of memory channels has no buffers for messages that are sent ahead of their receivers");
  }
  if (const std::string adds = unordered_adds(*again); !adds.empty())
    mscclpp::refuse_plan(stored, "additions to the same chunk are unordered, and they are not atomic: " + adds);
  return text;
}

}  // namespace ringsim
