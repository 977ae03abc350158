# What `cmake --install` puts where. For others: find_package(ringsim CONFIG) with the target ringsim::ringsim, or
# pkg-config --static ringsim.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# `command` is what packages have (cmake/packages.cmake); the rest is the library.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)

set(ringsim_libraries ringsim_validate ringsim_scenarios ringsim_topologies ringsim_algorithms ringsim_text ringsim_sim)
add_library(ringsim_all INTERFACE)
add_library(ringsim::ringsim ALIAS ringsim_all)
set_target_properties(ringsim_all PROPERTIES EXPORT_NAME ringsim)
target_link_libraries(ringsim_all INTERFACE ringsim_validate)

install(TARGETS ringsim_all ${ringsim_libraries} EXPORT ringsim-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ringsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
if(RINGSIM_BUNDLE)
  # All shared libraries but glibc's, in a folder that the command finds next to its own, with the license of each.
  set_target_properties(ringsim PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/ringsim")
  install(CODE "set(RINGSIM_COMMAND \"${CMAKE_INSTALL_BINDIR}/$<TARGET_FILE_NAME:ringsim>\")
set(RINGSIM_LICENSES \"${CMAKE_INSTALL_DOCDIR}/licenses\")" COMPONENT command)
  install(SCRIPT cmake/install_bundle.cmake COMPONENT command)
endif()
if(NOT CMAKE_CROSSCOMPILING)  # made by tools/CMakeLists.txt
  set(share ${PROJECT_BINARY_DIR}/tools/share)
  install(DIRECTORY ${share}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
  install(FILES ${share}/ringsim DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
  install(FILES ${share}/_ringsim DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command)
  install(FILES ${share}/ringsim.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
endif()
get_property(ringsim_public GLOBAL PROPERTY RINGSIM_PUBLIC_PACKAGES)
install(CODE "set(RINGSIM_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(RINGSIM_PUBLIC_PACKAGES \"${ringsim_public}\")")
install(SCRIPT cmake/install_headers.cmake)

# Every package that a library or its headers need is found again: fmt::fmt is in package fmt.
get_property(ringsim_linked GLOBAL PROPERTY RINGSIM_LINKED_PACKAGES)
list(FILTER ringsim_linked INCLUDE REGEX "::")
list(TRANSFORM ringsim_linked REPLACE "::.*" "")
list(TRANSFORM ringsim_linked REPLACE "^tsl$" "tsl-robin-map")
list(TRANSFORM ringsim_linked REPLACE "^protobuf$" "Protobuf")
list(TRANSFORM ringsim_linked REPLACE "^SQLite$" "SQLite3")
list(REMOVE_DUPLICATES ringsim_linked)
set(RINGSIM_FIND_DEPENDENCIES "")
foreach(package IN LISTS ringsim_linked)
  string(APPEND RINGSIM_FIND_DEPENDENCIES "find_dependency(${package})\n")
endforeach()

set(ringsim_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ringsim)
configure_package_config_file(cmake/ringsim-config.cmake.in ${PROJECT_BINARY_DIR}/ringsim-config.cmake
  INSTALL_DESTINATION ${ringsim_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ringsim-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ringsim-config.cmake ${PROJECT_BINARY_DIR}/ringsim-config-version.cmake
  DESTINATION ${ringsim_package_dir})
install(EXPORT ringsim-targets NAMESPACE ringsim:: DESTINATION ${ringsim_package_dir})

list(TRANSFORM ringsim_libraries PREPEND "-l" OUTPUT_VARIABLE ringsim_pc_libraries)
list(JOIN ringsim_pc_libraries " " ringsim_pc_libraries)
set(ringsim_pc_chakra "")
if(NOT RINGSIM_WITHOUT_CHAKRA)
  set(ringsim_pc_chakra " protobuf-lite")
endif()
configure_file(cmake/ringsim.pc.in ${PROJECT_BINARY_DIR}/ringsim.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ringsim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The examples, and the measurements that they are compared with, at the paths of the repository. File by file, because
# install(DIRECTORY) would also create the folders that have only sources.
file(GLOB_RECURSE ringsim_examples RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS scenarios/*.json scenarios/*.json.gz scenarios/*.xml
  scenarios/*.et validate/measured/tables/*.csv validate/measured/tables/*.json)
foreach(file IN LISTS ringsim_examples)
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/ringsim/${folder} COMPONENT command)
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)

include(cmake/packages.cmake)
