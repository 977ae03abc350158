// Finds the collective of rows: by name, and by their bandwidths.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "validate/measured/measured.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

namespace {

/// True if a printed bandwidth differs from the expected one only by rounding of both, and by `slack`.
bool is_near(double expected, const Number& printed, const Number& time, double slack) {
  return std::abs(printed.value - expected) <= printed.half + expected * (time.half / time.value + slack);
}

double algbw_of(Bytes bytes, const Number& time) { return static_cast<double>(bytes.count) / time.value / 1e3; }

bool fits(const Timed& timed, Bytes bytes, CollectiveOp op, int ranks, double slack) {
  if (!timed.time || !timed.busbw) return true;
  return is_near(algbw_of(bytes, *timed.time) * busbw_factor(op, ranks), *timed.busbw, *timed.time, slack);
}

/// True if busbw has enough digits: 0.01 fits any collective.
bool tells(const Timed& timed) {
  constexpr double most = 0.05;  // two ranks and three differ by a third in all_reduce's factor, 8 and 9 by 2 %
  return timed.time && timed.busbw && timed.busbw->half <= most * timed.busbw->value;
}

bool all_fit(std::span<const Row> rows, CollectiveOp op, int ranks, double slack) {
  return std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    return words_fit(row, op) && fits(row.out, row.bytes, op, ranks, slack) &&
           fits(row.in, row.bytes, op, ranks, slack);
  });
}

bool any_tells(std::span<const Row> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return tells(row.out) || tells(row.in); });
}

/// The collectives for which nccl-tests has a program that prints a bandwidth.
constexpr std::array benchmarked = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather,
                                    CollectiveOp::all_to_all, CollectiveOp::broadcast,      CollectiveOp::reduce,
                                    CollectiveOp::scatter,    CollectiveOp::gather,         CollectiveOp::send_recv};

/// The factors busbw / algbw that all rows allow.
struct Factors {
  double least = 0, most = std::numeric_limits<double>::infinity();
};

Factors factors_of(std::span<const Row> rows, double slack) {
  Factors factors;
  for (const Row& row : rows) {
    for (const Timed* timed : {&row.out, &row.in}) {
      if (!timed->time || !timed->busbw || row.bytes.count == 0) continue;
      const double algbw = algbw_of(row.bytes, *timed->time), off = timed->time->half / timed->time->value + slack;
      const Number& busbw = *timed->busbw;
      factors.least = std::max(factors.least, (busbw.value - busbw.half) / algbw / (1 + off));
      if (off < 1) factors.most = std::min(factors.most, (busbw.value + busbw.half) / algbw / (1 - off));
    }
  }
  return factors;
}

/// The number of ranks at which a collective has that factor, limit * (n-1)/n; as a real number.
double ranks_at(double factor, double limit) {
  return factor < limit ? limit / (limit - factor) : std::numeric_limits<double>::infinity();
}

/// "8 ranks", "8 to 11 ranks", "500 ranks or more"; empty: none.
std::string ranks_that_fit(std::span<const Row> rows, CollectiveOp op, double slack) {
  if (!std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return words_fit(row, op); })) return "";
  const Factors factors = factors_of(rows, slack);
  const double limit = std::round(busbw_factor(op, most_ranks));
  if (busbw_factor(op, 2) == busbw_factor(op, 3))
    return factors.least <= limit && limit <= factors.most ? "any number of ranks" : "";
  constexpr double rounding = 1e-6, most = 1 << 14;
  const double first = std::max(2.0, std::ceil(ranks_at(factors.least, limit) - rounding));
  const double last = std::floor(ranks_at(factors.most, limit) + rounding);
  if (first > last || first > most) return "";
  if (last > most) return first == 2 ? "any number of ranks" : fmt::format("{:.0f} ranks or more", first);
  if (first == last) return fmt::format("{:.0f} ranks", first);
  return fmt::format("{:.0f} to {:.0f} ranks", first, last);
}

}  // namespace

std::optional<CollectiveOp> collective_in(const std::string& name) {
  const auto letters_of = [](std::string_view text) {
    std::string letters = lower(text);
    std::erase_if(letters, [](char c) { return c < 'a' || c > 'z'; });
    return letters;
  };
  const std::string letters = letters_of(std::filesystem::path(name).filename().string());
  std::set<CollectiveOp> found;
  for (const CollectiveOp op : collective_ops())
    if (letters.find(letters_of(to_string(op))) != std::string::npos) found.insert(op);
  if (letters.find("bcast") != std::string::npos) found.insert(CollectiveOp::broadcast);
  // "reduce" and "scatter" lie within "reduce_scatter"; so do others.
  const auto hides = [&](CollectiveOp longer, CollectiveOp shorter) {
    if (found.contains(longer)) found.erase(shorter);
  };
  hides(CollectiveOp::all_reduce, CollectiveOp::reduce);
  hides(CollectiveOp::reduce_scatter, CollectiveOp::reduce);
  hides(CollectiveOp::reduce_scatter, CollectiveOp::scatter);
  hides(CollectiveOp::all_gather, CollectiveOp::gather);
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

bool busbw_fits(const Timed& timed, Bytes bytes, CollectiveOp op, int ranks) {
  // Transcribed tables lose trailing zeros and digits of long times: another 0.2 % of both.
  return fits(timed, bytes, op, ranks, 0.002);
}

bool words_fit(const Row& row, CollectiveOp op) {
  // nccl-tests prints "none" if nothing is reduced (all_gather.cu and others, calls of TimeTest), the operation for
  // sendrecv as well (sendrecv.cu), and a root of -1 if there is none.
  const bool reduces =
      op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::reduce;
  if (row.redop == "none" && reduces) return false;
  if (!row.redop.empty() && row.redop != "none" && !reduces && op != CollectiveOp::send_recv) return false;
  if (row.root == "-1" && has_root(op)) return false;
  return !is_whole(row.root) || has_root(op);
}

bool rows_fit(std::span<const Row> rows, CollectiveOp op, int ranks) {
  return any_tells(rows) && all_fit(rows, op, ranks, 0.002);
}

bool may_be(std::span<const Row> rows, CollectiveOp op) {
  return !any_tells(rows) || !ranks_that_fit(rows, op, 0.002).empty();
}

std::string what_fits(std::span<const Row> rows) {
  if (!any_tells(rows)) return "";
  for (const double slack : {0.0, 0.002}) {
    std::vector<std::string> found;
    for (const CollectiveOp op : benchmarked)
      if (const std::string ranks = ranks_that_fit(rows, op, slack); !ranks.empty())
        found.push_back(fmt::format("{} of {}", to_string(op), ranks));
    if (!found.empty()) return fmt::format("{}", fmt::join(found, " or "));
  }
  return "no collective";
}

}  // namespace ringsim::measured
