#include "algorithms/formats/msccl_import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "algorithms/formats/lane_limit.hpp"
#include "sim/base/error.hpp"
#include "sim/text/xml_tree.hpp"

namespace ringsim {

namespace {

/// More than any runtime takes; keeps a slip of the finger from eating all memory.
constexpr int most_gpus = 4096;

struct StepXml {
  const XmlElement* element = nullptr;
  std::string type;
  Region source, target;
  std::optional<std::pair<int, int>> dependency;  // thread block, step
};
struct BlockXml {
  const XmlElement* element = nullptr;
  int send = -1, receive = -1, channel = 0;
  std::vector<StepXml> steps;
};
struct GpuXml {
  const XmlElement* element = nullptr;
  int scratch = 0;  // declared
  std::vector<BlockXml> blocks;
};

bool sends(const std::string& type) { return type == "s" || type == "rcs" || type == "rrs" || type == "rrcs"; }
bool receives(const std::string& type) { return type.front() == 'r' && type != "re"; }
bool reads_source(const std::string& type) { return type != "r" && type != "rcs" && type != "nop"; }
bool writes_target(const std::string& type) { return type != "s" && type != "rrs" && type != "nop"; }

class Reader {
 public:
  Reader(const XmlElement& algo, const std::string& file) : algo_(algo), file_(file) {}

  StoredSchedule read() {
    read_head();
    std::vector<GpuXml> gpus(static_cast<std::size_t>(out_.ranks));
    for (const XmlElement& element : algo_.children)
      if (is_read(element, "gpu", algo_)) read_gpu(element, gpus);
    for (std::size_t id = 0; id < gpus.size(); ++id)
      if (gpus[id].element == nullptr)
        fail(algo_, fmt::format("expected a <gpu> for each of {}, found none with id {}", out_.ranks, id));
    size_scratch(gpus);
    out_.lanes = 1;
    for (const GpuXml& gpu : gpus) out_.lanes = std::max(out_.lanes, static_cast<int>(gpu.blocks.size()));
    if (const std::string mistake = too_many_lanes(gpus.size(), static_cast<std::size_t>(out_.lanes), "thread blocks");
        !mistake.empty())
      fail(algo_, mistake);
    out_.steps.resize(static_cast<std::size_t>(out_.ranks) * static_cast<std::size_t>(out_.lanes));
    out_.places.resize(out_.steps.size());
    for (std::size_t id = 0; id < gpus.size(); ++id) lay_out(static_cast<Actor>(id), gpus[id]);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const XmlElement& at, const std::string& message, const std::string& hint = "") const {
    throw InputError(fmt::format("{}:{}", file_, at.line), message, hint);
  }

  const std::string& text(const XmlElement& element, const char* name) const {
    const std::string* found = element.find(name);
    if (found == nullptr)
      fail(element, fmt::format("expected the attribute {} of <{}>, found none", name, element.name));
    return *found;
  }

  std::int64_t number(const XmlElement& element, const char* name, std::int64_t least, std::int64_t most) const {
    const std::string& found = text(element, name);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc{} || end != found.data() + found.size() || value < least || value > most)
      fail(element, fmt::format("expected {} of <{}> to be a whole number from {} to {}, found \"{}\"", name,
                                element.name, least, most, found));
    return value;
  }
  int small(const XmlElement& element, const char* name, int least, int most) const {
    return static_cast<int>(number(element, name, least, most));
  }

  /// MSCCL's loader (Azure/msccl-executor-nccl src/misc/msccl/msccl_parser.cc) skips elements that it does not know,
  /// such as the <copy> of TE-CCL. The proof decides if the rest is the collective.
  bool is_read(const XmlElement& element, const char* name, const XmlElement& within) {
    if (element.name == name) return true;
    if (element.name == "op")
      fail(element, fmt::format("expected <{}>, found <op>", name),
           "the <op> of msccl-tools is a different format; make msccl-tools write <step>");
    if (unknown_.insert(within.name + "/" + element.name).second)
      out_.warnings.push_back(fmt::format("{}:{}: <{}> within <{}> is skipped, as it is by MSCCL's loader", file_,
                                          element.line, element.name, within.name));
    return false;
  }

  void look_for_unknown(const XmlElement& element, const std::vector<std::string>& known) {
    for (const auto& [name, value] : element.attributes)
      if (std::find(known.begin(), known.end(), name) == known.end() && unknown_.insert(element.name + name).second)
        out_.warnings.push_back(fmt::format("{}:{}: the attribute {} of <{}> is unknown and ignored", file_,
                                            element.line, name, element.name));
  }

  void read_head() {
    if (algo_.name != "algo") fail(algo_, fmt::format("expected <algo>, found <{}>", algo_.name));
    look_for_unknown(algo_, {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace",
                             "minBytes", "maxBytes", "redop"});
    out_.name = text(algo_, "name");
    out_.protocol = text(algo_, "proto");
    if (out_.protocol != "Simple" && out_.protocol != "LL" && out_.protocol != "LL128")
      fail(algo_, fmt::format("expected proto to be Simple, LL or LL128, found \"{}\"", out_.protocol));
    out_.ranks = out_.actors = small(algo_, "ngpus", 1, most_gpus);
    channels_ = small(algo_, "nchannels", 1, UINT16_MAX + 1);
    chunks_ = small(algo_, "nchunksperloop", 1, file_limits::chunks);
    out_.placement = small(algo_, "inplace", 0, 1) == 1 ? Placement::in_place : Placement::separate;
    if (algo_.find("outofplace") != nullptr && small(algo_, "outofplace", 0, 1) == 0 &&
        out_.placement == Placement::separate)
      fail(algo_, "expected inplace or outofplace to be 1, found both 0");
    const auto no_limit = std::numeric_limits<std::int64_t>::max();
    if (algo_.find("minBytes") != nullptr) out_.min_bytes = number(algo_, "minBytes", 0, no_limit);
    if (algo_.find("maxBytes") != nullptr) out_.max_bytes = number(algo_, "maxBytes", 0, no_limit);
    read_collective();
  }

  void read_collective() {
    const std::vector<std::pair<std::string, CollectiveOp>> known{{"allreduce", CollectiveOp::all_reduce},
                                                                  {"allgather", CollectiveOp::all_gather},
                                                                  {"reducescatter", CollectiveOp::reduce_scatter},
                                                                  {"reduce_scatter", CollectiveOp::reduce_scatter},
                                                                  {"alltoall", CollectiveOp::all_to_all}};
    const std::string& name = text(algo_, "coll");
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& each) { return each.first == name; });
    if (found == known.end())
      fail(algo_,
           fmt::format("expected coll to be allreduce, allgather, reducescatter or alltoall, found \"{}\"", name),
           "for other collectives, MSCCL does not state the root or the peers");
    out_.op = found->second;
    if (out_.op != CollectiveOp::all_reduce && chunks_ % out_.ranks != 0)
      fail(algo_, fmt::format("expected nchunksperloop of {} to be a multiple of its {} gpus, found {}", name,
                              out_.ranks, chunks_));
    const PromiseSpec spec{.op = out_.op, .ranks = out_.ranks, .placement = out_.placement};
    for (const Buffer buffer : {Buffer::data, Buffer::input, Buffer::output})
      if (const auto chunks = promised_chunks(spec, buffer, chunks_))
        out_.grids[static_cast<std::size_t>(buffer)] = {.chunks = *chunks, .of = chunks_, .sizes = {}};
  }

  void read_gpu(const XmlElement& element, std::vector<GpuXml>& gpus) {
    look_for_unknown(element, {"id", "i_chunks", "o_chunks", "s_chunks"});
    const int id = small(element, "id", 0, out_.ranks - 1);
    GpuXml& gpu = gpus[static_cast<std::size_t>(id)];
    if (gpu.element != nullptr) fail(element, fmt::format("expected one <gpu> with id {}, found a second one", id));
    gpu.element = &element;
    gpu.scratch = small(element, "s_chunks", 0, file_limits::chunks);
    for (const char* name : {"i_chunks", "o_chunks"}) {
      const int declared = small(element, name, 0, file_limits::chunks), expected = size_of(name[0]);
      if (declared != 0 && declared != expected)
        fail(element,
             fmt::format("expected {} to be {} (or 0, in place), which follows from coll and nchunksperloop, found {}",
                         name, expected, declared));
    }
    for (const XmlElement& block : element.children)
      if (is_read(block, "tb", element)) read_block(block, id, gpu);
    check_connections(gpu);
    for (const BlockXml& block : gpu.blocks)
      for (const StepXml& step : block.steps) check_dependency(gpu, step);
  }

  void read_block(const XmlElement& element, int id, GpuXml& gpu) {
    look_for_unknown(element, {"id", "send", "recv", "chan"});
    if (gpu.blocks.size() == file_limits::lanes)
      fail(element, fmt::format("expected at most {} thread blocks", file_limits::lanes));
    const int block_id = small(element, "id", 0, file_limits::lanes);
    if (block_id != static_cast<int>(gpu.blocks.size()))
      fail(element, fmt::format("expected the thread blocks of a gpu in the order of their ids, with {} here, found {}",
                                gpu.blocks.size(), block_id));
    BlockXml block{.element = &element};
    block.send = small(element, "send", -1, out_.ranks - 1);
    block.receive = small(element, "recv", -1, out_.ranks - 1);
    block.channel = small(element, "chan", -1, channels_ - 1);
    if (block.send == id || block.receive == id)
      fail(element, fmt::format("expected another gpu as the peer of gpu {}, found itself", id));
    if (block.channel == -1 && (block.send != -1 || block.receive != -1))
      fail(element, "expected a channel because there is a peer, found -1");
    for (const XmlElement& step : element.children)
      if (is_read(step, "step", element)) read_step(step, id, gpu.scratch, block);
    gpu.blocks.push_back(std::move(block));
  }

  void read_step(const XmlElement& element, int id, int scratch, BlockXml& block) {
    look_for_unknown(element, {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"});
    const int number_of_step = small(element, "s", 0, std::numeric_limits<int>::max());
    if (number_of_step != static_cast<int>(block.steps.size()))
      fail(element, fmt::format("expected the steps of a thread block in order, with {} here, found {}",
                                block.steps.size(), number_of_step));
    StepXml step{.element = &element, .type = text(element, "type")};
    static const std::set<std::string> types{"s", "r", "cpy", "re", "rrc", "rcs", "rrs", "rrcs", "nop"};
    if (types.count(step.type) == 0)
      fail(element, fmt::format("expected a type of {}, found \"{}\"", fmt::join(types, ", "), step.type));
    if (sends(step.type) && block.send == -1)
      fail(element,
           fmt::format("expected a thread block that sends (send of <tb>) for {}, found one that does not", step.type));
    if (receives(step.type) && block.receive == -1)
      fail(element, fmt::format("expected a thread block that receives (recv of <tb>) for {}, found one that does not",
                                step.type));
    if (reads_source(step.type)) step.source = region(element, "srcbuf", "srcoff", id, scratch);
    if (writes_target(step.type)) step.target = region(element, "dstbuf", "dstoff", id, scratch);
    const int block_waited_for = small(element, "depid", -1, file_limits::lanes);
    const int step_waited_for = small(element, "deps", -1, std::numeric_limits<int>::max());
    if ((block_waited_for == -1) != (step_waited_for == -1))
      fail(element, fmt::format("expected both depid and deps, or -1 for both, found {} and {}", block_waited_for,
                                step_waited_for));
    if (block_waited_for != -1) step.dependency = {block_waited_for, step_waited_for};
    block.steps.push_back(std::move(step));
  }

  /// How many chunks buffer i or o has.
  int size_of(char buffer) const {
    if (out_.op == CollectiveOp::all_gather && buffer == 'i') return chunks_ / out_.ranks;
    if (out_.op == CollectiveOp::reduce_scatter && buffer == 'o') return chunks_ / out_.ranks;
    return chunks_;
  }

  Region region(const XmlElement& element, const char* buffer_name, const char* offset_name, int id,
                int scratch) const {
    const std::string& buffer = text(element, buffer_name);
    if (buffer != "i" && buffer != "o" && buffer != "s")
      fail(element, fmt::format("expected {} to be i, o or s, found \"{}\"", buffer_name, buffer));
    const int size = buffer == "s" ? scratch : size_of(buffer[0]);
    const int offset = small(element, offset_name, 0, file_limits::chunks),
              count = small(element, "cnt", 1, file_limits::chunks);
    if (offset + count > size)
      fail(element,
           fmt::format("expected chunks within buffer {} of {}, found {} starting at {}", buffer, size, count, offset));
    const auto first = static_cast<std::uint32_t>(offset), n = static_cast<std::uint32_t>(count);
    if (buffer == "s") return {Buffer::scratch, first, n};
    if (out_.placement == Placement::separate) return {buffer == "i" ? Buffer::input : Buffer::output, first, n};
    const bool is_block = size < chunks_;  // of the one buffer in place, the gpu's own part
    return {Buffer::data, first + (is_block ? static_cast<std::uint32_t>(id * size) : 0), n};
  }

  void check_connections(const GpuXml& gpu) const {
    std::map<std::tuple<bool, int, int>, std::size_t> blocks;  // [sends][peer][channel]
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const BlockXml& block = gpu.blocks[b];
      for (const bool is_send : {true, false}) {
        const int peer = is_send ? block.send : block.receive;
        if (peer == -1) continue;
        const auto [other, is_new] = blocks.try_emplace({is_send, peer, block.channel}, b);
        if (is_new) continue;
        fail(*block.element,
             fmt::format("expected one thread block that {} gpu {} on channel {}, found {} and {}",
                         is_send ? "sends to" : "receives from", peer, block.channel, other->second, b));
      }
    }
  }

  void check_dependency(const GpuXml& gpu, const StepXml& step) const {
    if (!step.dependency) return;
    const auto [block, number_of_step] = *step.dependency;
    if (static_cast<std::size_t>(block) >= gpu.blocks.size())
      fail(*step.element, fmt::format("expected depid to be a thread block of the gpu, 0 to {}, found {}",
                                      gpu.blocks.size() - 1, block));
    const std::size_t n = gpu.blocks[static_cast<std::size_t>(block)].steps.size();
    if (static_cast<std::size_t>(number_of_step) >= n)
      fail(*step.element, fmt::format("expected deps to be a step of thread block {}, which has {}, found {}", block, n,
                                      number_of_step));
  }

  /// Scratch as far as it is used, then rooms for rrs, one for each thread block of a gpu that has such steps.
  void size_scratch(const std::vector<GpuXml>& gpus) {
    std::size_t most_blocks = 0;
    for (const GpuXml& gpu : gpus) {
      std::size_t blocks = 0;
      for (const BlockXml& block : gpu.blocks) {
        bool has_rrs = false;
        for (const StepXml& step : block.steps) {
          if (step.type == "rrs") has_rrs = true, room_ = std::max(room_, step.source.count);
          for (const Region* region : {&step.source, &step.target})
            if (region->buffer == Buffer::scratch) scratch_ = std::max(scratch_, region->first + region->count);
        }
        if (has_rrs) ++blocks;
      }
      most_blocks = std::max(most_blocks, blocks);
    }
    const std::size_t chunks = scratch_ + most_blocks * room_;
    if (chunks > file_limits::chunks)
      fail(algo_, fmt::format("expected at most {} chunks of scratch, including the space for rrs, found {}",
                              file_limits::chunks, chunks));
    if (chunks > 0)
      out_.grids[static_cast<std::size_t>(Buffer::scratch)] = {
          .chunks = static_cast<int>(chunks), .of = chunks_, .sizes = {}};
  }

  void lay_out(Actor id, const GpuXml& gpu) {
    std::set<std::pair<int, int>> waited_for;
    for (const BlockXml& block : gpu.blocks)
      for (const StepXml& step : block.steps)
        if (step.dependency) waited_for.insert(*step.dependency);
    std::vector<std::vector<int>> done(gpu.blocks.size());  // [block][step] steps of ours completed with it
    std::vector<std::vector<std::vector<std::pair<int, int>>>> waits(gpu.blocks.size());  // [block][our step]
    std::uint32_t next_room = scratch_;
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const BlockXml& block = gpu.blocks[b];
      std::vector<Step>& steps = out_.lane(id, static_cast<Lane>(b));
      std::vector<std::pair<int, int>> pending;
      bool has_rrs = false;
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const StepXml& step = block.steps[s];
        if (step.dependency) pending.push_back(*step.dependency);
        const bool goes_on =
            s + 1 < block.steps.size() && waited_for.count({static_cast<int>(b), static_cast<int>(s)}) == 0;
        if (step.type != "nop" || !goes_on) {
          waits[b].resize(steps.size() + 1);
          waits[b].back() = std::exchange(pending, {});
          add_steps(step, block, {Buffer::scratch, next_room, step.source.count}, steps);
          out_.places[out_.index(id, static_cast<Lane>(b))].resize(
              steps.size(), {.step = static_cast<int>(s), .line = static_cast<int>(step.element->line)});
        }
        has_rrs = has_rrs || step.type == "rrs";
        done[b].push_back(static_cast<int>(steps.size()));
      }
      if (has_rrs) next_room += room_;
    }
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      for (std::size_t i = 0; i < waits[b].size(); ++i) {
        std::map<Lane, int> latest;
        for (const auto& [other, step] : waits[b][i]) {
          int& steps = latest[other];
          steps = std::max(steps, done[static_cast<std::size_t>(other)][static_cast<std::size_t>(step)]);
        }
        for (const auto& [lane, steps] : latest) out_.lane(id, static_cast<Lane>(b))[i].wait(lane, steps);
      }
    }
  }

  static void add_steps(const StepXml& step, const BlockXml& block, const Region& room, std::vector<Step>& steps) {
    steps.emplace_back();
    const std::string& type = step.type;
    if (type == "s") steps.back().send(block.send, step.source, block.channel);
    if (type == "cpy") steps.back().copy(step.source, step.target);
    if (type == "re") steps.back().add(step.source, step.target);
    if (!receives(type)) return;
    const bool adds = type.starts_with("rr");
    const Region& target = type == "rrs" ? room : step.target;
    if (adds)
      steps.back().receive_add(block.receive, step.source, target, block.channel);
    else
      steps.back().receive(block.receive, target, block.channel);
    if (!sends(type)) return;
    steps.emplace_back();
    steps.back().send(block.send, target, block.channel);
  }

  const XmlElement& algo_;
  const std::string& file_;
  StoredSchedule out_;
  int channels_ = 1, chunks_ = 1;
  std::uint32_t scratch_ = 0, room_ = 0;  // chunks: the file's own, and one room for rrs
  std::set<std::string> unknown_;
};

}  // namespace

StoredSchedule import_msccl(std::string_view text, const std::string& file) {
  const XmlElement root = parse_xml(text, file);
  return Reader(root, file).read();
}

}  // namespace ringsim
