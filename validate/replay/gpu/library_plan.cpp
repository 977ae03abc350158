#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "validate/replay/gpu/draft.hpp"
#include "validate/replay/gpu/plan.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay::gpu {

namespace {

std::string_view definition(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::reduce_scatter:
      return "element i of block r of all ranks is added to element i of rank r's result";
    case CollectiveOp::all_gather:
      return "element i of rank r's block is element i of block r of all results";
    default:
      return "element i of one buffer is, or is added to, element i of the other";
  }
}

/// The library's operations, if the collective is one of them, and the place of each rank's `from` and `to`.
class Library {
 public:
  explicit Library(const Schedule& schedule)
      : schedule_(schedule),
        collective_(schedule.collective),
        from_(has(Buffer::input) ? Buffer::input : Buffer::data),
        to_(has(Buffer::output) ? Buffer::output : Buffer::data),
        total_(collective_.bytes.count / element_bytes) {
    const std::array known{CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather,
                           CollectiveOp::broadcast, CollectiveOp::reduce};
    if (std::find(known.begin(), known.end(), op()) == known.end())
      throw InputError("",
                       fmt::format("expected an operation that NCCL has (all_reduce, reduce_scatter, all_gather, "
                                   "broadcast or reduce), found {}",
                                   to_string(op())),
                       "to replay its schedule, remove --library");
    const bool in_blocks = op() == CollectiveOp::reduce_scatter || op() == CollectiveOp::all_gather;
    if (in_blocks && total_ % n() != 0)
      throw InputError(
          "",
          fmt::format("expected the same number of elements for each rank, as in NCCL's {}; found {} for {} ranks",
                      to_string(op()), total_, n()),
          fmt::format("a multiple of {} bytes", n() * element_bytes));
    block_ = in_blocks ? total_ / n() : total_;
  }

  /// Rank's command but for its stream. Throws InputError.
  Command command(Actor rank) const {
    Command command{.what = Command::What::collective, .peer = has_root(op()) ? collective_.root : 0};
    command.from = {rank, static_cast<int>(from_), 0, total_};
    command.to = {rank, static_cast<int>(to_), 0, total_};
    using Who = Content::Who;
    switch (op()) {
      case CollectiveOp::all_reduce:
        for (Actor other = 0; other < n(); ++other)
          hold(rank, brings(other, 0, total_), wants(rank, 0, total_, Who::all));
        return command;
      case CollectiveOp::broadcast:
        hold(rank, brings(collective_.root, 0, total_), wants(rank, 0, total_, Who::one, collective_.root));
        return command;
      case CollectiveOp::reduce:
        for (Actor other = 0; other < n(); ++other)
          hold(rank, brings(other, 0, total_), wants(collective_.root, 0, total_, Who::all));
        return command;
      case CollectiveOp::reduce_scatter:
        command.to = {rank, static_cast<int>(to_), own_block(rank, to_), block_};
        for (Actor other = 0; other < n(); ++other)
          hold(rank, brings(other, rank * block_, block_), wants(rank, command.to.first, block_, Who::all));
        return command;
      case CollectiveOp::all_gather:
        command.from = {rank, static_cast<int>(from_), own_block(rank, from_), block_};
        for (Actor other = 0; other < n(); ++other)
          hold(rank, brings(other, own_block(other, from_), block_),
               wants(rank, other * block_, block_, Who::one, other));
        return command;
      default:
        fail_invariant("an op that NCCL lacks was refused");
    }
  }

 private:
  using Pieces = std::optional<std::vector<std::pair<std::uint32_t, std::int64_t>>>;  // {chunk, elements}

  CollectiveOp op() const { return collective_.op; }
  int n() const { return collective_.ranks; }
  bool has(Buffer buffer) const { return schedule_.layout[static_cast<std::size_t>(buffer)].n_chunks() > 0; }
  std::int64_t elements(Buffer buffer) const {
    return schedule_.layout[static_cast<std::size_t>(buffer)].total().count / element_bytes;
  }

  /// The place of a rank's own block: a buffer may have room for it alone.
  std::int64_t own_block(Actor rank, Buffer buffer) const {
    return elements(buffer) == block_ && total_ != block_ ? 0 : rank * block_;
  }

  Pieces brings(Actor rank, std::int64_t first, std::int64_t count) const {
    return pieces(from_, first, count, [&](std::uint32_t chunk) {
      const Content content = collective_.before(rank, from_, chunk);
      return content.who == Content::Who::one && content.rank == rank ? std::optional(content.chunk) : std::nullopt;
    });
  }
  Pieces wants(Actor rank, std::int64_t first, std::int64_t count, Content::Who who, Actor of = -1) const {
    return pieces(to_, first, count, [&](std::uint32_t chunk) {
      const Content content = collective_.after(rank, to_, chunk);
      const bool is_it = content.who == who && (who == Content::Who::all || content.rank == of);
      return is_it ? std::optional(content.chunk) : std::nullopt;
    });
  }

  /// Which chunks of the contributions [first, first + count) of a buffer is made of. Nothing if one of them is not
  /// what `number` asks for, or does not lie within.
  template <class Number>
  Pieces pieces(Buffer buffer, std::int64_t first, std::int64_t count, Number number) const {
    Pieces::value_type found;
    std::int64_t at = 0;
    const Layout& layout = schedule_.layout[static_cast<std::size_t>(buffer)];
    for (std::uint32_t chunk = 0; chunk < static_cast<std::uint32_t>(layout.n_chunks()); ++chunk) {
      const std::int64_t size = layout.size(chunk, 1).count / element_bytes, begin = at;
      at += size;
      if (size == 0 || at <= first || begin >= first + count) continue;
      const auto which = number(chunk);
      if (!which || begin < first || at > first + count) return std::nullopt;
      found.emplace_back(*which, size);
    }
    if (at < first + count) return std::nullopt;
    return found;
  }

  void hold(Actor rank, const Pieces& brought, const Pieces& wanted) const {
    if (brought && brought == wanted) return;
    throw InputError("",
                     fmt::format("expected the buffer layout of NCCL's {}: {}; found another layout on rank {}",
                                 to_string(op()), definition(op()), rank),
                     "to replay its schedule, remove --library");
  }

  const Schedule& schedule_;
  const Collective& collective_;
  Buffer from_, to_;
  std::int64_t total_, block_ = 0;
};

}  // namespace

Plan make_library_plan(const Schedule& schedule, std::span<const Actor> mine) {
  const Library library(schedule);
  Draft draft(schedule, mine);
  std::vector<Command> commands;
  for (const Actor actor : mine) {
    if (actor >= schedule.collective.ranks) continue;
    commands.push_back(library.command(actor));
    commands.back().stream = draft.make_stream(actor);
  }
  if (!commands.empty()) draft.streams().bracket(Command::What::begin_group);
  for (const Command& command : commands) draft.streams().issue(command);
  if (!commands.empty()) draft.streams().bracket(Command::What::end_group);
  Plan plan = draft.finish();
  plan.communicators = {schedule.collective.ranks};
  plan.abreast = 1;
  return plan;
}

}  // namespace ringsim::replay::gpu
