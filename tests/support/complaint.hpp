// What an error says.
#pragma once

#include <string>

#include "sim/base/error.hpp"

namespace ringsim::test {

/// The whole text of the InputError that it throws; empty if it throws none.
template <class What>
std::string complaint(What what) {
  try {
    what();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace ringsim::test
