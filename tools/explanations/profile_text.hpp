// Profiles of real jobs: what `ringsim trace show` prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "validate/profiles/job_comparison.hpp"
#include "validate/profiles/record.hpp"
#include "validate/profiles/waiting.hpp"

namespace ringsim::tools {

/// What the files are and how much of them could be used, as lines; a table of collectives; a table of ranks.
std::string profile_text(const profiles::Profile& profile, const profiles::Account& account);
/// One document, with its newline. Times in us, sizes in bytes.
std::string profile_json(const profiles::Profile& profile, const profiles::Account& account);
/// A line for each row of the table of collectives.
std::string profile_csv(const profiles::Profile& profile, const profiles::Account& account);

/// "transfers are predicted to take 1.2 times as long ...".
std::string stated_interference(const profiles::JobComparison& comparison);
/// What `ringsim trace compare` prints, likewise.
std::string job_text(const profiles::Profile& profile, const profiles::JobComparison& comparison);
std::string job_json(const profiles::Profile& profile, const profiles::JobComparison& comparison);
std::string job_csv(const profiles::Profile& profile, const profiles::JobComparison& comparison);
/// A row's measured and predicted values.
nlohmann::ordered_json compared_json(const profiles::Profile& profile, const profiles::ComparedCalls& calls);
/// "late rank 2; slow transfer".
std::string verdict_text(const profiles::ComparedCalls& calls);

// Parts of these, for tables that have more.

/// What could be read, matched and put on one clock, in lines of at most 100 characters.
std::string profile_head(const profiles::Profile& profile, const profiles::Account& account);
/// A table of collectives, then one of ranks, each after an empty line; empty if there are no collectives.
std::string collectives_text(const profiles::Account& account);
/// Waiting and transfer of each rank; empty if nothing could be split.
std::string ranks_text(const profiles::Account& account);
/// The parts of the document that do not depend on a row.
nlohmann::ordered_json profile_about(const profiles::Profile& profile, const profiles::Account& account);
/// A row's measured values.
nlohmann::ordered_json row_json(const profiles::Profile& profile, const profiles::Row& row);
/// "8.196 MB", "402.2 kB each": four digits.
std::string size_text(const profiles::Row& row);
/// "1.23": ms, three digits.
std::string ms_text(double ns);
/// The shortest and the longest kernel: "13.8 to 36.2".
std::string kernel_text(const profiles::Row& row);
/// How long the first rank waits for the last one, as a mean: ">= 22.3"; empty: not known.
std::string waiting_text(const profiles::Row& row);
/// The median: "<= 13.8"; of one rank the shortest kernel as an upper bound.
std::string transfer_text(const profiles::Row& row);
/// The rank that arrives late, or why it is not known: "rank 1 (9 of 10)"; empty: nobody waits much.
std::string late_text(const profiles::Row& row);

/// Values as CSV or a JSON document's rows, from the columns of the first; nested objects get dotted names.
std::string csv_of(const nlohmann::ordered_json& rows);

}  // namespace ringsim::tools
