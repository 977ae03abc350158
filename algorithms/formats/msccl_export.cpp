#include "algorithms/formats/msccl_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "algorithms/formats/thread_blocks.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"

namespace ringsim {

namespace {

constexpr std::uint32_t most_chunks_a_step = 71;
constexpr std::size_t most_steps = 256;
constexpr int most_slots = 8;

[[noreturn]] void refuse(const StoredSchedule& stored, const std::string& what, const std::string& hint = "") {
  throw InputError("", fmt::format("MSCCL XML cannot represent {}: {}", stored.name, what), hint);
}

std::string collective_name(const StoredSchedule& stored) {
  switch (stored.op) {
    case CollectiveOp::all_reduce:
      return "allreduce";
    case CollectiveOp::all_gather:
      return "allgather";
    case CollectiveOp::reduce_scatter:
      return "reducescatter";
    case CollectiveOp::all_to_all:
      return "alltoall";
    default:
      refuse(stored, fmt::format("the format has no name for {} or does not state its root", to_string(stored.op)),
             "--to json supports every collective");
  }
}

Refusal refusal_of(const StoredSchedule& stored) {
  return [&stored](const std::string& what, const std::string& hint) { refuse(stored, what, hint); };
}

void check_fits(const StoredSchedule& stored) {
  require_ranks_that_only_move(stored, refusal_of(stored));
  for (std::size_t i = 0; i < stored.steps.size(); ++i)
    for (const Step& step : stored.steps[i])
      for (const Op& op : step.ops) {
        const auto rank = static_cast<int>(i) / stored.lanes;
        if (op.region.count > most_chunks_a_step)
          refuse(stored, fmt::format("rank {} moves {} chunks in one operation, but the runtime supports at most {}",
                                     rank, op.region.count, most_chunks_a_step));
      }
}

/// Writes one gpu.
class Gpu {
 public:
  Gpu(const StoredSchedule& stored, Actor id) : stored_(stored), id_(id) {
    find_waited_for();
    find_rooms();
    for (Lane lane = 0; lane < stored_.lanes; ++lane) lay_out(lane);
  }

  std::string text() const {
    int n_blocks = stored_.lanes;
    while (n_blocks > 0 && stored_.lane(id_, n_blocks - 1).empty()) --n_blocks;
    const auto [input, output] = declared();
    std::string out = fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", id_, input,
                                  output, scratch());
    for (Lane lane = 0; lane < n_blocks; ++lane) out += block(lane);
    return out + "  </gpu>\n";
  }

 private:
  struct Xml {  // one <step>
    std::string type;
    Region source, target;
    int block = -1, step = -1;  // waited for
  };

  void find_waited_for() {
    for (Lane lane = 0; lane < stored_.lanes; ++lane)
      for (const Step& step : stored_.lane(id_, lane))
        for (const Wait& wait : step.waits) waited_for_.insert({wait.lane, wait.steps});
  }

  /// Is step i one that receives what step i + 1 does nothing but send on?
  bool goes_on(const std::vector<Step>& steps, Lane lane, std::size_t i) const {
    if (i + 1 >= steps.size() || steps[i].ops.empty() || steps[i + 1].ops.empty()) return false;
    const Op &first = steps[i].ops[0], &second = steps[i + 1].ops[0];
    return (first.what == Do::receive || first.what == Do::receive_add) && second.what == Do::send &&
           second.region == first.region && steps[i + 1].waits.empty() &&
           waited_for_.count({lane, static_cast<int>(i) + 1}) == 0;
  }

  /// Scratch that is nothing but the way through of a lane's additions needs no number: rrs.
  void find_rooms() {
    std::set<std::uint32_t> others;
    std::vector<std::pair<std::uint32_t, Lane>> rooms;
    for (Lane lane = 0; lane < stored_.lanes; ++lane) {
      const std::vector<Step>& steps = stored_.lane(id_, lane);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        for (const Op& op : steps[i].ops) {
          const bool in = is_way_through(op) && goes_on(steps, lane, i);
          const bool out = i > 0 && op.what == Do::send &&
                           is_way_through(steps[i - 1].ops.empty() ? Op{} : steps[i - 1].ops[0]) &&
                           goes_on(steps, lane, i - 1);
          for (const Region* region : {&op.region, &op.operand})
            for (std::uint32_t c = 0; region->buffer == Buffer::scratch && c < region->count; ++c) {
              if ((in || out) && region == &op.region)
                rooms.emplace_back(region->first + c, lane);
              else
                others.insert(region->first + c);
            }
        }
      }
    }
    std::map<std::uint32_t, Lane> owner;
    for (const auto& [chunk, lane] : rooms)
      if (owner.try_emplace(chunk, lane).first->second != lane) others.insert(chunk);
    for (const auto& [chunk, lane] : owner)
      if (others.count(chunk) == 0) rooms_.insert(chunk);
  }
  static bool is_way_through(const Op& op) {
    return op.what == Do::receive_add && op.operand.count > 0 && op.region.buffer == Buffer::scratch;
  }
  bool is_room(const Region& region) const {
    for (std::uint32_t c = 0; c < region.count; ++c)
      if (region.buffer != Buffer::scratch || rooms_.count(region.first + c) == 0) return false;
    return true;
  }

  void lay_out(Lane lane) {
    const std::vector<Step>& steps = stored_.lane(id_, lane);
    std::vector<Xml> xml;
    std::vector<int> at;  // [step] its number in the file
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Xml main = step_of(steps, lane, i);
      for (std::size_t w = 0; w < steps[i].waits.size(); ++w) {
        const Wait& wait = steps[i].waits[w];
        Xml& holder =
            w + 1 == steps[i].waits.size() ? main : xml.emplace_back(Xml{.type = "nop", .source = {}, .target = {}});
        holder.block = wait.lane;
        holder.step = wait.steps - 1;  // ours; the file's number is known when all lanes are laid out
      }
      const bool fused = goes_on(steps, lane, i);
      at.push_back(static_cast<int>(xml.size()));
      xml.push_back(std::move(main));
      if (fused) {
        at.push_back(at.back());
        ++i;
      }
    }
    if (xml.size() > most_steps)
      refuse(stored_, fmt::format("thread block {} of gpu {} has {} steps, but the runtime supports at most {}", lane,
                                  id_, xml.size(), most_steps));
    blocks_.push_back(std::move(xml));
    at_.push_back(std::move(at));
  }

  Xml step_of(const std::vector<Step>& steps, Lane lane, std::size_t i) const {
    if (steps[i].ops.empty()) return {.type = "nop", .source = {}, .target = {}};
    const Op& op = steps[i].ops[0];
    const bool fused = goes_on(steps, lane, i);
    switch (op.what) {
      case Do::send:
        return {"s", op.region, op.region};
      case Do::receive:
        return {fused ? "rcs" : "r", op.region, op.region};
      case Do::copy:
        return {"cpy", op.operand, op.region};
      case Do::add:
        return {"re", op.operand, op.region};
      case Do::receive_add: {
        const Region& source = op.operand.count > 0 ? op.operand : op.region;
        if (fused && is_room(op.region)) return {"rrs", source, source};
        return {fused ? "rrcs" : "rrc", source, op.region};
      }
      case Do::compute:
        break;
    }
    fail_invariant("compute has been refused");
  }

  std::pair<std::string, std::uint32_t> place(const Region& region) const {
    switch (region.buffer) {
      case Buffer::data:
        return {stored_.op == CollectiveOp::all_gather ? "o" : "i", region.first};
      case Buffer::input:
        return {"i", region.first};
      case Buffer::output:
        return {"o", region.first};
      case Buffer::scratch:
        return {"s", region.first};
    }
    fail_invariant("a buffer has one of four names");
  }

  std::pair<int, int> declared() const {
    const int data = stored_.grids[static_cast<std::size_t>(Buffer::data)].chunks;
    if (stored_.placement == Placement::in_place)
      return stored_.op == CollectiveOp::all_gather ? std::pair{0, data} : std::pair{data, 0};
    return {stored_.grids[static_cast<std::size_t>(Buffer::input)].chunks,
            stored_.grids[static_cast<std::size_t>(Buffer::output)].chunks};
  }

  std::uint32_t scratch() const {
    std::uint32_t most = 0;
    for (const auto& block : blocks_)
      for (const Xml& step : block)
        for (const Region* region : {&step.source, &step.target})
          if (region->buffer == Buffer::scratch) most = std::max(most, region->first + region->count);
    return most;
  }

  std::string block(Lane lane) const {
    Actor send = -1, receive = -1;
    int channel = 0;
    for (const Step& step : stored_.lane(id_, lane))
      for (const Op& op : step.ops) {
        if (op.peer < 0) continue;
        (op.what == Do::send ? send : receive) = op.peer;
        channel = op.channel;
      }
    std::string out =
        fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", lane, send, receive, channel);
    const auto& steps = blocks_[static_cast<std::size_t>(lane)];
    for (std::size_t s = 0; s < steps.size(); ++s) out += step(lane, static_cast<int>(s), steps[s]);
    return out + "    </tb>\n";
  }

  std::string step(Lane lane, int number, const Xml& step) const {
    const bool nop = step.type == "nop";
    const auto [source, source_first] = nop ? std::pair<std::string, std::uint32_t>{"i", 0} : place(step.source);
    const auto [target, target_first] = nop ? std::pair<std::string, std::uint32_t>{"i", 0} : place(step.target);
    const int waits_for =
        step.block < 0 ? -1 : at_[static_cast<std::size_t>(step.block)][static_cast<std::size_t>(step.step)];
    return fmt::format(
        "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" "
        "depid=\"{}\" "
        "deps=\"{}\" hasdep=\"{}\"/>\n",
        number, step.type, source, source_first, target, target_first, nop ? 0 : step.source.count, step.block,
        waits_for, is_waited_for(lane, number) ? 1 : 0);
  }

  /// Does a step of another thread block wait for step `number` of the file?
  bool is_waited_for(Lane lane, int number) const {
    const std::vector<int>& at = at_[static_cast<std::size_t>(lane)];
    for (auto found = waited_for_.lower_bound({lane, 1}); found != waited_for_.end() && found->first == lane; ++found)
      if (at[static_cast<std::size_t>(found->second - 1)] == number) return true;
    return false;
  }

  const StoredSchedule& stored_;
  Actor id_;
  std::set<std::pair<Lane, int>> waited_for_;  // lane, steps completed
  std::set<std::uint32_t> rooms_;              // chunks of scratch
  std::vector<std::vector<Xml>> blocks_;       // [thread block][number in the file]
  std::vector<std::vector<int>> at_;           // [thread block][our step] its number in the file
};

std::string attribute(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string export_msccl(const StoredSchedule& stored) {
  check_fits(stored);
  const std::string collective = collective_name(stored);
  const int chunks = common_chunks(stored, refusal_of(stored));
  const auto blocks = std::make_shared<const StoredSchedule>(as_thread_blocks(stored));
  const Proof proof = check(schedule_of(blocks, Bytes{chunks})).proof();
  if (proof.slots_needed > most_slots)
    refuse(stored,
           "with one operation after another, it needs more messages in flight than the 8 slots of a connection");
  if (const std::string adds = unordered_adds(*blocks); !adds.empty())
    refuse(stored, "additions to the same chunk are unordered, and they are not atomic: " + adds);
  int channels = 1;
  for (const auto& lane : blocks->steps)
    for (const Step& step : lane)
      for (const Op& op : step.ops) channels = std::max(channels, op.channel + 1);
  const bool in_place = blocks->placement == Placement::in_place;
  std::string out = fmt::format(
      "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" inplace=\"{}\" "
      "outofplace=\"{}\" minBytes=\"{}\" maxBytes=\"{}\">\n",
      attribute(stored.name), stored.protocol.empty() ? "Simple" : stored.protocol, channels, chunks, stored.ranks,
      collective, in_place ? 1 : 0, in_place ? 0 : 1, stored.min_bytes, stored.max_bytes);
  for (Actor id = 0; id < blocks->ranks; ++id) out += Gpu(*blocks, id).text();
  return out + "</algo>\n";
}

}  // namespace ringsim
