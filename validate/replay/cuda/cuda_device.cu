#include "validate/replay/cuda/cuda_device.hpp"

#include <cuda_runtime_api.h>

#include <stdlib.h>  // setenv

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "validate/replay/contribution.hpp"
#include "validate/replay/cuda/kernels.cuh"

namespace ringsim::replay::gpu {

namespace {

Fault fault_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return Fault::none;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return Fault::absent;
    case cudaErrorMemoryAllocation:
      return Fault::memory;
    // After these every call fails until the process ends: "sticky" in CUDA's words.
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
      return Fault::lost;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorIllegalState:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread:
    case cudaErrorCapturedEvent:
      return Fault::misuse;
    default:
      return Fault::other;
  }
}

/// What the CPU adds when its turn in a stream comes.
struct HostAdd {
  Memory to, base, what;
  static void CUDART_CB run(void* self) {
    const auto& add = *static_cast<const HostAdd*>(self);
    for (std::int64_t i = 0; i < add.to.count; ++i) add.to.data[i] = add.base.data[i] + add.what.data[i];
  }
};

class Cuda : public Device, public NativeGpus {
 public:
  /// Finds the GPUs and makes them reach each other's memory if they can.
  Result open(std::optional<int> number) {
    if (Result found = result(cudaGetDeviceCount(&gpus_)); !found.good()) return found;
    if (gpus_ == 0) return {Fault::absent, "CUDA finds no GPU"};
    for (int gpu = 0; gpu < gpus_; ++gpu)
      if (!number || gpu == *number % gpus_) open_.push_back(gpu);
    tallies_.resize(static_cast<std::size_t>(gpus_));
    for (const int gpu : open_) {
      int has = 0;
      const auto count = [&] { return cudaDeviceGetAttribute(&has, cudaDevAttrMultiProcessorCount, gpu); };
      if (Result counted = on(gpu, count); !counted.good()) return counted;
      multiprocessors_ = multiprocessors_ == 0 ? has : std::min(multiprocessors_, has);
      kernels::Tally* tally = nullptr;
      if (Result made = on(gpu, [&] { return cudaMalloc(&tally, sizeof *tally); }); !made.good()) return made;
      tallies_[static_cast<std::size_t>(gpu)] = tally;
      if (Result loaded = on(gpu, kernels::load); !loaded.good()) return loaded;
      for (const int peer : open_) {
        int can = 0;
        if (peer == gpu || cudaDeviceCanAccessPeer(&can, gpu, peer) != cudaSuccess || can == 0) continue;
        // Copies also work without it, by way of the host: what is slow then is measured, not hidden.
        if (cudaDeviceEnablePeerAccess(peer, 0) != cudaSuccess) cudaGetLastError();
      }
    }
    return {};
  }
  ~Cuda() override {
    clear();
    if (!gone_)
      for (const int gpu : open_) cudaFree(tallies_[static_cast<std::size_t>(gpu)]);
  }

  std::string name() const override {
    cudaDeviceProp properties{};
    int driver = 0, runtime = 0;
    const bool known = cudaGetDeviceProperties(&properties, 0) == cudaSuccess;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const auto version = [](int v) { return std::to_string(v / 1000) + '.' + std::to_string(v % 1000 / 10); };
    return (gpus_ > 1 ? std::to_string(gpus_) + " x " : "") + (known ? properties.name : "an unknown GPU") +
           ", driver for CUDA " + version(driver) + ", CUDA " + version(runtime);
  }
  int gpus() const override { return gpus_; }

  void* native(Stream stream) const override { return of(stream).handle; }
  Result choose(int gpu) override {
    return on(gpu, [] { return cudaSuccess; });
  }
  void use(int gpu) const noexcept override { cudaSetDevice(gpu); }
  int multiprocessors() const override { return multiprocessors_; }
  std::function<void()> take_graphs() override {
    drop_capture();
    return [graphs = std::exchange(graphs_, {}), open = open_] {
      if (!graphs.empty()) cudaSetDevice(open.front());
      for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);  // what is running ends first
    };
  }

  Result allocate(Place place, std::int64_t count, Memory& out) override {
    void* data = nullptr;
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    Result made = place == host_memory
                      ? result(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped))
                      : on(place, [&] { return cudaMalloc(&data, bytes); });
    if (!made.good()) return made;
    out = {place, static_cast<float*>(data), count};
    memories_.push_back(out);
    return made;
  }
  Result make_stream(int gpu, Stream& out) override {
    cudaStream_t stream = nullptr;
    Result made = on(gpu, [&] { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); });
    if (!made.good()) return made;
    out = static_cast<Stream>(streams_.size());
    streams_.push_back({stream, gpu});
    return made;
  }
  Result make_event(int gpu, bool timed, Event& out) override {
    cudaEvent_t event = nullptr;
    const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
    Result made = on(gpu, [&] { return cudaEventCreateWithFlags(&event, flags); });
    if (!made.good()) return made;
    out = static_cast<Event>(events_.size());
    events_.push_back(event);
    return made;
  }
  void abandon() noexcept override { gone_ = true; }
  void clear() noexcept override {
    drop_capture();
    if (!gone_) {
      // What is under way, after an error elsewhere, still uses what is freed here.
      for (const int gpu : open_)
        if (cudaSetDevice(gpu) == cudaSuccess) cudaDeviceSynchronize();
      take_graphs()();
      for (cudaEvent_t event : events_) cudaEventDestroy(event);
      for (const OfGpu& stream : streams_) cudaStreamDestroy(stream.handle);
      for (const Memory& memory : memories_)
        memory.place == host_memory ? cudaFreeHost(memory.data) : cudaFree(memory.data);
      cudaGetLastError();
    }
    graphs_.clear();
    events_.clear();
    streams_.clear();
    memories_.clear();
    if (!gone_) host_adds_.clear();
  }

  Result copy(Stream stream, Memory to, Memory from, int blocks) override {
    return on(stream, [&](cudaStream_t s) {
      if (blocks > 0) return kernels::copy(s, to, from, blocks);
      const auto bytes = static_cast<std::size_t>(to.count) * sizeof(float);
      return cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDefault, s);
    });
  }
  Result add(Stream stream, Memory to, Memory base, Memory what) override {
    return on(stream, [&](cudaStream_t s) {
      if (to.place != host_memory) return kernels::add(s, to, base, what);
      host_adds_.push_back({to, base, what});
      return cudaLaunchHostFunc(s, HostAdd::run, &host_adds_.back());
    });
  }
  Result set(Stream stream, Memory to, float value) override {
    return on(stream, [&](cudaStream_t s) { return kernels::set(s, to, value); });
  }
  Result put(Stream stream, Memory to, Numbers numbers) override {
    return on(stream, [&](cudaStream_t s) { return kernels::put(s, to, numbers); });
  }
  Result compute(Stream stream, std::chrono::nanoseconds time) override {
    return on(stream, [&](cudaStream_t s) { return kernels::compute(s, time); });
  }
  Result record(Stream stream, Event event) override {
    return on(stream, [&](cudaStream_t s) { return cudaEventRecord(handle(event), s); });
  }
  Result wait(Stream stream, Event event) override {
    return on(stream, [&](cudaStream_t s) { return cudaStreamWaitEvent(s, handle(event), 0); });
  }

  Result begin_capture(Stream origin) override {
    Result begun =
        on(origin, [](cudaStream_t s) { return cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal); });
    if (begun.good()) capturing_ = origin;
    return begun;
  }
  Result end_capture(Stream origin, Graph& out) override {
    capturing_.reset();
    return on(origin, [&](cudaStream_t s) {
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      if (const cudaError_t error = cudaStreamEndCapture(s, &graph); error != cudaSuccess) return error;
      const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
      cudaGraphDestroy(graph);
      if (error != cudaSuccess) return error;
      out = static_cast<Graph>(graphs_.size());
      graphs_.push_back(executable);
      return cudaGraphUpload(executable, s);
    });
  }
  Result launch(Stream stream, Graph graph) override {
    return on(stream, [&](cudaStream_t s) { return cudaGraphLaunch(graphs_[static_cast<std::size_t>(graph)], s); });
  }

  Result query(Event event, bool& done) override {
    const cudaError_t error = cudaEventQuery(handle(event));
    done = error == cudaSuccess;
    return error == cudaErrorNotReady ? Result{} : result(error);
  }
  Result elapsed(Event from, Event to, std::chrono::nanoseconds& out) override {
    float milliseconds = 0;
    const cudaError_t error = cudaEventElapsedTime(&milliseconds, handle(from), handle(to));
    out = std::chrono::round<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(milliseconds));
    return result(error);
  }
  Result compare(Stream stream, Memory memory, Numbers numbers, Difference& out) override {
    kernels::Tally tally;
    kernels::Tally* there = tallies_[static_cast<std::size_t>(of(stream).gpu)];
    out = {};
    const auto fetch = [&](void* to, const void* from, std::size_t bytes, cudaStream_t s) {
      const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s);
      return error != cudaSuccess ? error : cudaStreamSynchronize(s);
    };
    Result done = on(stream, [&](cudaStream_t s) {
      cudaError_t error = cudaMemcpyAsync(there, &tally, sizeof tally, cudaMemcpyDefault, s);
      if (error == cudaSuccess) error = kernels::compare(s, memory, numbers, there);
      return error != cudaSuccess ? error : fetch(&tally, there, sizeof tally, s);
    });
    if (!done.good() || tally.wrong == 0) return done;
    out.wrong = static_cast<std::int64_t>(tally.wrong);
    out.first = static_cast<std::int64_t>(tally.first);
    for (Actor rank = numbers.first; rank <= numbers.last; ++rank)
      out.expected += contribution(numbers.ranks, rank, numbers.chunk, out.first);
    return on(stream, [&](cudaStream_t s) { return fetch(&out.found, memory.data + out.first, sizeof(float), s); });
  }

 private:
  // Nothing else works in this thread before it ends, and what it has of NCCL is held until then.
  void drop_capture() noexcept {
    if (!capturing_ || gone_) return;
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(of(*std::exchange(capturing_, std::nullopt)).handle, &graph) == cudaSuccess)
      cudaGraphDestroy(graph);
    cudaGetLastError();
  }

  struct OfGpu {
    cudaStream_t handle;
    int gpu;
  };
  const OfGpu& of(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  cudaEvent_t handle(Event event) const { return events_[static_cast<std::size_t>(event)]; }

  Result result(cudaError_t error) {
    if (error == cudaSuccess) return {};
    cudaGetLastError();  // clears it: otherwise the next launch would report it
    const Fault fault = fault_of(error);
    if (fault == Fault::lost) gone_ = true;
    return {fault, std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")"};
  }
  template <class Call>
  Result on(int gpu, Call call) {
    if (gone_) return {Fault::lost, "the GPU was given up before"};
    const cudaError_t error = cudaSetDevice(gpu);
    return result(error != cudaSuccess ? error : call());
  }
  template <class Call>
  Result on(Stream stream, Call call) {
    return on(of(stream).gpu, [&] { return call(of(stream).handle); });
  }

  int gpus_ = 0, multiprocessors_ = 0;
  bool gone_ = false;
  std::optional<Stream> capturing_;
  std::vector<int> open_;                 // the GPUs that are used
  std::vector<kernels::Tally*> tallies_;  // [gpu]
  std::vector<OfGpu> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<cudaGraphExec_t> graphs_;
  std::vector<Memory> memories_;
  std::deque<HostAdd> host_adds_;  // streams and graphs point to them
};

}  // namespace

std::unique_ptr<Device> open_cuda(std::optional<int> number) {
  // Streams that share one of a GPU's hardware queues wait for each other for no reason; a kernel of NCCL's that waits
  // for a peer would hold up what the peer waits for. 8 is what CUDA takes, 32 the most that it has (CUDA C++
  // Programming Guide, "CUDA Environment Variables"). It is read when CUDA starts.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  auto device = std::make_unique<Cuda>();
  require(device->open(number), "looking for GPUs");
  return device;
}

}  // namespace ringsim::replay::gpu
