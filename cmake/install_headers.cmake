# Run by `cmake --install`. A header that names a third-party one (<nlohmann/json_fwd.hpp>) which is not of a
# PUBLIC_PACKAGES, or leans on such a header, is for the sources alone and stays at home: what is installed compiles with
# what find_package(ringsim) finds. tests/consumer holds it to that.
set(headers "")
foreach(folder IN LISTS RINGSIM_FOLDERS)
  file(GLOB_RECURSE found RELATIVE "${RINGSIM_SOURCE}" "${RINGSIM_SOURCE}/${folder}/*.hpp")
  list(APPEND headers ${found})
endforeach()
list(FILTER headers EXCLUDE REGEX "^validate/replay/(cuda|nccl)/")  # their libraries are not installed


# First those that name a foreign package themselves: tsl/ is of tsl::, nlohmann/ of nlohmann_json::, boost/ of Boost::.
string(TOLOWER "${RINGSIM_PUBLIC_PACKAGES}" public)
set(include "^[ \t]*#[ \t]*include[ \t]*")
set(found "")
foreach(header IN LISTS headers)
  file(STRINGS "${RINGSIM_SOURCE}/${header}" lines REGEX "${include}<([^>]*/[^>]*|xxhash[.]h)>")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "${include}<([a-z_0-9]+).*" "\\1" package "${line}")
    if(NOT public MATCHES "(^|;)${package}[a-z_]*::")
      list(APPEND found "${header}")
    endif()
  endforeach()
endforeach()
# Then those that include what was found, until there are no more.
set(internal "")
while(found)
  list(REMOVE_ITEM headers ${found})
  list(APPEND internal ${found})
  list(JOIN found "|" any_found)
  set(found "")
  foreach(header IN LISTS headers)
    file(STRINGS "${RINGSIM_SOURCE}/${header}" lines REGEX "${include}\"(${any_found})\"")
    if(lines)
      list(APPEND found "${header}")
    endif()
  endforeach()
endwhile()

list(REMOVE_DUPLICATES internal)
list(JOIN internal " " internal)
message(STATUS "Internal headers, not installed: ${internal}")
foreach(header IN LISTS headers)
  get_filename_component(folder "${header}" DIRECTORY)
  file(INSTALL "${RINGSIM_SOURCE}/${header}" DESTINATION "${CMAKE_INSTALL_PREFIX}/include/ringsim/${folder}")
endforeach()
