# cmake -DOUT=presets.cpp -DLINK_TYPES=link_types.json -P embed_presets.cmake FILES...: writes the preset files and the
# library of link types into one source file, so that the program needs none of them when it runs.
set(names "")
math(EXPR last "${CMAKE_ARGC} - 1")
set(is_file FALSE)
foreach(i RANGE 0 ${last})
  set(file "${CMAKE_ARGV${i}}")
  if(is_file)
    get_filename_component(name "${file}" NAME_WLE)
    list(APPEND names "${name}")
    set(path_of_${name} "${file}")
  elseif(file STREQUAL "${CMAKE_CURRENT_LIST_FILE}" OR file MATCHES "embed_presets.cmake$")
    set(is_file TRUE)
  endif()
endforeach()
# By name: by path "a-b.json" comes before "a.json".
list(SORT names)
set(entries "")
foreach(name IN LISTS names)
  file(READ "${path_of_${name}}" text)
  string(APPEND entries "    {\"${name}\", R\"preset(${text})preset\"},\n")
endforeach()
file(READ "${LINK_TYPES}" link_types)
file(WRITE "${OUT}" "// Written by topologies/machines/embed_presets.cmake from topologies/presets/*.json and link_types.json.
#include \"topologies/machines/machine.hpp\"

namespace ringsim {
const std::vector<PresetFile>& preset_files() {
  static const std::vector<PresetFile> files = {
${entries}  };
  return files;
}
std::string_view link_types_file() { return R\"preset(${link_types})preset\"; }
}  // namespace ringsim
")
