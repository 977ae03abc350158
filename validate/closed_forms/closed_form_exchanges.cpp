#include <algorithm>

#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/exchanges/powers.hpp"
#include "validate/closed_forms/forms.hpp"

namespace ringsim {

using namespace forms;

namespace {

/// n/2, n/4... 1 of n chunks, each `times` times: recursive halving, or doubling, or both.
void halves(std::int64_t p, std::int64_t n, int times, Sum& sum) {
  for (std::int64_t half = n / 2; half >= 1; half /= 2) sum.steps(times, share(p, half, n));
}

ClosedForm doubling_all_reduce(int n, std::int64_t p, const Uniform& machine) {
  const int m = floor_log2(n);
  ClosedForm form{.formula = is_power_of_two(n) ? "m(a + p/b)" : "(m+2)(a + p/b)"};
  needs_own_links_to_peers(machine, form);
  Sum{machine, form}.steps(is_power_of_two(n) ? m : m + 2, p);
  return form;
}

ClosedForm bruck_all_gather_form(std::int64_t n, std::int64_t p, const Uniform& machine) {
  ClosedForm form{.formula = "ceil(log2 K) a + (K-1)/K p/b"};
  needs_own_links_to_peers(machine, form);
  Sum sum{machine, form};
  for (std::int64_t distance = 1; distance < n; distance *= 2)
    sum.steps(1, share(p, std::min(distance, n - distance), n));
  form.steps *= 2;  // a run that goes over the end of the buffer is two messages, each rounded
  return form;
}

ClosedForm bruck_all_to_all_form(std::int64_t n, std::int64_t p, const Uniform& machine) {
  ClosedForm form{.formula =
                      is_power_of_two(static_cast<int>(n)) ? "m(a + p/(2b))" : "ceil(log2 K) a + sum_k n_k/K p/b"};
  needs_own_links_to_peers(machine, form);
  const Layout blocks = Layout::near_equal({p}, static_cast<int>(n));
  Sum sum{machine, form};
  for (std::int64_t bit = 1; bit < n; bit *= 2) {
    Bytes sent;  // the same for all ranks: blocks are numbered from the sender
    int runs = 0;
    for (std::int64_t first = bit; first < n; first += 2 * bit, ++runs)
      sent += blocks.size(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(std::min(bit, n - first)));
    sum.steps(1, sent.count);
    form.steps += runs - 1;  // messages at once, each rounded
  }
  return form;
}

ClosedForm pat_form(std::int64_t n, std::int64_t p, const Uniform& machine) {
  ClosedForm form{.formula = "ceil(log2 K) a + (K-1)/K p/b"};
  needs_own_links_to_peers(machine, form);
  Sum sum{machine, form};
  for (std::int64_t distance = 1; distance < n; distance *= 2) {
    const std::int64_t chunks = ceil_div(n - distance, 2 * distance);  // 0, 2 distance... below n - distance
    // They lie apart, so that any of them may be the ones that are a byte longer.
    sum.steps(1, chunks * (p / n), std::min(chunks * ceil_div(p, n), p));
    form.steps += static_cast<int>(chunks) - 1;
  }
  return form;
}

}  // namespace

ClosedForm binary_blocks_form(const CollectiveRequest& request, const Uniform& machine) {
  const std::int64_t p = request.bytes.count;
  const std::vector<int> blocks = binary_blocks(request.ranks);
  ClosedForm form{.formula = blocks.size() == 1 ? "2 m a + 2(K-1)/K p/b"
                                                : "binary blocks: halving, up, down, doubling of the latest block"};
  needs_own_links_to_peers(machine, form);
  // Twice the same, with all sizes rounded down, and up.
  const auto latest = [&](bool high) {
    const auto step = [&](std::int64_t n, std::int64_t of) {
      const Share bytes = share(p, n, of);
      return add(machine.a, transfer_time({high ? bytes.high : bytes.low}, machine.b));
    };
    const auto halving = [&](int size) {
      Picoseconds time{0};
      for (int half = size / 2; half >= 1; half /= 2) time = add(time, step(half, size));
      return time;
    };
    // All pieces of a rank leave one port; if each has a cable of its own, they go at once.
    const auto handed = [&](std::size_t j) {
      return step(1, machine.shape == Shape::full_mesh ? blocks[j - 1] : blocks[j]);
    };
    Picoseconds summed = halving(blocks.back());  // when a block has all sums from it down
    for (std::size_t j = blocks.size() - 1; j > 0; --j)
      summed = add(std::max(summed, halving(blocks[j - 1])), handed(j));
    Picoseconds end{0}, reached = summed;  // when a block has the result
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      if (j > 0) reached = add(reached, handed(j));
      const Picoseconds passed_on = j + 1 < blocks.size() ? add(reached, handed(j + 1)) : reached;
      end = std::max(end, add(passed_on, halving(blocks[j])));
    }
    return end;
  };
  form.low = latest(false);
  form.time = latest(true);
  for (const int size : blocks) form.steps += 2 * (floor_log2(size) + 1);
  // Pieces for several ranks leave one port at once; each is rounded.
  if (blocks.size() > 1) form.steps += 2 * blocks.front(), form.is_shared = true;
  return form;
}

std::optional<ClosedForm> exchange_form(const Algorithm& algorithm, const Arguments& arguments,
                                        const CollectiveRequest& request, const Uniform& machine) {
  const int n = request.ranks;
  const std::int64_t p = request.bytes.count;
  const bool doubles = algorithm.name == "recursive_doubling";
  if (doubles && request.op == CollectiveOp::all_reduce) return doubling_all_reduce(n, p, machine);
  if (doubles || (algorithm.name == "halving_doubling" && request.op != CollectiveOp::all_reduce)) {
    ClosedForm form{.formula = "m a + (K-1)/K p/b"};
    needs_own_links_to_peers(machine, form);
    Sum sum{machine, form};
    halves(p, n, 1, sum);
    return form;
  }
  if (algorithm.name == "swing" && text(algorithm, arguments, "ports") == "all") return std::nullopt;
  if (algorithm.name == "swing" && text(algorithm, arguments, "variant") == "latency")
    return doubling_all_reduce(n, p, machine);
  if (algorithm.name == "swing") {
    const std::vector<int> grid = grid_of(algorithm, arguments, request);
    ClosedForm form{.formula = "2 m a + 2(K-1)/K p/b"};
    // Along a dimension of 2 or 4 all partners are neighbors.
    const bool near = std::all_of(grid.begin(), grid.end(), [](int size) { return size <= 4; });
    if (machine.shape != Shape::grid || !near) needs_own_links_to_peers(machine, form);
    Sum sum{machine, form};
    halves(p, n, 2, sum);
    return form;
  }
  if (algorithm.name == "bruck")
    return request.op == CollectiveOp::all_gather ? bruck_all_gather_form(n, p, machine)
                                                  : bruck_all_to_all_form(n, p, machine);
  if (algorithm.name == "pat") return pat_form(n, p, machine);
  return std::nullopt;
}

}  // namespace ringsim
