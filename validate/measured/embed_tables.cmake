# cmake -DOUT=tables.cpp -DFOLDER=validate/measured/tables -P embed_tables.cmake IDS...: writes each published table ID.csv, and
#its scenario ID.json where there is one, into one source file, so that the program needs none of them when it runs.
set(ids "")
math(EXPR last "${CMAKE_ARGC} - 1")
set(is_id FALSE)
foreach(i RANGE 0 ${last})
  if(is_id)
    list(APPEND ids "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" MATCHES "embed_tables.cmake$")
    set(is_id TRUE)
  endif()
endforeach()
list(SORT ids)
set(entries "")
foreach(id IN LISTS ids)
  file(READ "${FOLDER}/${id}.csv" csv)
  set(scenario_file "")
  set(scenario "")
  if(EXISTS "${FOLDER}/${id}.json")
    set(scenario_file "validate/measured/tables/${id}.json")
    file(READ "${FOLDER}/${id}.json" scenario)
  endif()
  string(APPEND entries "    {\"${id}\", \"validate/measured/tables/${id}.csv\", R\"table(${csv})table\",\n"
    "     \"${scenario_file}\", R\"table(${scenario})table\"},\n")
endforeach()
file(WRITE "${OUT}" "// Written by validate/measured/embed_tables.cmake from validate/measured/tables.
#include \"validate/score/scorecard.hpp\"

namespace ringsim {
  std::vector<PublishedTable> published_tables() { return {${entries}}; }
}  // namespace ringsim
")
