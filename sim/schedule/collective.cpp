#include "sim/schedule/collective.hpp"

#include <algorithm>
#include <initializer_list>

namespace ringsim {

namespace {

Content nothing() { return {}; }
Content of_rank(Actor rank, std::uint32_t chunk) { return {Content::Who::one, rank, chunk}; }
Content of_all(std::uint32_t chunk) { return {Content::Who::all, -1, chunk}; }

// In place: what a rank has, or wants, of a chunk of its data.
using Promise = Content(Actor, Buffer, std::uint32_t);
Content own_data(Actor rank, Buffer buffer, std::uint32_t chunk) {
  return buffer == Buffer::data ? of_rank(rank, chunk) : nothing();
}
Content own_chunk(Actor rank, Buffer buffer, std::uint32_t chunk) {
  return buffer == Buffer::data && chunk == static_cast<std::uint32_t>(rank) ? of_rank(rank, chunk) : nothing();
}
Content sum(Actor, Buffer buffer, std::uint32_t chunk) { return buffer == Buffer::data ? of_all(chunk) : nothing(); }
Content own_chunk_of_sum(Actor rank, Buffer buffer, std::uint32_t chunk) {
  return buffer == Buffer::data && chunk == static_cast<std::uint32_t>(rank) ? of_all(chunk) : nothing();
}
Content everybodys_chunk(Actor, Buffer buffer, std::uint32_t chunk) {
  return buffer == Buffer::data ? of_rank(static_cast<Actor>(chunk), chunk) : nothing();
}

bool is_one_of(std::initializer_list<Promise*> promises, const std::function<Promise>& promise) {
  Promise* const* function = promise.target<Promise*>();
  return function != nullptr && std::find(promises.begin(), promises.end(), *function) != promises.end();
}
bool is_alike(const std::function<Promise>& promise) {
  return is_one_of({own_data, own_chunk, sum, own_chunk_of_sum, everybodys_chunk}, promise);
}

}  // namespace

Collective all_reduce(int ranks, Bytes bytes) {
  Collective c{.op = CollectiveOp::all_reduce, .ranks = ranks, .bytes = bytes};
  c.before = own_data;
  c.after = sum;
  return c;
}

Collective reduce_scatter(int ranks, Bytes bytes) {
  Collective c{.op = CollectiveOp::reduce_scatter, .ranks = ranks, .bytes = bytes};
  c.before = own_data;
  c.after = own_chunk_of_sum;
  return c;
}

Collective all_gather(int ranks, Bytes bytes) {
  Collective c{.op = CollectiveOp::all_gather, .ranks = ranks, .bytes = bytes};
  c.before = own_chunk;
  c.after = everybodys_chunk;
  return c;
}

bool promises_are_alike(const Collective& collective) {
  return is_alike(collective.before) && is_alike(collective.after);
}

bool promises_know_no_chunk(const Collective& collective) {
  return is_one_of({own_data, sum}, collective.before) && is_one_of({own_data, sum}, collective.after);
}

Collective broadcast(int ranks, Bytes bytes, Actor root) {
  Collective c{.op = CollectiveOp::broadcast, .ranks = ranks, .bytes = bytes, .root = root};
  c.before = [root](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data && rank == root ? of_rank(root, chunk) : nothing();
  };
  c.after = [root](Actor, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data ? of_rank(root, chunk) : nothing();
  };
  return c;
}

Collective all_to_all(int ranks, Bytes bytes) {
  Collective c{.op = CollectiveOp::all_to_all, .ranks = ranks, .bytes = bytes};
  c.before = [](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::input ? of_rank(rank, chunk) : nothing();
  };
  c.after = [ranks](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::output ? of_rank(wrap(rank - static_cast<Actor>(chunk), ranks), chunk) : nothing();
  };
  return c;
}

Collective pairs(int ranks, Bytes bytes, bool both_ways) {
  Collective c{.op = CollectiveOp::pairs, .ranks = ranks, .bytes = bytes};
  c.before = [](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::input ? of_rank(rank, chunk) : nothing();
  };
  c.after = [half = ranks / 2, both_ways](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer != Buffer::output) return nothing();
    if (rank >= half) return of_rank(rank - half, chunk);
    return both_ways ? of_rank(rank + half, chunk) : nothing();
  };
  return c;
}

// ----------------------------------------------------------------------- what has a root, or more than a chunk a rank

namespace {

Actor block_of(std::uint32_t chunk, int pieces) { return static_cast<Actor>(chunk / static_cast<unsigned>(pieces)); }

}  // namespace

Collective reduce_scatter_in_pieces(int ranks, Bytes bytes, int pieces) {
  Collective c = reduce_scatter(ranks, bytes);
  c.after = [pieces](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data && block_of(chunk, pieces) == rank ? of_all(chunk) : nothing();
  };
  return c;
}

Collective all_gather_in_pieces(int ranks, Bytes bytes, int pieces) {
  Collective c = all_gather(ranks, bytes);
  c.before = [pieces](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data && block_of(chunk, pieces) == rank ? of_rank(rank, chunk) : nothing();
  };
  c.after = [pieces](Actor, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data ? of_rank(block_of(chunk, pieces), chunk) : nothing();
  };
  return c;
}

Collective reduce(int ranks, Bytes bytes, Actor root) {
  Collective c{.op = CollectiveOp::reduce, .ranks = ranks, .bytes = bytes, .root = root};
  c.before = own_data;
  c.after = [root](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data && rank == root ? of_all(chunk) : nothing();
  };
  return c;
}

Collective scatter(int ranks, Bytes bytes, Actor root) {
  Collective c{.op = CollectiveOp::scatter, .ranks = ranks, .bytes = bytes, .root = root};
  c.before = [root](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data && rank == root ? of_rank(root, chunk) : nothing();
  };
  c.after = [ranks, root](Actor rank, Buffer buffer, std::uint32_t chunk) {
    const bool own = static_cast<Actor>(chunk) == wrap(rank - root, ranks);
    return buffer == Buffer::data && own ? of_rank(root, chunk) : nothing();
  };
  return c;
}

Collective gather(int ranks, Bytes bytes, Actor root) {
  Collective c{.op = CollectiveOp::gather, .ranks = ranks, .bytes = bytes, .root = root};
  c.before = [ranks, root](Actor rank, Buffer buffer, std::uint32_t chunk) {
    const bool own = static_cast<Actor>(chunk) == wrap(rank - root, ranks);
    return buffer == Buffer::data && own ? of_rank(rank, chunk) : nothing();
  };
  c.after = [ranks, root](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer != Buffer::data || rank != root) return nothing();
    return of_rank(wrap(root + static_cast<Actor>(chunk), ranks), chunk);
  };
  return c;
}

Collective send_recv(int ranks, Bytes bytes) {
  Collective c{.op = CollectiveOp::send_recv, .ranks = ranks, .bytes = bytes};
  c.before = [](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::input ? of_rank(rank, chunk) : nothing();
  };
  c.after = [ranks](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::output ? of_rank(wrap(rank - 1, ranks), chunk) : nothing();
  };
  return c;
}

Collective barrier(int ranks) {
  Collective c = all_reduce(ranks, Bytes{0});
  c.op = CollectiveOp::barrier;
  return c;
}

Collective barrier_of_tokens(int ranks) {
  Collective c{.op = CollectiveOp::barrier, .ranks = ranks, .bytes = Bytes{0}};
  c.before = [](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data && chunk == 0 ? of_rank(rank, 0) : nothing();
  };
  c.after = [ranks](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data ? of_rank(wrap(rank - static_cast<Actor>(chunk), ranks), 0) : nothing();
  };
  return c;
}

}  // namespace ringsim
