// The threads of a command.
#pragma once

#include <cstddef>
#include <functional>

namespace ringsim::tools {

/// Calls work(0) ... work(n - 1) on `jobs` threads (0: one per core), in this order, several at a time. After one
/// returned false or threw, no further one begins. Throws what the first to throw threw.
void for_each_index(std::size_t n, int jobs, const std::function<bool(std::size_t)>& work);

}  // namespace ringsim::tools
