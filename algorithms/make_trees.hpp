// From the catalog's arguments to the schedules of trees. For catalog.cpp alone.
#pragma once

#include "algorithms/catalog.hpp"

namespace ringsim {

Schedule make_binomial_tree(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_dissemination(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_chain(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_kary_tree(const CollectiveRequest& request, const Arguments& arguments);
Schedule make_double_binary_tree(const CollectiveRequest& request, const Arguments& arguments);

}  // namespace ringsim
