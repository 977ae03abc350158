# Run by `cmake --install` with RINGSIM_SOURCE and RINGSIM_PUBLIC_PACKAGES: installs the public headers and what they
# include into include/ringsim, spelled <ringsim/sim/base/units.hpp>, and the umbrella header <ringsim/ringsim.hpp>.
include("${RINGSIM_SOURCE}/cmake/public_headers.cmake")
cmake_minimum_required(VERSION 3.25)
set(to "${CMAKE_INSTALL_PREFIX}/include/ringsim")
set(headers ${RINGSIM_PUBLIC_HEADERS})
set(done "")
string(TOLOWER "${RINGSIM_PUBLIC_PACKAGES}" packages)

while(headers)
  list(POP_FRONT headers header)
  list(APPEND done ${header})
  file(READ "${RINGSIM_SOURCE}/${header}" text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" included "${include}")
    if(NOT included IN_LIST done AND NOT included IN_LIST headers)
      list(APPEND headers ${included})
    endif()
  endforeach()
  # A third-party header must be of a package that find_package(ringsim) finds: nlohmann/ is of nlohmann_json::.
  string(REGEX MATCHALL "#include <[^>/]+/[^>]*>" foreign "${text}")
  foreach(include IN LISTS foreign)
    string(REGEX REPLACE "#include <([a-z_0-9]+).*" "\\1" package "${include}")
    if(NOT packages MATCHES "(^|;)${package}[a-z_]*::")
      message(FATAL_ERROR "${header}: ${include} is of no PUBLIC_PACKAGES (cmake/folder.cmake): keep it out of public headers")
    endif()
  endforeach()
  string(REPLACE "#include \"" "#include \"ringsim/" text "${text}")
  file(WRITE "${to}/${header}.part" "${text}")
  file(RENAME "${to}/${header}.part" "${to}/${header}")
endwhile()

list(TRANSFORM RINGSIM_PUBLIC_HEADERS REPLACE "(.+)" "#include \"ringsim/\\1\"" OUTPUT_VARIABLE includes)
list(JOIN includes "\n" includes)
file(WRITE "${to}/ringsim.hpp" "// ringsim, the library: all public headers. docs/guide/library.md in the sources says what may change.
#pragma once

${includes}
")
list(LENGTH done n)
list(LENGTH RINGSIM_PUBLIC_HEADERS n_public)
message(STATUS "Headers: ${n_public} public, ${n} installed, and ringsim.hpp")
