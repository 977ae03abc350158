#include "tools/replay/replay_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "tools/command_line/input.hpp"
#include "tools/output/output.hpp"
#include "tools/replay/replay_backend.hpp"
#include "tools/replay/replay_mpi.hpp"
#include "tools/stop.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"
#include "validate/replay/memory.hpp"
#include "validate/replay/mpi/mpi_processes.hpp"
#include "validate/replay/nccl/nccl.hpp"

namespace ringsim::tools {

using namespace ringsim::replay;

namespace {

class OnNccl : public ReplayBackend {
 public:
  /// `session`: null for one process by itself.
  OnNccl(const ReplayArguments& arguments, MpiSession* session)
      : session_(session),
        number_(session == nullptr ? std::nullopt : std::optional(session->number_on_machine())),
        device_(gpu::open_cuda(number_)),
        nccl_(gpu::open_nccl(*device_)),
        timeout_(arguments.timeout),
        library_(arguments.library) {
    options_ = {.repeats = {},
                .graph = !arguments.streams,
                .patience = std::chrono::ceil<std::chrono::milliseconds>(arguments.timeout),
                .stop = &stop_requested};
  }
  bool writes() const override { return session_ == nullptr || session_->first(); }

  std::vector<Measured> replay(const ReplayPoint& point) override {
    const Schedule& schedule = only(point).schedule();
    if (point.scenario.main().servers_on_cpu)
      throw InputError(point.scenario.file + ": /collective/servers_on", "expected servers on GPUs, found \"cpu\"",
                       "NCCL sends from GPU to GPU; use --backend cuda for servers on CPUs");
    options_.repeats = point.repeats;
    say_where();
    const std::vector<ActorRecord> records =
        session_ == nullptr ? std::vector{in_one_process(schedule)} : in_processes(schedule);
    if (!writes()) return {};
    const Measured measured = combine(records);
    if (library_) say_as_nccl_tests(schedule.collective, measured);
    return {measured};
  }

 private:
  /// The library's own collective has no helpers.
  int actors(const Schedule& schedule) const { return library_ ? schedule.collective.ranks : schedule.actors; }
  gpu::Plan plan(const Schedule& schedule, std::span<const Actor> mine) const {
    return library_ ? gpu::make_library_plan(schedule, mine) : gpu::make_nccl_plan(schedule, mine);
  }

  ActorRecord in_one_process(const Schedule& schedule) {
    std::vector<Actor> mine(static_cast<std::size_t>(actors(schedule)));
    std::iota(mine.begin(), mine.end(), 0);
    return gpu::replay_part(*device_, nccl_.get(), schedule, plan(schedule, mine),
                            gpu::place_actors(schedule, device_->gpus(), false), options_);
  }

  /// Empty but at process 0.
  std::vector<ActorRecord> in_processes(const Schedule& schedule) {
#ifdef RINGSIM_MPI
    // All processes refuse what a plan refuses, including those that have no part.
    const Actor mine = std::min(session_->rank(), actors(schedule) - 1);
    const gpu::Plan part = plan(schedule, {&mine, 1});
    const FirstProcesses processes(*session_, actors(schedule));
    if (processes.get() == MPI_COMM_NULL) return {};
    try {
      gpu::Places places(static_cast<std::size_t>(schedule.actors));
      places[static_cast<std::size_t>(mine)] = *number_ % device_->gpus();
      gpu::GpuOptions options = options_;
      const auto patience = [&] { return MpiPatience(timeout_, &stop_requested); };
      options.barrier = [&] { processes.barrier(patience()); };
      options.meet = [&](gpu::Communicators& nccl) {
        gpu::MeetingPoint where{};
        if (session_->first()) gpu::require(nccl.make_meeting_point(where), "making a meeting point");
        processes.tell(where, patience());
        return where;
      };
      return processes.gathered(gpu::replay_part(*device_, nccl_.get(), schedule, part, places, options));
    } catch (...) {
      session_->give_up();
      throw;
    }
#else
    static_cast<void>(schedule);
    fail_invariant("without MPI there is no session");
#endif
  }

  void say_where() {
    if (std::exchange(said_, true) || !writes()) return;
    say(fmt::format("ringsim: measured on {}, {}{}\n", device_->name(), nccl_->name(),
                    session_ == nullptr ? "" : fmt::format(", {} processes", session_->size())));
  }

  /// As its common.cu lays it out; counts are those of NCCL's calls. One pair of buffers is used: one set of columns.
  void say_as_nccl_tests(const Collective& collective, const Measured& measured) {
    if (!std::exchange(said_columns_, true)) {
      say(fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}\n", "size", "count", "type",
                      "redop", "root", "time", "algbw", "busbw", "#wrong"));
      say(fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}\n", "(B)", "(elements)", "", "",
                      "", "(us)", "(GB/s)", "(GB/s)", ""));
    }
    const CollectiveOp op = collective.op;
    const bool divides = op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter;
    const bool sums =
        op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::reduce;
    const bool is_timed = measured.median.count() > 0;
    const double algbw =
        is_timed ? static_cast<double>(collective.bytes.count) / microseconds(measured.median) / 1e3 : 0;
    say(fmt::format("  {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7.2f}  {:>6.2f}  {:>6.2f} {:>6}\n",
                    collective.bytes.count, collective.bytes.count / element_bytes / (divides ? collective.ranks : 1),
                    "float", sums ? "sum" : "none", has_root(op) ? collective.root : -1, microseconds(measured.median),
                    algbw, algbw * busbw_factor(op, collective.ranks), measured.wrong));
  }

  MpiSession* session_;
  std::optional<int> number_;  // of this process among those on this machine
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<gpu::Communicators> nccl_;  // on the device
  gpu::GpuOptions options_;
  [[maybe_unused]] std::chrono::nanoseconds timeout_;  // of MPI
  bool library_, said_ = false, said_columns_ = false;
};

}  // namespace

int replay_by_nccl(const ReplayArguments& arguments) {
  if (const auto session = MpiSession::join())
    return replay_together(*session, arguments, [&] { return std::make_unique<OnNccl>(arguments, session.get()); });
  refuse_foreign_options(arguments);
  const ScenarioFile file = load_scenario(arguments.scenario, arguments.set);
  OnNccl backend(arguments, nullptr);
  return replay_points(file, arguments, backend);
}

}  // namespace ringsim::tools
