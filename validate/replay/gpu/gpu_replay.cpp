#include "validate/replay/gpu/gpu_replay.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "sim/error.hpp"
#include "sim/quantity.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay::gpu {

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::string in_words(Place place) { return place == host_memory ? "host memory" : fmt::format("GPU {}", place); }

class Stage {
 public:
  Stage(Device& device, const Schedule& schedule, const Plan& plan, const Places& places, const GpuOptions& options)
      : device_(device), schedule_(schedule), plan_(plan), places_(places), options_(options) {
    for (Actor actor = 0; actor < schedule.actors; ++actor) allocate(actor);
    for (const Actor actor : plan.stream_of) streams_.push_back(stream_on(gpu_of(actor)));
    for (const std::uint32_t stream : plan.event_on) events_.push_back(event_on(gpu_of(plan.stream_of[stream]), false));
    for (int gpu = 0; gpu < device.gpus(); ++gpu) {
      service_.push_back(stream_on(gpu));
      served_.push_back(event_on(gpu, false));
    }
    begin_ = event_on(gpu_of(plan.stream_of[0]), true);
    end_ = event_on(gpu_of(plan.stream_of[0]), true);
    if (options.graph) capture();
  }

  void fill() {
    for (Actor actor = 0; actor < schedule_.actors; ++actor) fill(actor);
    for (std::size_t gpu = 0; gpu < service_.size(); ++gpu) {
      require(device_.record(service_[gpu], served_[gpu]), "filling buffers");
      settle(device_, served_[gpu], options_.patience, options_.stop);
    }
  }

  std::chrono::nanoseconds run() {
    require(device_.record(streams_[0], begin_), "beginning a run");
    if (graph_)
      require(device_.launch(streams_[0], *graph_), "launching the graph");
    else
      play();
    require(device_.record(streams_[0], end_), "ending a run");
    settle(device_, end_, options_.patience, options_.stop);
    std::chrono::nanoseconds time{0};
    require(device_.elapsed(begin_, end_, time), "reading the time");
    return time;
  }

  void check(ActorRecord& record) {
    for (Actor rank = 0; rank < schedule_.collective.ranks; ++rank) check(rank, record);
  }

 private:
  // Streams of an actor in host memory are of the first GPU.
  int gpu_of(Actor actor) const { return std::max(places_[at(actor)], 0); }
  Stream service_of(Actor actor) const { return service_[at(gpu_of(actor))]; }

  Stream stream_on(int gpu) {
    Stream stream{};
    require(device_.make_stream(gpu, stream), fmt::format("making a stream on GPU {}", gpu));
    return stream;
  }
  Event event_on(int gpu, bool timed) {
    Event event{};
    require(device_.make_event(gpu, timed, event), fmt::format("making an event on GPU {}", gpu));
    return event;
  }

  void allocate(Actor actor) {
    auto& rooms = rooms_.emplace_back();
    const Place place = places_[at(actor)];
    for (std::size_t room = 0; room < n_rooms; ++room) {
      const std::int64_t count = plan_.elements[at(actor)][room];
      rooms[room] = {.place = place};
      if (count == 0) continue;
      const Result result = device_.allocate(place, count, rooms[room]);
      if (result.good()) continue;
      require(result, fmt::format("allocating {} in {} for {} {}", format(Bytes{count * element_bytes}),
                                  in_words(place), actor < schedule_.collective.ranks ? "rank" : "helper", actor));
    }
  }

  Memory memory(const Stretch& stretch) const {
    const Memory& room = rooms_[at(stretch.actor)][at(stretch.room)];
    return {room.place, room.data + stretch.first, stretch.count};
  }
  Memory memory(Actor actor, Buffer buffer, std::uint32_t chunk) const {
    return memory({actor, static_cast<int>(buffer), schedule_.size({buffer, 0, chunk}).count / element_bytes,
                   schedule_.size({buffer, chunk, 1}).count / element_bytes});
  }

  // As ActorMemory::fill(). What has not come in yet is poison, too.
  void fill(Actor actor) {
    const bool is_rank = actor < schedule_.collective.ranks;
    constexpr float poison = std::numeric_limits<float>::quiet_NaN();
    for (int room = 0; room < n_rooms; ++room) {
      const bool is_zero = room != incoming_room && (!is_rank || static_cast<Buffer>(room) == Buffer::scratch);
      if (const Memory& all = rooms_[at(actor)][at(room)]; all.count > 0)
        require(device_.set(service_of(actor), all, is_zero ? 0.0F : poison), "filling buffers");
    }
    for (std::size_t b = 0; is_rank && b < n_buffers; ++b) {
      const auto n_chunks = static_cast<std::uint32_t>(schedule_.layout[b].n_chunks());
      for (std::uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
        const Content content = schedule_.collective.before(actor, static_cast<Buffer>(b), chunk);
        const Memory where = memory(actor, static_cast<Buffer>(b), chunk);
        if (content.who != Content::Who::one || where.count == 0) continue;
        const Numbers numbers{schedule_.collective.ranks, content.rank, content.rank, content.chunk};
        require(device_.put(service_of(actor), where, numbers), "filling buffers");
      }
    }
  }

  void check(Actor rank, ActorRecord& record) {
    const int ranks = schedule_.collective.ranks;
    for (std::size_t b = 0; b < n_buffers; ++b) {
      const auto buffer = static_cast<Buffer>(b);
      const auto n_chunks = static_cast<std::uint32_t>(schedule_.layout[b].n_chunks());
      for (std::uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
        const Content content = schedule_.collective.after(rank, buffer, chunk);
        const Memory where = memory(rank, buffer, chunk);
        if (content.who == Content::Who::nothing || where.count == 0) continue;
        const bool one = content.who == Content::Who::one;
        const Numbers numbers{ranks, one ? content.rank : 0, one ? content.rank : ranks - 1, content.chunk};
        Difference difference;
        require(device_.compare(service_of(rank), where, numbers, difference), "comparing results");
        if (difference.wrong > 0 && record.first_wrong.empty())
          record.first_wrong =
              to_string(WrongElement{rank, buffer, chunk, difference.first, difference.expected, difference.found});
        record.wrong += difference.wrong;
      }
    }
  }

  void play() {
    for (const Command& command : plan_.commands) {
      const Result result = issue(command);
      if (!result.good()) require(result, describe(command));
    }
  }

  Result issue(const Command& command) {
    const Stream stream = streams_[command.stream];
    switch (command.what) {
      case Command::What::copy:
        return device_.copy(stream, memory(command.to), memory(command.from), options_.copy_blocks);
      case Command::What::add:
        return device_.add(stream, memory(command.to), memory(command.base), memory(command.from));
      case Command::What::compute:
        return device_.compute(stream, command.time);
      case Command::What::record:
        return device_.record(stream, events_[command.event]);
      case Command::What::wait:
        return device_.wait(stream, events_[command.event]);
    }
    fail_invariant("a command is one of those");
  }

  std::string describe(const Command& command) const {
    const auto of = [&](Actor actor) {
      return fmt::format("{} {} ({})", actor < schedule_.collective.ranks ? "rank" : "helper", actor,
                         in_words(places_[at(actor)]));
    };
    if (command.what == Command::What::copy)
      return fmt::format("copying {} from {} to {}", format(Bytes{command.to.count * element_bytes}),
                         of(command.from.actor), of(command.to.actor));
    if (command.what == Command::What::add)
      return fmt::format("adding {} at {}", format(Bytes{command.to.count * element_bytes}), of(command.to.actor));
    return fmt::format("issuing to a stream of {}", of(plan_.stream_of[command.stream]));
  }

  void capture() {
    require(device_.begin_capture(streams_[0]), "beginning to capture a graph");
    play();
    Graph graph{};
    require(device_.end_capture(streams_[0], graph), "making a graph");
    graph_ = graph;
  }

  Device& device_;
  const Schedule& schedule_;
  const Plan& plan_;
  const Places& places_;
  const GpuOptions& options_;
  std::vector<std::array<Memory, n_rooms>> rooms_;  // [actor][room]
  std::vector<Stream> streams_, service_;           // of the plan; [gpu] for what is done between runs
  std::vector<Event> events_, served_;
  Event begin_{}, end_{};
  std::optional<Graph> graph_;
};

}  // namespace

Places place_actors(const Schedule& schedule, int gpus, bool helpers_on_host) {
  ensure(gpus > 0, "there is a GPU");
  Places places;
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    const bool on_host = helpers_on_host && actor >= schedule.collective.ranks;
    places.push_back(on_host ? host_memory : actor % gpus);
  }
  return places;
}

void settle(Device& device, Event event, std::chrono::milliseconds patience, const std::atomic<bool>* stop) {
  const auto begin = std::chrono::steady_clock::now();
  for (bool done = false;;) {
    const Result result = device.query(event, done);
    if (result.fault == Fault::lost) device.abandon();
    require(result, "waiting for the GPU");
    if (done) return;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (stop != nullptr && stop->load()) {
      device.abandon();
      throw Interrupted("stopped while the GPU was at work");
    }
    if (waited > patience) {
      device.abandon();
      throw EnvironmentError(
          fmt::format("the GPU was not done within {} ms: given up\n  hint: --timeout allows more", patience.count()));
    }
    // The GPU tells the time: to ask it less often costs nothing but a little of ours.
    if (waited > std::chrono::milliseconds(2)) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Measured replay_plan(Device& device, const Schedule& schedule, const Plan& plan, const Places& places,
                     const GpuOptions& options) {
  ensure(places.size() == at(schedule.actors), "every actor has a place");
  ensure(options.repeats.timed >= 1 && options.repeats.warmups >= 0, "a replay has a run at least");
  const Cleared cleared(device);
  Stage stage(device, schedule, plan, places, options);
  ActorRecord record;
  const int runs = options.repeats.warmups + options.repeats.timed;
  for (int i = 0; i < runs; ++i) {
    try {
      stage.fill();
      const std::chrono::nanoseconds time = stage.run();
      if (i >= options.repeats.warmups) record.times.push_back(time);
      stage.check(record);
    } catch (const EnvironmentError& error) {
      throw EnvironmentError(fmt::format("run {} of {}: {}", i + 1, runs, error.what()));
    }
  }
  return combine({record});
}

Measured replay_on(Device& device, const CheckedSchedule& checked, const Places& places, const GpuOptions& options) {
  require_replayable(checked);
  const Plan plan = make_plan(checked.schedule());
  return replay_plan(device, checked.schedule(), plan, places, options);
}

}  // namespace ringsim::replay::gpu
