#include "validate/replay/gpu/gpu_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "validate/replay/gpu/peers.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay::gpu {

namespace {

std::string_view name_of(const Schedule& schedule, Actor actor) {
  return actor < schedule.collective.ranks ? "rank" : "helper";
}

std::string in_words(Place place) { return place == host_memory ? "host memory" : fmt::format("GPU {}", place); }

class Stage {
 public:
  Stage(Device& device, Peers& peers, const Schedule& schedule, const Plan& plan, const Places& places,
        const GpuOptions& options)
      : device_(device), peers_(peers), schedule_(schedule), plan_(plan), places_(places), options_(options) {
    rooms_.resize(at(schedule.actors));
    for (const Actor actor : plan.mine) allocate(actor);
    for (const Actor actor : plan.stream_of) streams_.push_back(stream_on(gpu_of(actor)));
    for (const std::uint32_t stream : plan.event_on) events_.push_back(event_on(gpu_of(plan.stream_of[stream]), false));
    for (const Actor actor : plan.mine)
      if (const int gpu = gpu_of(actor); !services_.contains(gpu))
        services_[gpu] = {.stream = stream_on(gpu), .done = event_on(gpu, false)};
    begin_ = event_on(gpu_of(plan.stream_of[0]), true);
    end_ = event_on(gpu_of(plan.stream_of[0]), true);
    peers.join(plan, places);
    if (has_collectives()) rehearse();
    if (options.graph) capture();
  }

  void fill() {
    for (const Actor actor : plan_.mine) fill(actor);
    for (const auto& [gpu, service] : services_) {
      require(device_.record(service.stream, service.done), "filling buffers");
      peers_.settle(service.done);
    }
  }

  std::chrono::nanoseconds run() {
    require(device_.record(streams_[0], begin_), "beginning a run");
    if (graph_)
      require(device_.launch(streams_[0], *graph_), "launching the graph");
    else
      play();
    require(device_.record(streams_[0], end_), "ending a run");
    peers_.settle(end_);
    std::chrono::nanoseconds time{0};
    require(device_.elapsed(begin_, end_, time), "reading the time");
    return time;
  }

  void check(ActorRecord& record) {
    for (const Actor actor : plan_.mine)
      if (actor < schedule_.collective.ranks) check(actor, record);
  }

 private:
  // Streams of an actor in host memory are of the first GPU.
  int gpu_of(Actor actor) const { return std::max(places_[at(actor)], 0); }
  Stream service_of(Actor actor) const { return services_.at(gpu_of(actor)).stream; }

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
    auto& rooms = rooms_[at(actor)];
    const Place place = places_[at(actor)];
    for (std::size_t room = 0; room < n_rooms; ++room) {
      const std::int64_t count = plan_.elements[at(actor)][room];
      rooms[room] = {.place = place};
      if (count == 0) continue;
      const Result result = device_.allocate(place, count, rooms[room]);
      if (result.good()) continue;
      require(result, fmt::format("allocating {} in {} for {} {}", format(Bytes{count * element_bytes}),
                                  in_words(place), name_of(schedule_, actor), actor));
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

  // As ActorMemory::fill(). What has not come in yet is poison as well.
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
    if (command.what == Command::What::begin_group || command.what == Command::What::end_group) {
      command.what == Command::What::begin_group ? peers_.begin_group() : peers_.end_group();
      return {};
    }
    const Stream stream = streams_[command.stream];
    const Actor actor = plan_.stream_of[command.stream];
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
      case Command::What::send:
        return peers_.send(command, actor, stream, memory(command.from));
      case Command::What::receive:
        return peers_.receive(command, actor, stream, memory(command.to));
      case Command::What::collective:
        return peers_.collective(command, actor, stream, schedule_.collective.op, memory(command.to),
                                 memory(command.from));
      case Command::What::begin_group:
      case Command::What::end_group:
        break;
    }
    fail_invariant("a command is one of those");
  }

  std::string describe(const Command& command) const {
    using What = Command::What;
    const auto of = [&](Actor actor) {
      return fmt::format("{} {} ({})", name_of(schedule_, actor), actor, in_words(places_[at(actor)]));
    };
    const auto size_of = [](const Stretch& stretch) { return format(Bytes{stretch.count * element_bytes}); };
    const Actor actor = plan_.stream_of[command.stream];
    if (command.what == What::copy)
      return fmt::format("copying {} from {} to {}", size_of(command.to), of(command.from.actor), of(command.to.actor));
    if (command.what == What::add) return fmt::format("adding {} at {}", size_of(command.to), of(command.to.actor));
    if (command.what == What::send || command.what == What::receive) {
      const bool sends = command.what == What::send;
      return fmt::format("{} {} at {} {} {} {}", sends ? "sending" : "receiving",
                         size_of(sends ? command.from : command.to), of(actor), sends ? "to" : "from",
                         name_of(schedule_, command.peer), command.peer);
    }
    if (command.what == What::collective)
      return fmt::format("beginning {} at {}", to_string(schedule_.collective.op), of(actor));
    return fmt::format("issuing to a stream of {}", of(actor));
  }

  bool has_collectives() const {
    return std::any_of(plan_.commands.begin(), plan_.commands.end(),
                       [](const Command& command) { return command.what == Command::What::collective; });
  }

  // The library connects for a collective at its first use, by its size: not in a graph, and not in a time.
  void rehearse() {
    play();
    require(device_.record(streams_[0], end_), "ending a run");
    peers_.settle(end_);
  }

  void capture() {
    require(device_.begin_capture(streams_[0]), "beginning to capture a graph");
    play();
    Graph graph{};
    require(device_.end_capture(streams_[0], graph), "making a graph");
    graph_ = graph;
  }

  struct Service {
    Stream stream{};
    Event done{};
  };

  Device& device_;
  Peers& peers_;
  const Schedule& schedule_;
  const Plan& plan_;
  const Places& places_;
  const GpuOptions& options_;
  std::vector<std::array<Memory, n_rooms>> rooms_;  // [actor][room]
  std::map<int, Service> services_;                 // [gpu] for what is done between runs
  std::vector<Stream> streams_;                     // of the plan
  std::vector<Event> events_;
  Event begin_{}, end_{};
  std::optional<Graph> graph_;
};

// The library refuses two ends of a communicator on one GPU, and knows no other memory.
void require_own_gpus(const Schedule& schedule, const Plan& plan, const Places& places) {
  std::map<int, Actor> on;
  for (const Actor actor : plan.mine) {
    const Place place = places[at(actor)];
    if (place == host_memory)
      throw InputError(
          "", fmt::format("expected all actors on GPUs, found {} {} in host memory", name_of(schedule, actor), actor),
          "NCCL sends from GPU to GPU; for `\"servers_on\": \"cpu\"`, use --backend cuda");
    if (const auto [first, is_new] = on.try_emplace(place, actor); !is_new)
      throw EnvironmentError(
          fmt::format("{} {} and {} {} would share GPU {}, but NCCL requires separate GPUs\n  hint: use fewer ranks, "
                      "more GPUs, or --backend cuda, which lets ranks share a GPU",
                      name_of(schedule, first->second), first->second, name_of(schedule, actor), actor, place));
  }
}

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
  Peers(device, nullptr, {.patience = patience, .stop = stop}).settle(event);
}

ActorRecord replay_part(Device& device, Communicators* communicators, const Schedule& schedule, const Plan& plan,
                        const Places& places, const GpuOptions& options) {
  ensure(places.size() == at(schedule.actors), "every actor has a place");
  ensure(options.repeats.timed >= 1 && options.repeats.warmups >= 0, "a replay has a run at least");
  if (!plan.communicators.empty()) require_own_gpus(schedule, plan, places);
  const Cleared cleared(device);
  Peers peers(device, communicators, options);
  Stage stage(device, peers, schedule, plan, places, options);
  ActorRecord record;
  const int runs = options.repeats.warmups + options.repeats.timed;
  for (int i = 0; i < runs; ++i) {
    try {
      stage.fill();
      if (options.barrier) options.barrier();
      const std::chrono::nanoseconds time = stage.run();
      if (i >= options.repeats.warmups) record.times.push_back(time);
      stage.check(record);
    } catch (const EnvironmentError& error) {
      throw EnvironmentError(fmt::format("run {} of {}: {}", i + 1, runs, error.what()));
    }
  }
  if (options.barrier) options.barrier();  // who leaves a communicator earlier might disturb who still uses it
  peers.depart();
  return record;
}

Measured replay_plan(Device& device, const Schedule& schedule, const Plan& plan, const Places& places,
                     const GpuOptions& options) {
  return combine({replay_part(device, nullptr, schedule, plan, places, options)});
}

Measured replay_on(Device& device, const CheckedSchedule& checked, const Places& places, const GpuOptions& options) {
  require_replayable(checked);
  const Plan plan = make_plan(checked.schedule());
  return replay_plan(device, checked.schedule(), plan, places, options);
}

}  // namespace ringsim::replay::gpu
