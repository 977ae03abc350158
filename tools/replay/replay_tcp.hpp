// Replays over TCP, on this machine or on several.
#pragma once

#include "tools/replay/replay_backend.hpp"
#include "validate/replay/tcp/tcp_replay.hpp"

namespace ringsim::tools {

std::unique_ptr<ReplayBackend> make_tcp_backend(const ReplayArguments& arguments);

/// The point as the processes of a replay see it; `point` must outlive it.
replay::TcpReplay tcp_replay_of(const ReplayPoint& point, const replay::TcpOptions& options);

}  // namespace ringsim::tools
