// ringsim's own schedule files: JSON, lossless and human-readable.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// Everything that a schedule is, and nothing else:
///
///     {"ringsim_schedule": 1, "name": "ring", "collective": "all_reduce", "placement": "in_place", "ranks": 2,
///      "buffers": {"data": {"chunks": 2}},
///      "steps": [[[["send data[0] to 1", "receive_add data[1] from 1"], ["send data[1] to 1", "receive data[0] from
///      1"]]],
///                [[["send data[1] to 0", "receive_add data[0] from 0"], ["send data[0] to 0", "receive data[1] from
///                0"]]]]}
///
/// `steps` lists actors (ranks, then `helpers`), of each its `lanes`, of each its steps, of each its operations and
/// waits:
///
///     send R to A [channel C]            receive R from A [channel C]         copy R to R        compute N ps
///     receive_add R from A [to R] [channel C]    (to: the sum goes there)     add R to R         after N steps of lane
///     L
///
/// R is a buffer and its chunks, "data[3]" or "input[4..7]". A buffer's `chunks` are near-equal parts of the message;
/// if they are fewer or more than it is cut into, `of` says how many make the message ("scratch": {"chunks": 12,
/// "of": 24}). `sizes` lists their bytes instead, for a message of `bytes`. `placement`: algorithms/promise.hpp. Only
/// if needed: `root`, `both_ways`, `helpers`, `tree` (helpers are switches that join the ranks: the parent of each
/// actor, -1 of the root; a run asks the topology for the same tree), `lanes`, `symmetry` (radices), `protocol`,
/// `min_bytes`, `max_bytes`. Without `collective` and `placement` regions stand for their sizes, and the schedule is
/// proved for matching alone.
std::string export_json(const StoredSchedule& stored);

/// Reads it. `file` stands for the text in errors. Throws InputError (FILE:LINE for syntax, FILE: /pointer for
/// meaning).
StoredSchedule import_json(std::string_view text, const std::string& file);

}  // namespace ringsim
