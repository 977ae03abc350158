# ringsim_folder(NAME DEPENDS folder... PACKAGES target...)
# One static library for the folder that calls it: all of its .cpp files, with headers found from the root.
# DEPENDS names the folders whose headers it may include; cmake/check_layers.cmake holds the sources to it.
function(ringsim_folder name)
  cmake_parse_arguments(arg "" "" "DEPENDS;PACKAGES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cpp")
  file(GLOB headers CONFIGURE_DEPENDS "*.hpp")
  add_library(ringsim_${name} STATIC ${sources} ${headers})
  add_library(ringsim::${name} ALIAS ringsim_${name})
  set_target_properties(ringsim_${name} PROPERTIES EXPORT_NAME ${name} RINGSIM_DEPENDS "${arg_DEPENDS}"
    RINGSIM_HEADERS "${headers}")
  target_compile_features(ringsim_${name} PUBLIC cxx_std_20)
  target_include_directories(ringsim_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/ringsim>)
  list(TRANSFORM arg_DEPENDS PREPEND ringsim_)
  target_link_libraries(ringsim_${name} PUBLIC ${arg_DEPENDS} PRIVATE $<BUILD_INTERFACE:ringsim_flags> ${arg_PACKAGES})
  set_property(GLOBAL APPEND PROPERTY RINGSIM_FOLDERS ${name})
endfunction()
