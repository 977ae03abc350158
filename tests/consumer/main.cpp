// 1 GiB over a 10 GB/s link: 2^30 B / 10^10 B/s = 0.1073741824 s.
#include <iostream>

#include "sim/base/units.hpp"

int main() {
  using namespace ringsim;
  std::cout << transfer_time(Bytes{1LL << 30}, Bandwidth{10'000'000'000}).count() << " ps\n";
}
