// True if the tests are compiled with sanitizers, which make the simulator five to fifteen times slower.
#pragma once

namespace ringsim::test {

#ifdef RINGSIM_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace ringsim::test
