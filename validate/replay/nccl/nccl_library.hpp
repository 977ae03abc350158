// libnccl, found while ringsim runs: it starts, and does all else, if there is none.
#pragma once

#include <nccl.h>

#include <string>

namespace ringsim::replay::gpu {

/// Its functions, with the types that nccl.h gives them. Another version of the library than of the header will do: it
/// takes of ncclConfig_t what it knows (parseCommConfig() in NVIDIA/nccl, src/init.cc).
struct NcclLibrary {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetLastError) last_error = nullptr;
  decltype(&::ncclGetUniqueId) unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclReduce) reduce = nullptr;

  std::string version;  ///< "2.28.9"
};

/// RINGSIM_NCCL_LIBRARY if it is set; else libnccl.so.2 wherever the loader finds it; else the one that the build
/// found. It stays loaded: its threads may outlive whoever asked for it.
///
/// It must be 2.23 or newer: before, the end of a group may wait for peers by itself, without end (groupLaunch()
/// outside of a thread in ncclGroupEndInternal(), src/group.cc); and before 2.19 what is in progress on a communicator
/// can be given up only by the thread that began it (ncclCommEnsureReady() in src/init.cc).
///
/// Throws EnvironmentError with all that was tried.
NcclLibrary load_nccl();

}  // namespace ringsim::replay::gpu
