# What `cmake --install` puts where, and what find_package(ringsim CONFIG) then finds: ringsim::sim ... ringsim::validate.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(ringsim_folders GLOBAL PROPERTY RINGSIM_FOLDERS)
list(TRANSFORM ringsim_folders PREPEND ringsim_ OUTPUT_VARIABLE ringsim_libraries)
# The exported include directory is spelled out in cmake/folder.cmake; CMAKE_INSTALL_INCLUDEDIR must not differ.
install(TARGETS ${ringsim_libraries} EXPORT ringsim-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ringsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
get_property(ringsim_public GLOBAL PROPERTY RINGSIM_PUBLIC_PACKAGES)
install(CODE "set(RINGSIM_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(RINGSIM_FOLDERS \"${ringsim_folders}\")
set(RINGSIM_PUBLIC_PACKAGES \"${ringsim_public}\")")
install(SCRIPT cmake/install_headers.cmake)

# Every package that a library or its headers need is found again: fmt::fmt is in package fmt.
get_property(ringsim_linked GLOBAL PROPERTY RINGSIM_LINKED_PACKAGES)
list(FILTER ringsim_linked INCLUDE REGEX "::")
list(TRANSFORM ringsim_linked REPLACE "::.*" "")
list(TRANSFORM ringsim_linked REPLACE "^tsl$" "tsl-robin-map")
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

install(DIRECTORY scenarios/ DESTINATION ${CMAKE_INSTALL_DATADIR}/ringsim/scenarios FILES_MATCHING
  PATTERN "*.json" PATTERN "*.xml")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
