#include "sim/schedule/schedule.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

std::string_view to_string(Buffer buffer) {
  switch (buffer) {
    case Buffer::data:
      return "data";
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::scratch:
      return "scratch";
  }
  fail_invariant("a buffer has one of four names");
}

std::string_view to_string(Do what) {
  switch (what) {
    case Do::send:
      return "send";
    case Do::receive:
      return "receive";
    case Do::receive_add:
      return "receive_add";
    case Do::copy:
      return "copy";
    case Do::add:
      return "add";
    case Do::compute:
      return "compute";
  }
  fail_invariant("an operation has one of six names");
}

std::string to_string(const Region& region) {
  if (region.count == 1) return fmt::format("{}[{}]", to_string(region.buffer), region.first);
  if (region.count == 0) return fmt::format("{}[]", to_string(region.buffer));
  return fmt::format("{}[{}..{}]", to_string(region.buffer), region.first,
                     static_cast<std::uint64_t>(region.first) + region.count - 1);
}

std::string_view to_string(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return "all_reduce";
    case CollectiveOp::reduce_scatter:
      return "reduce_scatter";
    case CollectiveOp::all_gather:
      return "all_gather";
    case CollectiveOp::broadcast:
      return "broadcast";
    case CollectiveOp::all_to_all:
      return "all_to_all";
    case CollectiveOp::pairs:
      return "pairs";
    case CollectiveOp::reduce:
      return "reduce";
    case CollectiveOp::scatter:
      return "scatter";
    case CollectiveOp::gather:
      return "gather";
    case CollectiveOp::send_recv:
      return "send_recv";
    case CollectiveOp::barrier:
      return "barrier";
  }
  fail_invariant("a collective has one of eleven names");
}

std::span<const CollectiveOp> collective_ops() {
  using enum CollectiveOp;
  static constexpr CollectiveOp all[] = {all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, pairs,
                                         reduce,     scatter,        gather,     send_recv, barrier};
  return all;
}

bool has_root(CollectiveOp op) {
  return op == CollectiveOp::broadcast || op == CollectiveOp::reduce || op == CollectiveOp::scatter ||
         op == CollectiveOp::gather;
}

bool is_point_to_point(CollectiveOp op) {
  return op == CollectiveOp::all_to_all || op == CollectiveOp::pairs || op == CollectiveOp::scatter ||
         op == CollectiveOp::gather || op == CollectiveOp::send_recv;
}

double busbw_factor(CollectiveOp op, int ranks) {
  if (ranks < 2) return 0.0;
  const double n = ranks;
  switch (op) {
    case CollectiveOp::all_reduce:
      return 2.0 * (n - 1.0) / n;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather:
    case CollectiveOp::all_to_all:
    case CollectiveOp::scatter:
    case CollectiveOp::gather:
      return (n - 1.0) / n;
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
    case CollectiveOp::send_recv:
    case CollectiveOp::pairs:
      return 1.0;
    case CollectiveOp::barrier:
      return 0.0;
  }
  fail_invariant("a collective has one of eleven names");
}

Layout Layout::near_equal(Bytes size, int n) {
  ensure(size.count >= 0 && n >= 0, "a layout has a size and a count of chunks, neither negative");
  Layout layout;
  if (n == 0) return layout;
  // floor(i size/n) = i q + floor(i r/n) with size = q n + r: never leaves 64 bits, since r < n < 2^31.
  const std::int64_t q = size.count / n;
  const std::int64_t r = size.count % n;
  layout.offsets_.reserve(static_cast<std::size_t>(n) + 1);
  for (std::int64_t i = 1; i <= n; ++i) layout.offsets_.push_back(i * q + i * r / n);
  return layout;
}

Layout Layout::of_sizes(const std::vector<Bytes>& sizes) {
  Layout layout;
  for (const Bytes size : sizes) {
    ensure(size.count >= 0, "a chunk has no negative size");
    layout.offsets_.push_back((Bytes{layout.offsets_.back()} + size).count);
  }
  return layout;
}

Layout Layout::times(int n) const {
  Layout layout = *this;
  if (parts_ == 0) {
    for (std::int64_t& offset : layout.offsets_) offset = (Bytes{offset} * n).count;
    return layout;
  }
  if (__builtin_mul_overflow(times_, n, &layout.times_)) fail_too_many_bytes();
  (void)(Bytes{uncut(n_)} * layout.times_);  // throws if the whole is too large; no offset is larger
  if (each_ >= 0) layout.each_ = each_ * n;
  return layout;
}

Layout Layout::two_level(Bytes size, int n, int parts) {
  ensure(size.count >= 0 && n > 0 && parts > 0, "stretches of a buffer have a size, and there are some");
  Layout layout;
  layout.offsets_.clear();
  layout.size_ = size.count;
  layout.set_parts(n, parts);
  return layout;
}

Layout Layout::cut(int parts) const {
  ensure(parts > 0 && parts_ == 0, "a layout is cut once, into one part or more");
  Layout layout = *this;
  layout.set_parts(n_chunks(), parts);
  return layout;
}

void Layout::set_parts(int n, int parts) {
  const bool is_uniform = offsets_.empty() ? size_ % n == 0 : has_equal_offsets();
  n_ = n;
  parts_ = parts;
  const std::int64_t first = n_ > 0 ? uncut(1) : 0;
  if (is_uniform && first % parts_ == 0) each_ = first / parts_;
}

std::int64_t Layout::offset(std::uint32_t chunk) const {
  const std::int64_t whole = chunk / static_cast<std::uint32_t>(parts_);
  const std::int64_t part = chunk % static_cast<std::uint32_t>(parts_);
  const std::int64_t first = uncut(whole);
  if (part == 0) return times_ * first;
  const std::int64_t size = uncut(whole + 1) - first;
  return times_ * (first + part * (size / parts_) + part * (size % parts_) / parts_);
}

bool Layout::has_equal_offsets() const {
  for (std::size_t i = 2; i < offsets_.size(); ++i)
    if (offsets_[i] - offsets_[i - 1] != offsets_[1]) return false;
  return true;
}

Symmetry::Symmetry(std::vector<int> radices, int group) : radices_(std::move(radices)), group_(group) {
  order_ = 1;
  binary_ = true;
  for (const int radix : radices_) {
    ensure(radix > 0, "a radix is at least 1");
    order_ *= radix;
    binary_ = binary_ && radix == 2;
  }
  ensure(group_ > 0 && order_ % group_ == 0, "actors are parted into equal groups");
}

namespace {
// Applies `combine` to the digits of a and b.
template <class Combine>
int by_digits(const std::vector<int>& radices, int a, int b, Combine combine) {
  int result = 0;
  int weight = 1;
  for (auto radix = radices.rbegin(); radix != radices.rend(); ++radix) {
    result += weight * combine(a % *radix, b % *radix, *radix);
    a /= *radix;
    b /= *radix;
    weight *= *radix;
  }
  return result;
}
int add_digit(int x, int y, int radix) { return x + y < radix ? x + y : x + y - radix; }
int subtract_digit(int x, int y, int radix) { return x >= y ? x - y : x - y + radix; }
}  // namespace

int Symmetry::add_digits(int a, int b) const { return by_digits(radices_, a, b, add_digit); }
int Symmetry::subtract_digits(int a, int b) const { return by_digits(radices_, a, b, subtract_digit); }

Schedule stretched(Schedule schedule, int element) {
  schedule.collective.bytes = schedule.collective.bytes * element;
  for (Layout& layout : schedule.layout) layout = layout.times(element);
  return schedule;
}

}  // namespace ringsim
