#include "sim/run/transfers.hpp"

#include <algorithm>
#include <utility>

#include "sim/run/link_faults.hpp"

namespace ringsim {

Transfers::Transfers(const Topology& topology, const RunOptions& options, std::vector<NodeId> placement,
                     int n_simulated, const Represented& represented, std::unique_ptr<Network> network,
                     Engine<Event>& engine)
    : topology_(topology),
      options_(options),
      represented_(represented),
      placement_(std::move(placement)),
      n_actors_(static_cast<Actor>(placement_.size())),
      engine_(engine),
      routes_(topology, options),
      network_(std::move(network)),
      ways_(options.routing.policy, differ_by_channel(topology, options), *network_,
            static_cast<std::size_t>(n_simulated)),
      keeps_routes_(ways_.are_fixed() && represented.keeps_connections()),
      staged_(options, table_, ways_, *network_, engine) {
  if (options.may_post(topology)) posts_ = std::make_unique<Posts>(topology.n_nodes(), engine);
}

void Transfers::go_posted(std::uint32_t index) {
  posts_->moves(index);
  go(index);
}

void Transfers::post(std::uint32_t index) {
  const Transfer& transfer = table_[index];
  if (transfer.whole >= first_background && transfer.whole != no_transfer) return go_posted(index);
  const std::uint64_t key = ways_[transfer.route].key;
  const Actor from = CompiledRoutes::sender_of(key), to = CompiledRoutes::receiver_of(key);
  const NodeId device = node_of(from);
  const DeviceLinks* rates = topology_.device(device);
  const Picoseconds post =
      std::max(rates == nullptr ? Picoseconds{0} : rates->post, options_.plan(transfer.channel).protocol->post);
  if (post.count() == 0 || !topology_.joins_hosts(device, node_of(to))) return go_posted(index);
  posts_->add({.lane = transfer.sender,
               .distance = wrap(to - from, n_actors_),
               .channel = transfer.channel,
               .transfer = index,
               .device = device,
               .post = post});
}

void Transfers::set_out_in_pieces(std::uint32_t index) {
  Transfer& transfer = table_[index];
  Route& way = ways_[transfer.route];
  if (way.n_parts > 0) return cut(index);
  way.carried += transfer.size;
  transfer.marks.limiter_is_unsure = false;
  if (way.n_legs == 0) {
    engine_.at(engine_.now(), {Event::Kind::within, index, 0});
  } else {
    staged_.begin(index);
  }
}

/// Cuts a message into equal parts; the first ones are a byte longer if it does not divide.
void Transfers::cut(std::uint32_t index) {
  const Route way = ways_[table_[index].route];
  if (way.n_parts == nowhere) return faults_->strand(index);
  const std::int64_t size = table_[index].size.count;
  table_[index].parts_under_way = table_[index].parts_to_leave = way.n_parts;
  for (std::uint32_t i = 0; i < way.n_parts; ++i) {
    const std::uint32_t part = table_.make();  // may move the others
    Transfer& made = table_[part];
    made.sender = table_[index].sender;
    made.receiver = table_[index].receiver;
    made.route = way.first + i;
    made.channel = table_[index].channel;
    made.start = engine_.now();
    made.whole = index;
    made.marks.has_left = made.marks.starts_apart = false;
    made.size = {size / way.n_parts + (i < size % way.n_parts ? 1 : 0)};
    posts_ ? go_posted(part) : go(part);
  }
}

void Transfers::drop(std::uint32_t index) {
  staged_.give_back(index);
  table_[index] = Transfer{};
  table_.give_back(index);
}

std::vector<Path> Transfers::find_parts(Actor from, Actor to, std::uint32_t label) {
  if ((ways_.size() & 0xFF) == 0xFF && look_up_) look_up_();
  const NodeId here = node_of(from), there = node_of(to);
  std::vector<Path> parts = faults_ != nullptr && faults_->any_down() ? faults_->find_parts(here, there, label)
                                                                      : routes_.find_parts(here, there, label);
  represented_.take_links(parts);
  return parts;
}

void Transfers::piece_left(const Told& told) {
  const std::uint32_t index = transfer_of(told.piece), leg = leg_of(told.piece);
  Transfer& transfer = table_[index];
  if (ways_[transfer.route].n_legs == 1) {
    transfer.marks.limiter_is_unsure = told.is_unsure;
    if (watcher_ != nullptr) watcher_->has_left(index, told.limiter, engine_.now() - moves_since(index));
  } else {
    if (told.is_unsure) transfer.marks.limiter_is_unsure = true;
    if (!staged_.piece_left(index, leg, told.limiter) || watcher_ == nullptr) return;
    const LegProgress& first = staged_.of(index).legs.front();
    watcher_->has_left(index, first.limiter, first.busy);
  }
}

bool Transfers::swallows(std::uint32_t index, std::uint32_t leg) { return faults_->swallows(index, leg); }

const Arrived* Transfers::staged_piece_arrived(std::uint32_t index, std::uint32_t leg) {
  if (!staged_.piece_arrived(index, leg)) return nullptr;
  const Picoseconds wire = options_.record_path ? ways_.latency(table_[index].route) : Picoseconds::max();
  const auto [limiter, busy] = staged_.end(index);  // gives back its rooms
  return all_arrived(index, limiter, busy, wire);
}

// The message waits for its last part: what held that one held it, since it started.
const Arrived* Transfers::part_arrived() {
  const Arrived part = arrived_;
  const std::uint32_t index = part.transfer, whole = table_[index].whole;
  if (whole >= first_background) {
    on_background_(index);
    return nullptr;
  }
  // Within one device nothing has told of it.
  if (watcher_ != nullptr) watcher_->has_left(index, part.time.limiter, part.time.busy);
  const bool is_last = --table_[whole].parts_under_way == 0;
  if (is_last && watcher_ != nullptr) watcher_->last_part_arrived(index);
  if (faults_ == nullptr || faults_->may_free(index)) table_.give_back(index);
  if (!is_last) return nullptr;
  return all_arrived(whole, part.time.limiter, part.time.busy, part.wire);
}

}  // namespace ringsim
