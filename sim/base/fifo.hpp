// First in, first out, with access by place.
#pragma once

#include <cstddef>
#include <vector>

namespace ringsim {

/// As std::deque, but an empty one takes no memory: a run has millions of them.
template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  std::size_t size() const { return items_.size() - first_; }
  T& operator[](std::size_t i) { return items_[first_ + i]; }
  T& front() { return items_[first_]; }
  void push_back(const T& item) { items_.push_back(item); }
  /// Linear in what is left, but only once per that many.
  void pop_front() {
    if (2 * ++first_ < items_.size()) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

}  // namespace ringsim
