// What a replay needs of the GPUs of a host. One interface: CUDA implements it, and in tests a fake that runs what it
// is given in random legal orders.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/ids.hpp"

namespace ringsim::replay::gpu {

/// The place of memory: a GPU by number, or the host's (pinned, so that GPUs copy from and to it).
using Place = int;
inline constexpr Place host_memory = -1;

/// Numbers of what a device made; they do not mix.
enum class Stream : std::uint32_t {};
enum class Event : std::uint32_t {};
enum class Graph : std::uint32_t {};

/// Whose fault it is when a call fails.
enum class Fault : std::uint8_t {
  none,
  absent,  ///< no driver, no GPU, or one that this build has no code for
  memory,  ///< out of memory, of a GPU's or of what the host can pin
  lost,    ///< a GPU that fell off, or that an earlier failure left unusable: nothing works on it any more
  misuse,  ///< a call that can never work: our mistake
  other,   ///< whatever else a driver says
};

struct [[nodiscard]] Result {
  Fault fault = Fault::none;
  std::string said;  ///< the driver's words
  bool good() const { return fault == Fault::none; }
};

/// Throws what the fault asks for, if there is one: EnvironmentError with `doing` ("allocating 1 GiB on GPU 0") and
/// what to do about it; InvariantError for misuse.
void require(const Result& result, std::string_view doing);

/// float32 elements in one place.
struct Memory {
  Place place = host_memory;
  float* data = nullptr;
  std::int64_t count = 0;
};

/// contribution() of one rank, or the sum over ranks first to last, for elements 0 to n of a chunk.
struct Numbers {
  int ranks = 0;
  Actor first = 0, last = 0;
  std::uint32_t chunk = 0;
};

/// How memory differs from what it should hold, bit by bit.
struct Difference {
  std::int64_t wrong = 0;  ///< elements
  std::int64_t first = 0;  ///< the first of them
  float expected = 0, found = 0;
};

/// What is issued to a stream is done in order; streams do not wait for each other but at events. Everything from
/// copy() to launch() is issued and returns at once; its failure may come from any later call. One thread calls.
class Device {
 public:
  virtual ~Device() = default;

  /// "NVIDIA H200, driver 580.82, CUDA 13.0": what results say they were measured on.
  virtual std::string name() const = 0;
  virtual int gpus() const = 0;

  /// All lives until clear().
  virtual Result allocate(Place place, std::int64_t count, Memory& out) = 0;
  virtual Result make_stream(int gpu, Stream& out) = 0;
  /// For streams of that GPU; others may wait for it. `timed`: elapsed() is asked of it.
  virtual Result make_event(int gpu, bool timed, Event& out) = 0;
  /// Frees memory, streams, events and graphs. After a GPU was lost, or work that never ended, it lets go of them
  /// without a word to the driver, which might not come back.
  virtual void clear() noexcept = 0;
  /// From now on clear() does not touch the driver.
  virtual void abandon() noexcept = 0;

  /// to = from, of equal counts. `blocks`: by a kernel of that many thread blocks; 0: by a copy engine, or however the
  /// driver sees fit.
  virtual Result copy(Stream stream, Memory to, Memory from, int blocks) = 0;
  /// to = base + what, all three on the stream's GPU, or all in host memory, if a CPU thread adds.
  virtual Result add(Stream stream, Memory to, Memory base, Memory what) = 0;
  virtual Result set(Stream stream, Memory to, float value) = 0;
  /// Puts the sum of contributions in. For one rank: first = last.
  virtual Result put(Stream stream, Memory to, Numbers numbers) = 0;
  /// Keeps the stream busy that long.
  virtual Result compute(Stream stream, std::chrono::nanoseconds time) = 0;
  virtual Result record(Stream stream, Event event) = 0;
  /// For the event's last record() so far; if there was none, for nothing.
  virtual Result wait(Stream stream, Event event) = 0;

  /// What is issued from here on to `origin`, and to streams that wait for it, is kept instead of run. Such streams
  /// must have been waited for by `origin` when it ends.
  virtual Result begin_capture(Stream origin) = 0;
  virtual Result end_capture(Stream origin, Graph& out) = 0;
  virtual Result launch(Stream stream, Graph graph) = 0;

  /// Has everything before the event's last record() been done? Does not wait.
  virtual Result query(Event event, bool& done) = 0;
  /// Between two timed events that are done.
  virtual Result elapsed(Event from, Event to, std::chrono::nanoseconds& out) = 0;
  /// Holds the memory against the sum of contributions, on the stream. Waits for it.
  virtual Result compare(Stream stream, Memory memory, Numbers numbers, Difference& out) = 0;
};

/// What was made on a device goes when this does.
struct Cleared {
  explicit Cleared(Device& d) : device(d) {}
  Cleared(const Cleared&) = delete;
  Cleared& operator=(const Cleared&) = delete;
  ~Cleared() { device.clear(); }
  Device& device;
};

}  // namespace ringsim::replay::gpu
