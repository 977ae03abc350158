#include "sim/run/link_faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

bool is_through(const Staged& staged, std::uint32_t leg) { return staged.legs[leg].left == staged.n_pieces; }

}  // namespace

LinkFaults::LinkFaults(const Topology& topology, const RunOptions& options, int n_ranks, Engine<Event>& engine,
                       Transfers& transfers)
    : topology_(topology),
      options_(options),
      n_ranks_(n_ranks),
      engine_(engine),
      transfers_(transfers),
      states_(topology, options.disturbance.links) {
  transfers.use_faults(*this);
  if (!takes_back(options.model))
    for (const LinkChange& change : options.disturbance.links)
      if (change.to == LinkChange::To::down)
        throw InputError(
            "",
            fmt::format("links that go down cannot be combined with the network model {}", to_string(options.model)),
            "packets cannot be removed from the buffers that they wait in: use the model fair");
}

void LinkFaults::begin() {
  for (const SimTime instant : states_.instants()) {
    if (instant == SimTime{})
      change_links();
    else
      engine_.at(instant, {Event::Kind::link_change, 0, 0});
  }
}

bool LinkFaults::change_links() {
  const LinkStates::Applied applied = states_.advance();
  for (const auto& [resource, bandwidth] : applied.rates) transfers_.network().set_bandwidth(resource, bandwidth);
  if (applied.routes_changed) {
    detours_ = std::make_unique<PlannedRoutes>(topology_, options_, states_.down());
    transfers_.ways().forget();
    if (!applied.gone.empty()) give_up_ways(applied.gone);
    for (const std::uint32_t transfer : std::exchange(stranded_, {})) set_out(transfer);
  }
  // Restored and down again at one instant: no link has changed, but the last restoring may have gone by.
  expect_a_way_some_day();
  return applied.routes_changed;
}

std::vector<Path> LinkFaults::find_parts(NodeId from, NodeId to, std::uint32_t label) {
  try {
    return detours_->find_parts(from, to, label);
  } catch (const InputError&) {
    transfers_.undisturbed_routes().find_parts(from, to, label);  // throws if links that are down are not the reason
    return {};
  }
}

void LinkFaults::strand(std::uint32_t transfer) {
  stranded_.push_back(transfer);
  if (!states_.some_come_back()) fail_stranded();
}

void LinkFaults::set_out(std::uint32_t transfer) {
  if (find_way(transfer)) transfers_.set_out(transfer);
}

void LinkFaults::posted(std::uint32_t transfer) {
  if (find_way(transfer)) transfers_.go_posted(transfer);
  expect_a_way_some_day();
}

bool LinkFaults::swallows(std::uint32_t transfer, std::uint32_t leg) {
  const auto found = given_up_.find(transfer);
  if (found == given_up_.end()) return false;
  if (leg + 1 == transfers_.ways()[transfers_[transfer].route].n_legs) return false;
  if (--found->second.on_their_way > 0) return true;
  const bool over = found->second.is_over;
  given_up_.erase(found);
  if (over) transfers_.drop(transfer);
  return true;
}

bool LinkFaults::may_free(std::uint32_t part) {
  const auto found = given_up_.find(part);
  if (found == given_up_.end()) return true;
  found->second.is_over = true;
  return false;
}

void LinkFaults::expect_a_way_some_day() {
  if (!stranded_.empty() && !states_.some_come_back()) fail_stranded();
}

/// False if there is none: it waits for one.
bool LinkFaults::find_way(std::uint32_t transfer) {
  transfers_[transfer].route = route(ends(transfer));
  const bool is_stranded = transfers_.ways()[transfers_[transfer].route].n_parts == nowhere;
  if (is_stranded) stranded_.push_back(transfer);
  return !is_stranded;
}

std::uint32_t LinkFaults::route(const Ends& ends) {
  const std::uint32_t found = transfers_.route(ends.from, ends.to, ends.channel);
  if (ends.from < transfers_.background_sender(0)) return found;
  const std::uint32_t n_parts = transfers_.ways()[found].n_parts;
  for (std::uint32_t part = 0; part <= (n_parts == nowhere ? 0 : n_parts); ++part)
    background_routes_.insert(found + part);
  return found;
}

LinkFaults::Ends LinkFaults::ends(std::uint32_t transfer) const {
  const Transfer* message = &transfers_[transfer];
  while (message->whole < first_background) message = &transfers_[message->whole];
  if (message->whole < no_transfer) {
    const Actor sender = transfers_.background_sender(message->whole - first_background);
    return {sender, sender + 1, 0};
  }
  const std::uint64_t key = transfers_.ways()[message->route].key;
  return {CompiledRoutes::sender_of(key), CompiledRoutes::receiver_of(key), message->channel};
}

void LinkFaults::give_up_ways(const std::vector<LinkId>& gone) {
  std::vector<bool> is_gone(topology_.n_links(), false);
  for (const LinkId link : gone) is_gone[link.value] = true;
  std::vector<std::uint32_t> hit = hit_by(is_gone);
  Taken taken = withdraw(pieces_of(hit, [&](std::uint32_t leg) { return crosses(leg, is_gone); }));
  for (const std::uint32_t index : std::exchange(hit, {})) {
    const std::uint32_t n_legs = transfers_.ways()[transfers_[index].route].n_legs;
    if (n_legs == 1) {
      const auto found = taken.find(piece_of(index, 0));
      if (found != taken.end()) give_up(index, found->second);  // else all of it has left before
      continue;
    }
    for (std::uint32_t leg = 0; leg < n_legs; ++leg) note_if_left(index, leg, taken);
    if (leads_over(index, is_gone)) hit.push_back(index);
  }
  // Staged data that is to come over a link that is gone: it is given up on the other legs as well.
  Taken others = withdraw(pieces_of(hit, [](std::uint32_t) { return true; }));
  for (const std::uint32_t index : hit) {
    const std::uint32_t n_legs = transfers_.ways()[transfers_[index].route].n_legs;
    for (std::uint32_t leg = 0; leg < n_legs; ++leg) note_if_left(index, leg, others);
  }
  taken.merge(others);
  // Messages of a connection stay in order on their new way as well.
  const auto number = [&](std::uint32_t index) { return transfers_.staged().of(index).number; };
  std::sort(hit.begin(), hit.end(), [&](std::uint32_t a, std::uint32_t b) { return number(a) < number(b); });
  for (const std::uint32_t index : hit) give_up_staged(index, taken);
}

// The transfers that are still to cross one of the links; of one in parts, its parts.
std::vector<std::uint32_t> LinkFaults::hit_by(const std::vector<bool>& links) const {
  std::vector<bool> is_free(transfers_.table().size(), false);
  for (const std::uint32_t index : transfers_.table().free()) is_free[index] = true;
  for (const auto& [index, left] : given_up_) is_free[index] = true;
  for (const std::uint32_t index : stranded_) is_free[index] = true;
  std::vector<std::uint32_t> hit;
  for (std::uint32_t index = 0; index < transfers_.table().size(); ++index)
    if (!is_free[index] && transfers_[index].parts_under_way == 0 && leads_over(index, links)) hit.push_back(index);
  return hit;
}

// The pieces of the transfers, on the legs (in CompiledRoutes) that `counts` says.
std::vector<std::uint64_t> LinkFaults::pieces_of(const std::vector<std::uint32_t>& transfers,
                                                 const std::function<bool(std::uint32_t leg)>& counts) const {
  std::vector<std::uint64_t> pieces;
  for (const std::uint32_t index : transfers) {
    const Route& way = transfers_.ways()[transfers_[index].route];
    for (std::uint32_t leg = 0; leg < way.n_legs; ++leg)
      if (counts(way.first + leg)) pieces.push_back(piece_of(index, leg));
  }
  return pieces;
}

LinkFaults::Taken LinkFaults::withdraw(std::vector<std::uint64_t> pieces) {
  std::sort(pieces.begin(), pieces.end());
  Taken taken;
  if (!pieces.empty())
    for (const Network::Withdrawn& each : transfers_.network().withdraw(pieces)) taken[each.piece] = each;
  return taken;
}

// A piece of a staged message that leaves at this very instant.
void LinkFaults::note_if_left(std::uint32_t index, std::uint32_t leg, const Taken& taken) {
  const auto found = taken.find(piece_of(index, leg));
  if (found == taken.end() || found->second.rest.count > 0) return;
  transfers_.staged().note_left(index, leg, found->second.limiter);
}

bool LinkFaults::crosses(std::uint32_t leg, const std::vector<bool>& links) const {
  const auto all = transfers_.ways().links(transfers_.ways().leg(leg));
  return std::any_of(all.begin(), all.end(), [&](LinkId link) { return links[link.value]; });
}

// True if anything of the transfer is still to cross one of these links.
bool LinkFaults::leads_over(std::uint32_t index, const std::vector<bool>& links) const {
  const auto& transfer = transfers_[index];
  const auto& way = transfers_.ways()[transfer.route];
  if (way.n_legs > 1 && transfer.staged == not_staged) return false;  // it lies in slots, and waits for its receive
  for (std::uint32_t leg = 0; leg < way.n_legs; ++leg) {
    if (way.n_legs > 1 && is_through(transfers_.staged().of(index), leg)) continue;
    if (crosses(way.first + leg, links)) return true;
  }
  return false;
}

// Bytes already sent keep the number; the message and its rest get new ones.
void LinkFaults::give_up(std::uint32_t index, const Network::Withdrawn& taken) {
  if (taken.rest == transfers_[index].size) {
    carried_less(transfers_[index].route, taken.rest);
    return set_out(index);
  }
  if (taken.rest.count > 0) set_out(split(index, taken.rest));
}

// The pieces that have left on the last leg arrive; all others are given up.
void LinkFaults::give_up_staged(std::uint32_t index, const Taken& taken) {
  const auto& transfer = transfers_[index];
  const std::int64_t slot = options_.plan(transfer.channel).transport.staging.size.count;
  const auto& way = transfers_.ways()[transfer.route];
  const std::uint32_t last = way.n_legs - 1;
  const Staged& staged = transfers_.staged().of(index);
  const std::int64_t kept = staged.legs[last].left;  // not all pieces, so that these are whole slots
  for (std::uint32_t leg = 0; leg <= last; ++leg) {
    std::int64_t sent = std::min(staged.legs[leg].started * slot, transfer.size.count);
    if (const auto found = taken.find(piece_of(index, leg)); found != taken.end()) sent -= found->second.rest.count;
    transfers_.ways().crossed_beyond(way.first + leg, sent - kept * slot);
  }
  const std::uint32_t on_their_way = transfers_.staged().keep_what_left(index);
  const bool over = staged.legs[last].arrived == kept;
  const std::uint32_t other = split(index, Bytes{transfer.size.count - kept * slot});  // moves the transfers
  if (over) --transfers_[transfers_[index].whole].parts_under_way;
  if (on_their_way > 0)
    given_up_[index] = {on_their_way, over};
  else if (over)
    transfers_.drop(index);
  set_out(other);
}

void LinkFaults::carried_less(std::uint32_t route, Bytes by) {
  Bytes& carried = transfers_.ways()[route].carried;
  carried = carried - by;
}

// The transfer becomes a part of a new one that takes its place; so does the rest, whose number is returned.
std::uint32_t LinkFaults::split(std::uint32_t index, Bytes rest) {
  const std::uint32_t whole = transfers_.table().make(), other = transfers_.table().make();
  auto& old = transfers_[index];
  auto& message = transfers_[whole];
  message = old;
  message.staged = not_staged;
  message.parts_under_way = 2;
  carried_less(old.route, rest);
  old.size = old.size - rest;
  old.whole = whole;
  old.marks.starts_apart = false;  // the message has it now
  auto& made = transfers_[other];
  made = {};
  made.sender = old.sender;
  made.receiver = old.receiver;
  made.channel = old.channel;
  made.start = old.start;  // so that the time until now counts to the link that sets its speed in the end
  made.whole = whole;
  made.size = rest;
  transfers_.goes_on_as(index, whole);
  return other;
}

void LinkFaults::fail_stranded() {
  std::set<std::pair<Actor, Actor>> flows;
  std::set<std::string> links;
  for (const std::uint32_t index : stranded_) {
    const auto [from, to, channel] = ends(index);
    flows.insert({from, to});
    for (const Path& path : transfers_.undisturbed_routes().find_parts(transfers_.node_of(from), transfers_.node_of(to),
                                                                       transfers_.ways().label(from, to, channel)))
      for (const Leg& leg : path.legs)
        for (const LinkId link : leg.links)
          if (states_.down()[link.value]) links.insert(topology_.link_name(link));
  }
  const auto name = [&](Actor actor) {
    const std::string& device = topology_.node(transfers_.node_of(actor)).name;
    return actor < n_ranks_ ? fmt::format("rank {} ({})", actor, device) : device;
  };
  std::vector<std::string> pairs;
  for (const auto& [from, to] : flows) pairs.push_back(fmt::format("{} -> {}", name(from), name(to)));
  if (links.empty())  // the way of old is one of several that would have been taken in turn
    for (std::uint32_t l = 0; l < states_.down().size(); ++l)
      if (states_.down()[l]) links.insert(topology_.link_name({l}));
  const auto few = [](auto names) {
    std::vector<std::string> all(names.begin(), names.end());
    const std::size_t n = all.size();
    if (n > 4) all.resize(3);
    return fmt::format("{}{}", fmt::join(all, ", "), n > 4 ? fmt::format(" and {} more", n - 3) : "");
  };
  throw StrandedError("",
                      fmt::format("no path is left at {} us for {}: permanently down {} {}",
                                  microseconds(engine_.now().time_since_epoch()), few(pairs),
                                  links.size() == 1 ? "is" : "are", few(links)),
                      "restore the link, so that messages wait for it, or add another path to the topology");
}

}  // namespace ringsim
