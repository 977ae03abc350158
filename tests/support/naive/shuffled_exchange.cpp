#include "tests/support/naive/shuffled_exchange.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>

#include "validate/replay/actor_run.hpp"

namespace ringsim::test {

namespace {

using namespace ringsim::replay;

struct Sending {
  std::span<const float> data;
  Ticket ticket;
};
struct Receiving {
  std::span<float> data;
  Ticket ticket;
};

struct Wire {
  std::deque<Sending> sends;
  std::deque<std::vector<float>> on_their_way;
  std::deque<Receiving> receives;
};

/// What is under way between all actors.
struct Wires {
  std::map<Connection, Wire> wires;
  std::vector<std::pair<Actor, Ticket>> computing;
};

class Port : public Messages {
 public:
  Port(Wires& wires, Actor actor) : wires_(wires), actor_(actor) {}
  void start_send(const Connection& connection, std::span<const float> data, Ticket ticket) override {
    wires_.wires[connection].sends.push_back({data, ticket});
  }
  void start_receive(const Connection& connection, std::span<float> data, Ticket ticket) override {
    wires_.wires[connection].receives.push_back({data, ticket});
  }
  void start_compute(std::chrono::nanoseconds, Ticket ticket) override {
    wires_.computing.emplace_back(actor_, ticket);
  }

 private:
  Wires& wires_;
  Actor actor_;
};

struct Player {
  Player(const Schedule& schedule, Actor actor, Wires& wires, const LoweredProgram* program)
      : memory(schedule, actor),
        data(program != nullptr ? std::make_unique<ProgramData>(*program, actor, memory) : nullptr),
        port(wires, actor),
        run(schedule, actor, memory, port, data.get()) {
    if (data)
      data->fill();
    else
      memory.fill();
  }
  ActorMemory memory;
  std::unique_ptr<ProgramData> data;  // none: of a collective
  Port port;
  ActorRun run;
};

class Shuffled {
 public:
  Shuffled(const Schedule& schedule, std::uint64_t seed, const LoweredProgram* program)
      : random_(seed), rendezvous_(seed % 2 == 0) {
    for (Actor actor = 0; actor < schedule.actors; ++actor)
      players_.push_back(std::make_unique<Player>(schedule, actor, wires_, program));
  }

  Replayed go() {
    for (const auto& player : players_) player->run.start();
    while (happen()) {
    }
    Replayed result{.finished = true, .verdicts = {}, .programs = {}, .open = {}};
    for (const auto& player : players_) {
      if (player->data)
        result.programs.push_back(player->data->check());
      else
        result.verdicts.push_back(player->memory.check());
      if (player->run.finished()) continue;
      if (result.finished) result.open = player->run.open();
      result.finished = false;
    }
    return result;
  }

 private:
  enum class What { meet, leave, arrive, compute };
  struct Event {
    What what;
    Connection connection;
    std::size_t computing = 0;
  };

  bool happen() {
    std::vector<Event> may;
    for (const auto& [connection, wire] : wires_.wires) {
      if (rendezvous_ && !wire.sends.empty() && !wire.receives.empty()) may.push_back({What::meet, connection});
      if (!rendezvous_ && !wire.sends.empty()) may.push_back({What::leave, connection});
      if (!wire.on_their_way.empty() && !wire.receives.empty()) may.push_back({What::arrive, connection});
    }
    for (std::size_t i = 0; i < wires_.computing.size(); ++i) may.push_back({What::compute, {}, i});
    if (may.empty()) return false;
    const Event event = may[random_() % may.size()];
    if (event.what == What::compute) {
      const auto [actor, ticket] = wires_.computing[event.computing];
      wires_.computing.erase(wires_.computing.begin() + static_cast<std::ptrdiff_t>(event.computing));
      run_of(actor).done(ticket);
      return true;
    }
    if (event.what != What::arrive) leave(event.connection);
    if (event.what != What::leave) arrive(event.connection);
    return true;
  }

  void leave(const Connection& connection) {
    Wire& wire = wires_.wires[connection];
    const Sending sending = wire.sends.front();
    wire.sends.pop_front();
    wire.on_their_way.emplace_back(sending.data.begin(), sending.data.end());
    run_of(connection.from).done(sending.ticket);
  }

  void arrive(const Connection& connection) {
    Wire& wire = wires_.wires[connection];
    const Receiving receiving = wire.receives.front();
    const std::vector<float> data = wire.on_their_way.front();
    wire.receives.pop_front();
    wire.on_their_way.pop_front();
    if (data.size() != receiving.data.size()) throw std::logic_error("both ends of a message agree on its size");
    std::copy(data.begin(), data.end(), receiving.data.begin());
    run_of(connection.to).done(receiving.ticket);
  }

  ActorRun& run_of(Actor actor) { return players_[static_cast<std::size_t>(actor)]->run; }

  std::mt19937_64 random_;
  bool rendezvous_;
  Wires wires_;
  std::vector<std::unique_ptr<Player>> players_;
};

}  // namespace

Replayed replay_shuffled(const Schedule& schedule, std::uint64_t seed, const LoweredProgram* program) {
  return Shuffled(schedule, seed, program).go();
}

}  // namespace ringsim::test
