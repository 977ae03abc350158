# `cpack`: a Debian package of the command, or with RINGSIM_BUNDLE=ON a tarball that needs glibc alone. tools/package.sh makes both.
# Only the component `command` is packed; libraries and headers are for `cmake --install`.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ringsim)
set(CPACK_PACKAGE_VENDOR "ringsim")
set(CPACK_PACKAGE_CONTACT "ringsim maintainers <maintainers@users.noreply.a-seed-8d46e003.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "discrete-event simulator of GPU clusters")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "ringsim predicts how long collectives and training steps take on a cluster
of GPUs, and says what limits them. It decides as NCCL does and simulates each
message on NVLink, PCIe and InfiniBand or Ethernet, compares predictions with
nccl-tests logs, and reads profiles of jobs.")
set(CPACK_COMPONENTS_ALL command)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME ringsim)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian.cmake)

if(RINGSIM_BUNDLE)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_SYSTEM_NAME linux-${CMAKE_SYSTEM_PROCESSOR})
  set(CPACK_ARCHIVE_COMMAND_FILE_NAME ringsim-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_PRE_BUILD_SCRIPTS "")
endif()
include(CPack)
