# cmake -DOUT=workloads.cpp -DFOLDER=scenarios/workloads -P embed_workloads.cmake: writes the workloads into one source
# file, so that the program needs none of them when it runs.
file(GLOB files "${FOLDER}/*.json")
set(names "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WLE)
  list(APPEND names "${name}")
endforeach()
list(SORT names)
set(entries "")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}.json" text)
  string(APPEND entries "      {\"${name}\", R\"workload(${text})workload\"},\n")
endforeach()
file(WRITE "${OUT}" "// Written by scenarios/workloads/embed_workloads.cmake from scenarios/workloads/*.json.
#include \"scenarios/fields/workload_files.hpp\"

namespace ringsim::scenarios {
const std::vector<std::pair<std::string, std::string>>& workload_files() {
  static const std::vector<std::pair<std::string, std::string>> files = {
${entries}  };
  return files;
}
}  // namespace ringsim::scenarios
")
