// The rows of the catalog that are defined outside catalog.cpp.
#pragma once

#include <vector>

#include "algorithms/catalog.hpp"

namespace ringsim {

/// recursive_doubling, bruck, pat, swing.
void add_exchanges(std::vector<Algorithm>& rows);
/// hierarchical, torus, bucket, in_switch. Hierarchical ones may be made of the rows that are there.
void add_composed(std::vector<Algorithm>& rows);

int no_helpers(const Arguments& arguments);

/// The setting `dimensions` of those that know of a grid.
Parameter dimensions_parameter();

}  // namespace ringsim
