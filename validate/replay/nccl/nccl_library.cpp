#include "validate/replay/nccl/nccl_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <type_traits>
#include <vector>

#include "sim/base/error.hpp"

namespace ringsim::replay::gpu {

namespace {

EnvironmentError lacking(const std::string& what) {
  return EnvironmentError("loading NCCL: " + what +
                          "\n  hint: install NCCL 2.23 or newer (libnccl2 from NVIDIA's packages), or set "
                          "RINGSIM_NCCL_LIBRARY to a libnccl.so.2");
}

struct Loaded {
  void* handle = nullptr;
  std::string file;
};

Loaded load() {
  std::vector<std::string> files{"libnccl.so.2"};
  if (*RINGSIM_LIBNCCL != '\0') files.emplace_back(RINGSIM_LIBNCCL);
  const char* named = std::getenv("RINGSIM_NCCL_LIBRARY");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (named != nullptr && *named != '\0') files = {named};
  std::string tried;
  for (const std::string& file : files) {
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) return {handle, file};
    const char* why = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(why == nullptr ? file : why);
  }
  throw lacking(tried);
}

// NCCL_VERSION() of nccl.h: from 2.9 on four digits are left of the patch, before three.
std::string in_words(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(version % 100);
}

}  // namespace

NcclLibrary load_nccl() {
  const Loaded loaded = load();
  NcclLibrary nccl;
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(loaded.handle, name));
    if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  find(nccl.get_version, "ncclGetVersion");
  int version = 0;
  if (nccl.get_version == nullptr || nccl.get_version(&version) != ncclSuccess)
    throw lacking(loaded.file + " does not report its version");
  nccl.version = in_words(version);
  if (version < 22300) throw lacking(loaded.file + " is version " + nccl.version);
  find(nccl.error_string, "ncclGetErrorString");
  find(nccl.last_error, "ncclGetLastError");
  find(nccl.unique_id, "ncclGetUniqueId");
  find(nccl.init_rank, "ncclCommInitRankConfig");
  find(nccl.async_error, "ncclCommGetAsyncError");
  find(nccl.destroy, "ncclCommDestroy");
  find(nccl.abort, "ncclCommAbort");
  find(nccl.group_start, "ncclGroupStart");
  find(nccl.group_end, "ncclGroupEnd");
  find(nccl.send, "ncclSend");
  find(nccl.receive, "ncclRecv");
  find(nccl.all_reduce, "ncclAllReduce");
  find(nccl.reduce_scatter, "ncclReduceScatter");
  find(nccl.all_gather, "ncclAllGather");
  find(nccl.broadcast, "ncclBroadcast");
  find(nccl.reduce, "ncclReduce");
  if (!missing.empty()) throw lacking(loaded.file + ", version " + nccl.version + ", has no " + missing);
  return nccl;
}

}  // namespace ringsim::replay::gpu
