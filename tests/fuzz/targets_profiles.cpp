// Profiles of real jobs.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "algorithms/traces/chakra_reader.hpp"
#include "algorithms/traces/rank_trace.hpp"
#include "tests/fuzz/laws.hpp"
#include "tests/fuzz/targets.hpp"
#include "validate/profiles/hang.hpp"
#include "validate/profiles/read.hpp"
#include "validate/profiles/waiting.hpp"

namespace ringsim::fuzz {

namespace {

using namespace profiles;

/// A file with that text, which goes with it. SQLite opens no file that is in memory alone.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text) {
    const bool has_memory = access("/dev/shm", W_OK) == 0;
    const std::string unique(6, 'X');  // mkstemp() replaces six letters X at the end
    path_ = (has_memory ? "/dev/shm/ringsim-fuzz-" : "/tmp/ringsim-fuzz-") + unique;
    const int descriptor = mkstemp(path_.data());
    const bool is_written =
        descriptor >= 0 && write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (descriptor >= 0) close(descriptor);
    if (!is_written) throw std::system_error(errno, std::generic_category(), path_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The file as a profile, and what is made out of it.
bool read_as_profile(const std::function<Pieces()>& open, const AssumedGroups& groups,
                     std::optional<std::uint32_t> rank) {
  return reads_or_refuses([&] {
    Profile profile;
    Pieces file = open();
    std::vector<FlightDump> dumps;
    read_profile(file, rank, profile, &dumps);
    settle(profile, groups);
    std::size_t usable = 0;
    for (const Call& call : profile.calls) {
      law(call.duration_ns() >= 0, "a kernel does not end before it begins");
      law(call.group < profile.groups.size() && call.dtype < profile.names.size(), "indices are within their tables");
      law(!call.is_usable() || (call.bytes >= 0 && call.op != CallOp::unknown), "a usable call has operation and size");
      usable += call.is_usable();
    }
    const Account account = account_of(profile, 0);
    std::size_t met = 0;
    for (const Meeting& meeting : account.matching.meetings) met += meeting.calls.size();
    law(met == usable && account.usable == usable, "every usable call is in one collective");
    const Matching& matching = account.matching;
    law(matching.matched + matching.no_partner + matching.no_group + matching.point_to_point >= usable,
        "every usable call is matched, or counted with the reason why not");
    for (const Row& row : account.rows)
      law(row.kernels > 0 && row.transfer_ns >= 0 && row.wait_ns >= 0, "times of a row are not negative");
    for (const FlightDump& dump : dumps) {
      std::int64_t before = -1;
      for (const FlightCall& call : dump.calls) {
        law(call.record > before && !call.ops.empty(), "calls are in order, and each has an operation");
        law(call.group < dump.groups.size() && call.place < dump.texts.size(), "indices are within their tables");
        before = call.record;
      }
    }
    for (const GroupProgress& group : hang_of(dumps).groups)
      for (const RankProgress& rank : group.ranks) {
        law(rank.completed <= rank.called, "what has completed was called");
        const bool is_known = rank.standing != Standing::no_dump && rank.standing != Standing::not_in_dump;
        law(!is_known || rank.completed >= group.last, "all have completed what all have completed");
      }
  });
}

}  // namespace

bool read_profile_text(std::string_view text) {
  const auto open = [&] { return Pieces(std::make_unique<std::istringstream>(std::string(text)), "rank0", Limits()); };
  const bool alone = read_as_profile(open, {}, std::nullopt);
  return read_as_profile(open, {.kind = AssumedGroups::Kind::all, .n = 0, .listed = {}}, std::nullopt) || alone;
}

bool read_nsight_text(std::string_view text) {
  const TemporaryFile file(text);
  const auto open = [&] { return Pieces(file.path(), Limits()); };
  const bool alone = read_as_profile(open, {}, std::nullopt);
  return read_as_profile(open, {.kind = AssumedGroups::Kind::all, .n = 0, .listed = {}}, 0) || alone;
}

bool read_chakra_text(std::string_view text) {
  if (!traces::has_chakra()) return false;
  return reads_or_refuses([&] {
    traces::GraphOptions options;
    options.drop_missing = true;
    const traces::ExecutionTrace trace = traces::read_chakra(text, "trace.et");
    const traces::RankTrace tasks = rank_trace(trace, options);
    law(tasks.n_tasks() <= trace.nodes.size(), "no task is invented");
    law(tasks.calls.size() == trace.communications.size(), "every node of communication is a call");
    Picoseconds before{0}, after{0};
    for (const traces::TraceNode& node : trace.nodes)
      if (node.communication < 0) before = add(before, node.duration);
    std::size_t calls = 0;
    for (const traces::TracedStream& stream : tasks.streams)
      for (const traces::TracedTask& task : stream.tasks) {
        after = add(after, task.time);
        calls += task.call >= 0;
        for (const traces::TracedWait& wait : task.waits)
          law(wait.stream < tasks.streams.size() && wait.tasks > 0 &&
                  wait.tasks <= tasks.streams[wait.stream].tasks.size(),
              "waits are for tasks that exist");
      }
    law(calls == tasks.calls.size(), "each call is made once");
    law(before == after, "recorded times stay as they are");
  });
}

}  // namespace ringsim::fuzz
