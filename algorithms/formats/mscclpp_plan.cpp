#include "algorithms/formats/mscclpp_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "algorithms/formats/lane_limit.hpp"
#include "algorithms/promise.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json_place.hpp"

namespace ringsim::mscclpp {

namespace {

/// More than any machine has in one domain; keeps a slip of the finger from eating all memory.
constexpr int most_gpus = 4096;
/// Thread blocks that share a chunk: so many times finer all chunks may become.
constexpr int most_parts = 4096;

struct Word {
  Verb verb;
  bool signals = false, flushes = false;
};

const std::map<std::string, Word>& words() {
  static const std::map<std::string, Word> all{{"nop", {Verb::nop}},
                                               {"flush", {Verb::flush}},
                                               {"barrier", {Verb::barrier}},
                                               {"signal", {Verb::signal}},
                                               {"rlxsignal", {Verb::signal}},
                                               {"wait", {Verb::wait}},
                                               {"rlxwait", {Verb::wait}},
                                               {"sem_acquire", {Verb::acquire}},
                                               {"sem_release", {Verb::release}},
                                               {"copy", {Verb::copy}},
                                               {"put", {Verb::put}},
                                               {"pws", {Verb::put, true}},
                                               {"pwsf", {Verb::put, true, true}},
                                               {"get", {Verb::get}},
                                               {"re", {Verb::reduce}},
                                               {"res", {Verb::reduce}},
                                               {"rre", {Verb::reduce}},
                                               {"rres", {Verb::reduce}},
                                               {"cpkt", {Verb::copy_packets}},
                                               {"upkt", {Verb::unpack_packets}},
                                               {"ppkt", {Verb::put_packets}},
                                               {"rppkt", {Verb::read_put_packets}},
                                               {"repkt", {Verb::reduce_packets}},
                                               {"respkt", {Verb::reduce_packets}},
                                               {"recpkt", {Verb::reduce_packets}},
                                               {"recspkt", {Verb::reduce_packets}}};
  return all;
}

bool moves_data(Verb verb) { return verb >= Verb::copy; }

int small(const Place& place, std::int64_t least, std::int64_t most) {
  return static_cast<int>(place.whole(least, most));
}

/// What a GPU declares, by the numbers that its thread blocks use.
struct Declared {
  std::vector<ChannelEnd> memory, port;
  struct Remote {
    Actor rank;
    char buffer;
  };
  std::vector<Remote> buffers;
};
/// What a thread block uses, by the numbers in its operations; [0] memory, [1] port.
struct Used {
  std::array<std::vector<ChannelEnd>, 2> channels;
  std::array<std::vector<Declared::Remote>, 2> buffers;
};

class PlanReader {
 public:
  explicit PlanReader(const Place& root) : root_(root) {}

  Plan read() {
    const std::vector<Place> gpus = root_.at("gpus").items();
    if (gpus.empty() || gpus.size() > static_cast<std::size_t>(most_gpus))
      root_.at("gpus").fail(fmt::format("expected from 1 to {} gpus, found {}", most_gpus, gpus.size()));
    head().ranks = head().actors = static_cast<int>(gpus.size());
    find_parts(gpus);
    read_head(gpus.front());
    plan_.semaphores.resize(gpus.size());
    plan_.blocks.resize(gpus.size());
    for (const Place& gpu : gpus) read_scratch(gpu.at("scratch_chunks"));
    for (std::size_t id = 0; id < gpus.size(); ++id) read_gpu(gpus[id], static_cast<Actor>(id));
    if (scratch_ > 0)
      head().grids[static_cast<std::size_t>(Buffer::scratch)] = {.chunks = scratch_, .of = chunks_, .sizes = {}};
    return std::move(plan_);
  }

 private:
  StoredSchedule& head() { return plan_.head; }

  void note_unknown(const Place& place, const std::vector<std::string>& known) {
    for (const auto& [key, value] : place.entries())
      if (std::find(known.begin(), known.end(), key) == known.end() && unknown_.insert(key).second)
        head().warnings.push_back(fmt::format("{}: {}: the key is unknown and ignored", value.file, value.pointer));
  }

  /// In how many parts thread blocks of groups cut a chunk, so that every group's parts are whole.
  void find_parts(const std::vector<Place>& gpus) {
    for (const Place& gpu : gpus)
      for (const Place& block : gpu.at("threadblocks").items())
        for (const Place& op : block.at("ops").items()) {
          if (!op.has("tbg_info")) continue;
          const Place size = op.at("tbg_info").at("tbg_size");
          parts_ = std::lcm(parts_, small(size, 1, most_parts));
          if (parts_ > most_parts)
            size.fail(fmt::format("expected groups of thread blocks that together cut a chunk into at most {} parts",
                                  most_parts));
        }
  }

  void read_head(const Place& gpu) {
    note_unknown(root_,
                 {"name", "collective", "protocol", "inplace", "reuse_resources", "gpus", "num_threads_per_block",
                  "use_double_scratch_buffer", "buffer_alignment", "min_message_size", "max_message_size"});
    head().name = root_.at("name").text();
    head().protocol = root_.at("protocol").text();
    if (head().protocol != "Simple" && head().protocol != "LL")
      root_.at("protocol").fail("expected Simple or LL, found " + in_quotes(head().protocol));
    head().placement = root_.at("inplace").truth() ? Placement::in_place : Placement::separate;
    head().min_bytes = size_or_none("min_message_size");
    head().max_bytes = size_or_none("max_message_size");
    if (head().max_bytes != 0 && head().min_bytes > head().max_bytes)
      root_.at("min_message_size")
          .fail(fmt::format("expected at most max_message_size, {}, found {}", head().max_bytes, head().min_bytes));
    head().op = collective();
    input_ = small(gpu.at("input_chunks"), 0, file_limits::chunks);
    output_ = small(gpu.at("output_chunks"), 0, file_limits::chunks);
    const auto ranks = static_cast<std::int64_t>(head().ranks);
    const bool whole_output = head().op == CollectiveOp::all_gather;
    const bool whole_input = head().op == CollectiveOp::reduce_scatter;
    const std::int64_t chunks = whole_output  ? std::max<std::int64_t>(output_, input_ * ranks)
                                : whole_input ? std::max<std::int64_t>(input_, output_ * ranks)
                                              : std::max(input_, output_);
    const auto fits = [&](int found, bool is_block) { return found == 0 || found * (is_block ? ranks : 1) == chunks; };
    if (chunks == 0 || !fits(input_, whole_output) || !fits(output_, whole_input) ||
        (head().op == CollectiveOp::all_to_all && chunks % ranks != 0))
      gpu.fail(fmt::format("expected the input_chunks and output_chunks of {} on {} gpus, found {} and {}",
                           to_string(head().op), ranks, input_, output_));
    if (chunks * parts_ > file_limits::chunks)
      gpu.fail(
          fmt::format("expected at most {} chunks, found {} in {} parts each", file_limits::chunks, chunks, parts_));
    chunks_ = static_cast<int>(chunks) * parts_;
    PromiseSpec spec{.op = head().op, .ranks = head().ranks, .placement = head().placement};
    for (const Buffer buffer : {Buffer::data, Buffer::input, Buffer::output})
      if (const auto promised = promised_chunks(spec, buffer, chunks_))
        head().grids[static_cast<std::size_t>(buffer)] = {.chunks = *promised, .of = chunks_, .sizes = {}};
    for (std::size_t b = 0; b < n_buffers; ++b) spec.chunks[b] = head().grids[b].chunks;
    if (!promise(spec, {}))
      root_.fail(fmt::format("expected another collective, found {} {}, which ringsim does not have",
                             to_string(head().op), to_string(head().placement)));
  }

  /// 2^64 - 1 says that there is no limit.
  std::int64_t size_or_none(const char* key) const {
    if (!root_.has(key)) return 0;
    const Place place = root_.at(key);
    if (place.json.is_number_unsigned() && place.json.get<std::uint64_t>() > INT64_MAX) return 0;
    return place.whole(0, INT64_MAX);
  }

  CollectiveOp collective() const {
    static const std::map<std::string, CollectiveOp> known{{"allreduce", CollectiveOp::all_reduce},
                                                           {"allgather", CollectiveOp::all_gather},
                                                           {"reducescatter", CollectiveOp::reduce_scatter},
                                                           {"alltoall", CollectiveOp::all_to_all},
                                                           {"sendrecv", CollectiveOp::send_recv}};
    const Place place = root_.at("collective");
    const std::string name = place.text();
    const auto found = known.find(name);
    if (found != known.end()) return found->second;
    place.fail("expected allreduce, allgather, reducescatter, alltoall or sendrecv, found " + in_quotes(name),
               "the file does not define the result of other collectives, so they cannot be proved");
  }

  void read_scratch(const Place& place) {
    scratches_.push_back(small(place, 0, file_limits::chunks / parts_));
    scratch_ = std::max(scratch_, scratches_.back() * parts_);
  }

  void read_gpu(const Place& gpu, Actor id) {
    note_unknown(gpu, {"id", "input_chunks", "output_chunks", "scratch_chunks", "threadblocks", "channels",
                       "remote_buffers", "semaphores"});
    small(gpu.at("id"), id, id);
    small(gpu.at("input_chunks"), input_, input_);
    small(gpu.at("output_chunks"), output_, output_);
    Declared declared;
    for (const Place& channel : gpu.at("channels").items()) read_channel(channel, id, declared);
    for (const Place& buffer : gpu.at("remote_buffers").items())
      declared.buffers.push_back({peer(buffer.at("rank"), id), buffer_letter(buffer.at("type"))});
    if (gpu.has("semaphores"))
      for (const Place& semaphore : gpu.at("semaphores").items())
        plan_.semaphores[static_cast<std::size_t>(id)].push_back(
            small(semaphore.at("init_value"), 0, file_limits::chunks));
    const std::vector<Place> blocks = gpu.at("threadblocks").items();
    if (blocks.size() > static_cast<std::size_t>(file_limits::lanes))
      gpu.at("threadblocks").fail(fmt::format("expected at most {}, found {}", file_limits::lanes, blocks.size()));
    if (const std::string mistake = too_many_lanes(plan_.blocks.size(), blocks.size(), "thread blocks");
        !mistake.empty())
      gpu.at("threadblocks").fail(mistake);
    for (std::size_t b = 0; b < blocks.size(); ++b) read_block(blocks[b], b, id, declared);
  }

  Actor peer(const Place& place, Actor id) const {
    const int found = small(place, 0, head_ranks() - 1);
    if (found == id) place.fail(fmt::format("expected another gpu as the peer of gpu {}, found itself", id));
    return found;
  }
  int head_ranks() const { return plan_.head.ranks; }

  static char buffer_letter(const Place& place) { return place.word<char>({{"i", 'i'}, {"o", 'o'}, {"s", 's'}}); }

  /// 0 for memory, 1 for port.
  static std::size_t channel_type(const Place& place) {
    const std::string found = place.text();
    if (found == "memory") return 0;
    if (found == "port") return 1;
    if (found == "switch")
      place.fail("expected memory or port, found switch",
                 "additions and multicasts in switches are not supported in files; to time them, use ringsim's "
                 "algorithm in_switch");
    place.fail("expected memory, port or switch, found " + in_quotes(found));
  }

  void read_channel(const Place& channel, Actor id, Declared& declared) const {
    auto& ends = channel_type(channel.at("channel_type")) == 0 ? declared.memory : declared.port;
    const bool port = &ends == &declared.port;
    std::map<Actor, int> numbers;
    for (const ChannelEnd& end : ends) ++numbers[end.peer];
    for (const Place& to : channel.at("connected_to").items()) {
      const Actor other = peer(to, id);
      ends.push_back({.peer = other, .number = numbers[other]++, .port = port});
    }
  }

  template <class T>
  static const T& entry(const Place& number, const std::vector<T>& list, const char* what) {
    if (list.empty()) number.fail(fmt::format("expected a number of a {}, but none is declared", what));
    return list[static_cast<std::size_t>(number.whole(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

  void read_block(const Place& block, std::size_t number, Actor id, const Declared& declared) {
    note_unknown(block, {"id", "ops", "channels", "remote_buffer_refs"});
    small(block.at("id"), static_cast<std::int64_t>(number), static_cast<std::int64_t>(number));
    Used used;
    for (const Place& channel : block.at("channels").items()) {
      const std::size_t type = channel_type(channel.at("channel_type"));
      for (const Place& each : channel.at("channel_ids").items())
        used.channels[type].push_back(entry(each, type == 0 ? declared.memory : declared.port, "channel of the gpu"));
    }
    if (block.has("remote_buffer_refs"))
      for (const Place& reference : block.at("remote_buffer_refs").items())
        for (const Place& each : reference.at("remote_buffer_ids").items())
          used.buffers[channel_type(reference.at("access_channel_type"))].push_back(
              entry(each, declared.buffers, "remote buffer of the gpu"));
    auto& blocks = plan_.blocks[static_cast<std::size_t>(id)];
    blocks.emplace_back();
    const std::vector<Place> ops = block.at("ops").items();
    if (ops.size() > most_operations && !said_many_) {
      said_many_ = true;
      head().warnings.push_back(fmt::format("{}: {}: {} operations, but MSCCL++'s executor supports at most {}",
                                            block.file, block.pointer, ops.size(), most_operations));
    }
    for (const Place& op : ops) blocks.back().push_back(read_operation(op, id, used));
  }

  Operation read_operation(const Place& place, Actor id, const Used& used) {
    note_unknown(place, {"name", "src_buff", "dst_buff", "channel_ids", "channel_type", "reduce_op", "tbg_info",
                         "barrier_id", "num_threadblocks", "semaphore_ids", "iter_context", "ops"});
    const std::string name = place.at("name").text();
    refuse_unread(place.at("name"), name);
    const Word& word = place.at("name").look_up(name, words(), "an operation");
    Operation op{.verb = word.verb, .name = name, .pointer = place.pointer};
    op.signals = word.signals;
    op.flushes = word.flushes;
    const std::size_t type = place.has("channel_type") && place.at("channel_type").text() != "none"
                                 ? channel_type(place.at("channel_type"))
                                 : 0;
    op.port = type == 1;
    if (place.has("reduce_op") && place.at("reduce_op").text() != "sum")
      place.at("reduce_op").fail("expected sum, found " + in_quotes(place.at("reduce_op").text()));
    if (op.verb == Verb::barrier) {
      op.ids = {small(place.at("barrier_id"), 0, most_barriers - 1)};
      op.blocks = small(place.at("num_threadblocks"), 1, file_limits::lanes);
    }
    if (op.verb == Verb::acquire || op.verb == Verb::release)
      for (const Place& each : place.at("semaphore_ids").items()) {
        entry(each, plan_.semaphores[static_cast<std::size_t>(id)], "semaphore of the gpu");
        op.ids.push_back(small(each, 0, file_limits::chunks));
      }
    const bool needs_channel = op.verb == Verb::signal || op.verb == Verb::wait || (op.verb == Verb::put && op.port);
    if (needs_channel)
      for (const Place& each : place.at("channel_ids").items())
        op.channels.push_back(entry(each, used.channels[type], "channel of the thread block"));
    if (!moves_data(op.verb)) return op;
    const auto group = group_of(place);
    for (const Place& each : place.at("src_buff").items()) op.from.push_back(spot(each, id, used.buffers[type], group));
    for (const Place& each : place.at("dst_buff").items()) op.to.push_back(spot(each, id, used.buffers[type], group));
    check_ends(place, id, op);
    return op;
  }

  static void refuse_unread(const Place& place, const std::string& name) {
    if (name == "pipeline")
      place.fail("expected another operation, found a pipeline",
                 "its number of rounds depends on the message size, but a schedule has the same steps for all sizes");
    if (name.starts_with("gstore") || name.starts_with("glre"))
      place.fail(fmt::format("expected another operation, found {}, which adds or multicasts in the switch", name),
                 "to time operations in switches, use ringsim's algorithm in_switch");
  }

  /// Which part of its chunks the operation moves, of how many.
  std::pair<int, int> group_of(const Place& op) const {
    if (!op.has("tbg_info")) return {0, 1};
    const int size = small(op.at("tbg_info").at("tbg_size"), 1, most_parts);
    return {small(op.at("tbg_info").at("tb_id"), 0, size - 1), size};
  }

  Spot spot(const Place& place, Actor id, const std::vector<Declared::Remote>& buffers,
            std::pair<int, int> group) const {
    if (place.has("switch_channel_id"))
      place.fail("expected the memory of one gpu, found that of a switch group",
                 "to time operations in switches, use ringsim's algorithm in_switch");
    Actor rank = id;
    char buffer = 's';
    if (place.has("buffer_id")) {
      const Declared::Remote& remote = entry(place.at("buffer_id"), buffers, "remote buffer of the thread block");
      rank = remote.rank;
      buffer = remote.buffer;
    } else {
      buffer = buffer_letter(place.at("type"));
    }
    const int size = buffer == 's' ? scratches_[static_cast<std::size_t>(rank)] : whole_or_block(buffer == 'i');
    const int index = small(place.at("index"), 0, file_limits::chunks),
              count = small(place.at("size"), 1, file_limits::chunks);
    if (index + count > size)
      place.fail(
          fmt::format("expected chunks within buffer {} of {}, found {} starting at {}", buffer, size, count, index));
    const auto part = count * parts_ / group.second;
    Region region{.first = static_cast<std::uint32_t>(index * parts_ + part * group.first),
                  .count = static_cast<std::uint32_t>(part)};
    place_in(buffer, rank, region);
    return {rank, region};
  }

  /// Chunks of `i` or `o`, as the file counts them.
  int whole_or_block(bool input) const {
    const int chunks = chunks_ / parts_;
    const bool block = head_op() == (input ? CollectiveOp::all_gather : CollectiveOp::reduce_scatter);
    return block ? chunks / head_ranks() : chunks;
  }
  CollectiveOp head_op() const { return plan_.head.op; }

  void place_in(char buffer, Actor rank, Region& region) const {
    if (buffer == 's') {
      region.buffer = Buffer::scratch;
      return;
    }
    if (plan_.head.placement == Placement::separate) {
      region.buffer = buffer == 'i' ? Buffer::input : Buffer::output;
      return;
    }
    region.buffer = Buffer::data;
    const int own = whole_or_block(buffer == 'i') * parts_;
    if (own != chunks_) region.first += static_cast<std::uint32_t>(rank) * static_cast<std::uint32_t>(own);
  }

  /// How many sources and targets the operation needs, and which of them are the GPU's own.
  void check_ends(const Place& place, Actor id, const Operation& op) const {
    const auto expect = [&](bool holds, const char* what) {
      if (!holds) place.fail(fmt::format("expected {} to have {}", op.name, what));
    };
    const auto own = [&](const Spot& spot) { return spot.rank == id; };
    const auto none_own = [&](const std::vector<Spot>& spots, std::size_t first) {
      return std::none_of(spots.begin() + static_cast<std::ptrdiff_t>(std::min(first, spots.size())), spots.end(), own);
    };
    const auto all_own = [&](const std::vector<Spot>& spots) { return std::all_of(spots.begin(), spots.end(), own); };
    expect(!op.from.empty() && !op.to.empty(), "a source and a target");
    for (const auto* spots : {&op.from, &op.to})
      for (const Spot& spot : *spots)
        expect(spot.region.count == op.from[0].region.count, "sources and targets of one size");
    switch (op.verb) {
      case Verb::copy:
      case Verb::copy_packets:
      case Verb::unpack_packets:
        return expect(op.from.size() == 1 && op.to.size() == 1 && all_own(op.from) && all_own(op.to),
                      "one source and one target of its own gpu");
      case Verb::put:
      case Verb::put_packets:
        expect(op.from.size() == op.to.size() && all_own(op.from) && none_own(op.to, 0),
               "as many sources of its own gpu as targets of others");
        return expect(!op.port || op.verb != Verb::put || op.channels.size() == op.to.size(),
                      "a channel for each target");
      case Verb::read_put_packets:
        return expect(op.from.size() == 1 && all_own(op.from) && none_own(op.to, 0),
                      "one source of its own gpu and targets of others");
      case Verb::get:
        expect(!op.port, "channels of type memory: a port channel cannot read");
        return expect(op.from.size() == op.to.size() && none_own(op.from, 0) && all_own(op.to),
                      "as many sources of other gpus as targets of its own");
      case Verb::reduce:
        expect(!op.port, "channels of type memory: a port channel cannot read, or write what was just added");
        return expect(own(op.from[0]) && own(op.to[0]) && none_own(op.to, 1),
                      "a source and a target of its own gpu first, and no second target there");
      case Verb::reduce_packets: {
        expect(op.from.size() > 1 && all_own(op.from) && own(op.to[0]), "sources and a first target of its own gpu");
        const bool copies = op.name.starts_with("rec");
        expect(!copies || (op.to.size() > 1 && own(op.to[1])), "a second target of its own gpu");
        return expect(none_own(op.to, copies ? 2 : 1), "other targets at other gpus");
      }
      default:
        fail_invariant("only operations that move data have ends");
    }
  }

  const Place& root_;
  Plan plan_;
  int parts_ = 1, chunks_ = 0, input_ = 0, output_ = 0, scratch_ = 0;
  std::vector<int> scratches_;  // [rank] declared chunks
  std::set<std::string> unknown_;
  bool said_many_ = false;
};

}  // namespace

Plan read_plan(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const Place root{json, file, ""};
  if (!json.is_object()) root.fail("expected an object");
  return PlanReader(root).read();
}

}  // namespace ringsim::mscclpp
