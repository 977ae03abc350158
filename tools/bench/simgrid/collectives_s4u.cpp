// The collectives of side_by_side.py for SimGrid's S4U: actors that send to each other's mailboxes. A message starts
// when both of its ends have been posted and is done when it has arrived, as under ringsim's protocol `none`.
//
//   collectives_s4u PLATFORM HOSTFILE ring|all_to_all BYTES [--cfg=...]
//
// Rank r sits on the r-th host of the file. Prints the simulated seconds.
#include <cstdio>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

int token;  // what is sent: nobody looks at it

void ring(int rank, int n, std::uint64_t chunk) {
  sg4::Mailbox* const next = sg4::Mailbox::by_name(std::to_string((rank + 1) % n));
  sg4::Mailbox* const mine = sg4::Mailbox::by_name(std::to_string(rank));
  for (int step = 0; step < 2 * (n - 1); ++step) {
    void* got = nullptr;
    const sg4::CommPtr out = next->put_async(&token, chunk);
    const sg4::CommPtr in = mine->get_async<void>(&got);
    in->wait();
    out->wait();
  }
}

// All at once. Messages of a mailbox are alike, so that it does not matter which receive meets which send.
void all_to_all(int rank, int n, std::uint64_t block) {
  sg4::Mailbox* const mine = sg4::Mailbox::by_name(std::to_string(rank));
  std::vector<void*> got(static_cast<std::size_t>(n));
  std::vector<sg4::CommPtr> open;
  for (int j = 1; j < n; ++j) {
    open.push_back(sg4::Mailbox::by_name(std::to_string((rank + j) % n))->put_async(&token, block));
    open.push_back(mine->get_async<void>(&got[static_cast<std::size_t>(j)]));
  }
  for (const sg4::CommPtr& comm : open) comm->wait();
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  if (argc != 5) {
    std::fprintf(stderr, "usage: collectives_s4u PLATFORM HOSTFILE ring|all_to_all BYTES [--cfg=...]\n");
    return 2;
  }
  engine.load_platform(argv[1]);
  std::vector<std::string> hosts;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) hosts.push_back(line);
  const bool is_ring = std::string(argv[3]) == "ring";
  const int n = static_cast<int>(hosts.size());
  const std::uint64_t chunk = std::stoull(argv[4]) / static_cast<std::uint64_t>(n);
  for (int r = 0; r < n; ++r) {
    sg4::Host* const host = engine.host_by_name(hosts[static_cast<std::size_t>(r)]);
    sg4::Actor::create("rank" + std::to_string(r), host, is_ring ? ring : all_to_all, r, n, chunk);
  }
  engine.run();
  std::printf("%.15g\n", sg4::Engine::get_clock());
}
