#include "validate/replay/gpu/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include "sim/base/error.hpp"

namespace ringsim::replay::gpu {

namespace {

enum class Ended : std::uint8_t { done, late, stopped };

template <class Ask>
Ended poll(std::chrono::milliseconds patience, const std::atomic<bool>* stop, Ask is_done) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    if (is_done()) return Ended::done;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (stop != nullptr && stop->load()) return Ended::stopped;
    if (waited > patience) return Ended::late;
    // The GPU tells the time: to ask it less often costs nothing but a little of ours.
    if (waited > std::chrono::milliseconds(2))
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    else
      std::this_thread::yield();  // other processes may be waited for, and have no core
  }
}

// A kernel that is asked to end does so within a few thousand of its instructions; one that takes longer never ends.
constexpr std::chrono::milliseconds grace{1000};

}  // namespace

Peers::Peers(Device& device, Communicators* communicators, const GpuOptions& options)
    : device_(device), communicators_(communicators), options_(options) {}

Peers::~Peers() {
  if (!departed_) abort();
  if (communicators_ != nullptr) communicators_->clear();
}

void Peers::abort() noexcept {
  if (communicators_ == nullptr || aborted_) return;
  aborted_ = true;
  communicators_->abort();
}

void Peers::join(const Plan& plan, const Places& places) {
  const std::size_t n = plan.communicators.size();
  if (n == 0) return;
  ensure(communicators_ != nullptr, "a plan that sends has somebody to do it");
  contacts_.resize(places.size());
  for (const Actor actor : plan.mine) contacts_[at(actor)] = contact_of(places[at(actor)]);
  communicators_->expect(plan.abreast);
  for (std::size_t c = 0; c < n; ++c) {
    const std::string doing = fmt::format("joining communicator {} of {}", c + 1, n);
    MeetingPoint where{};
    if (options_.meet)
      where = options_.meet(*communicators_);
    else
      require(communicators_->make_meeting_point(where), doing);
    std::vector<Member> members;
    for (const Actor actor : plan.mine)
      if (actor < plan.communicators[c]) members.push_back({actor, places[at(actor)]});
    auto& ends = ends_.emplace_back(places.size());
    if (members.empty()) continue;
    std::vector<End> joined;
    require(communicators_->join(plan.communicators[c], members, where, joined), doing);
    finish(doing);
    for (std::size_t i = 0; i < members.size(); ++i) ends[at(members[i].rank)] = joined[i];
  }
  for (std::uint32_t c = 0; c < n; ++c) connect(plan, c);
}

Peers::Contact Peers::contact_of(int gpu) {
  Contact contact;
  require(device_.make_stream(gpu, contact.stream), fmt::format("making a stream on GPU {}", gpu));
  require(device_.make_event(gpu, false, contact.event), fmt::format("making an event on GPU {}", gpu));
  require(device_.allocate(gpu, 2, contact.memory), fmt::format("allocating 8 B in GPU {}", gpu));
  return contact;
}

void Peers::connect(const Plan& plan, std::uint32_t communicator) {
  // Both sides find theirs in the same schedule, in one order: that in which messages between two ends match.
  std::set<std::tuple<Actor, Actor, Command::What>> connections;  // {mine, peer, what}
  for (const Command& command : plan.commands)
    if ((command.what == Command::What::send || command.what == Command::What::receive) &&
        command.communicator == communicator)
      connections.insert({plan.stream_of[command.stream], command.peer, command.what});
  if (connections.empty()) return;
  const std::string doing =
      fmt::format("connecting communicator {} of {}", communicator + 1, plan.communicators.size());
  require(communicators_->begin_group(), doing);
  for (const auto& [actor, peer, what] : connections) {
    const Contact& contact = *contacts_[at(actor)];
    const Memory first{contact.memory.place, contact.memory.data, 1}, second{first.place, first.data + 1, 1};
    require(what == Command::What::send
                ? communicators_->send(end(communicator, actor), contact.stream, first, peer)
                : communicators_->receive(end(communicator, actor), contact.stream, second, peer),
            doing);
  }
  require(communicators_->end_group(), doing);
  finish(doing);
  for (const Actor actor : plan.mine) {
    const Contact& contact = *contacts_[at(actor)];
    require(device_.record(contact.stream, contact.event), doing);
    settle(contact.event);
  }
}

void Peers::settle(Event event) {
  const auto is_done = [&] {
    bool done = false;
    const Result result = device_.query(event, done);
    if (result.fault == Fault::lost) device_.abandon();
    require(result, "waiting for the GPU");
    return done;
  };
  Result peers;
  const Ended ended = poll(options_.patience, options_.stop, [&] {
    bool under_way = false;
    if (!ends_.empty()) peers = communicators_->query(under_way);
    return !peers.good() || is_done();
  });
  if (ended == Ended::done && peers.good()) return;
  abort();
  const bool may_come_back = communicators_ != nullptr;
  if (!may_come_back || poll(std::min(grace, options_.patience), nullptr, is_done) != Ended::done) device_.abandon();
  require(peers, "waiting for the peers");
  if (ended == Ended::stopped) throw Interrupted("stopped while the GPU was at work");
  throw EnvironmentError(fmt::format("the GPU{} did not finish within {} ms\n  hint: to wait longer, use --timeout",
                                     ends_.empty() ? "" : ", or a peer that it waits for,", options_.patience.count()));
}

void Peers::finish(std::string_view doing) {
  const Ended ended = poll(options_.patience, options_.stop, [&] {
    bool done = false;
    require(communicators_->query(done), doing);
    return done;
  });
  if (ended == Ended::done) return;
  abort();
  device_.abandon();  // what the library was about to do on it is not known
  if (ended == Ended::stopped) throw Interrupted(fmt::format("stopped while {}", doing));
  throw EnvironmentError(
      fmt::format("{}: not finished within {} ms\n  hint: check that all processes run and can reach each other; to "
                  "wait longer, use --timeout",
                  doing, options_.patience.count()));
}

void Peers::begin_group() { require(communicators_->begin_group(), "beginning a group"); }

void Peers::end_group() {
  require(communicators_->end_group(), "ending a group");
  finish("ending a group");
}

End Peers::end(std::uint32_t communicator, Actor actor) const {
  const auto& found = ends_.at(communicator).at(at(actor));
  ensure(found.has_value(), "the sender is a member");
  return *found;
}

// The library wants an address even for no data.
Memory Peers::or_nothing(Memory memory, Actor actor) const {
  return memory.count > 0 ? memory : Memory{memory.place, contacts_[at(actor)]->memory.data, 0};
}

// A message of nothing is one that is waited for, as in a barrier; NCCL's LL protocol waits for no element if there
// is none (LLGenericOp() in NVIDIA/nccl, src/device/prims_ll.h). So it has one, whose value is nobody's.
Memory Peers::or_one(Memory memory, Actor actor, int which) const {
  return memory.count > 0 ? memory : Memory{memory.place, contacts_[at(actor)]->memory.data + which, 1};
}

Result Peers::send(const Command& command, Actor actor, Stream stream, Memory from) {
  return communicators_->send(end(command.communicator, actor), stream, or_one(from, actor, 0), command.peer);
}

Result Peers::receive(const Command& command, Actor actor, Stream stream, Memory to) {
  return communicators_->receive(end(command.communicator, actor), stream, or_one(to, actor, 1), command.peer);
}

Result Peers::collective(const Command& command, Actor actor, Stream stream, CollectiveOp op, Memory to, Memory from) {
  return communicators_->collective(end(command.communicator, actor), stream, op, or_nothing(to, actor),
                                    or_nothing(from, actor), command.peer);
}

}  // namespace ringsim::replay::gpu
