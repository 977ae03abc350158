// What the collectives promise, chunk by chunk: the standard definitions of MPI and nccl-tests.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Every rank ends with the sum of all. In place: chunk c of `data`, at any grid of chunks.
Collective all_reduce(int ranks, Bytes bytes);

/// Rank r ends with chunk r of the sum; `bytes` is one rank's whole input. In place; `data` has n chunks.
Collective reduce_scatter(int ranks, Bytes bytes);

/// Rank r starts with chunk r and ends with all; `bytes` is one rank's whole output. In place; `data` has n chunks.
Collective all_gather(int ranks, Bytes bytes);

/// Every rank ends with the root's data. In place, at any grid of chunks.
Collective broadcast(int ranks, Bytes bytes, Actor root);

/// Rank r has a block of its `input` for each rank, and ends with a block from each in its `output`; `bytes` is one
/// rank's whole input, its own block included. Blocks are numbered from the rank itself: block j of the input is for
/// rank r + j, block j of the output from rank r - j. So both ends of a message agree on its size even if n does not
/// divide `bytes`, and all ranks do the same.
Collective all_to_all(int ranks, Bytes bytes);

/// Rank r < n/2 sends its `input` of `bytes` to the `output` of rank r + n/2; both ways: the second half does the same
/// back. n even. (The pairs of OSU's multiple-pair bandwidth test, osu_mbw_mr.)
Collective pairs(int ranks, Bytes bytes, bool both_ways);

/// reduce_scatter and all_gather with finer chunks: `data` has n blocks of `pieces` chunks each, and block r is what
/// chunk r is above.
Collective reduce_scatter_in_pieces(int ranks, Bytes bytes, int pieces);
Collective all_gather_in_pieces(int ranks, Bytes bytes, int pieces);

/// The root ends with the sum of all. In place, at any grid of chunks.
Collective reduce(int ranks, Bytes bytes, Actor root);

/// The root starts with a block for each rank, and each ends with its own; `bytes` is the root's whole buffer. In
/// place; `data` has n chunks. Blocks are numbered from the root: block j is that of rank root + j. So the
/// blocks of a subtree are contiguous for every root (MPICH rotates the buffer for the same reason).
Collective scatter(int ranks, Bytes bytes, Actor root);

/// Each rank starts with its block, and the root ends with all; `bytes` is the root's whole buffer. In place; `data`
/// has n chunks, numbered as in a scatter.
Collective gather(int ranks, Bytes bytes, Actor root);

/// Rank r sends its `input` of `bytes` to the `output` of rank r + 1, the last one to rank 0.
Collective send_recv(int ranks, Bytes bytes);

/// No rank leaves before all have entered, and nothing else: who holds at its end what each rank brought in, has heard
/// of all. In place; `data` has one chunk of no bytes, to which each rank is added once.
Collective barrier(int ranks);

/// A barrier in which news of a rank may come by several ways: a chunk of no bytes for each rank, numbered from the
/// rank that holds it: chunk j of rank r is the token of rank r - j.
Collective barrier_of_tokens(int ranks);

/// True if every rank is promised the same, seen from itself, where each rank has one chunk of its number: for every
/// permutation s, rank s(r) is promised of chunk s(c) what rank r is of c, with the ranks and chunks that it names
/// permuted as well. So with a added to both, rank a is promised of chunk a + c what rank 0 is of c. True of the
/// definitions above whose chunks are the ranks' (all_reduce, reduce_scatter, all_gather) while nobody has put other
/// functions in their place: these only compare a rank with a chunk, and name one of the two. False: not known. It
/// saves the proof n^2 questions.
bool promises_are_alike(const Collective& collective);

/// True if in addition no chunk belongs to a rank, so that ranks may be renamed and chunks not: each rank has all of
/// its data, and wants all of the sum (all_reduce).
bool promises_know_no_chunk(const Collective& collective);

}  // namespace ringsim
