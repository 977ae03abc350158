# Run by cpack before it packs the files: what Debian policy asks for beyond `cmake --install`. Manual pages and changelogs are
# compressed without a time stamp, and the license is named by `copyright`.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root "${CPACK_TEMPORARY_DIRECTORY}/command${CPACK_PACKAGING_INSTALL_PREFIX}")
set(doc "${root}/share/doc/ringsim")
set(project "${CMAKE_CURRENT_LIST_DIR}/..")
file(REMOVE "${doc}/LICENSE")
file(RENAME "${root}/share/zsh/site-functions" "${root}/share/zsh/vendor-completions")  # site-functions is the administrator's

file(WRITE "${doc}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ringsim
Upstream-Contact: ${CPACK_PACKAGE_CONTACT}

Files: *
Copyright: 2026 the authors of ringsim
License: Apache-2.0
 The full text of this license is in /usr/share/common-licenses/Apache-2.0
 on Debian systems.
")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if it is set
file(WRITE "${doc}/changelog.Debian" "ringsim (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) bookworm; urgency=medium

  * Package of ringsim ${CPACK_PACKAGE_VERSION}; changelog.gz has the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(WRITE "${root}/share/lintian/overrides/ringsim" "# Not for upload to Debian's archive, so no bug asks for it.
ringsim: initial-upload-closes-no-bugs *
")
file(COPY_FILE "${project}/CHANGELOG.md" "${doc}/changelog")
file(GLOB pages "${root}/share/man/man1/*.1")
execute_process(COMMAND gzip -9nf ${pages} "${doc}/changelog.Debian" "${doc}/changelog" COMMAND_ERROR_IS_FATAL ANY)
