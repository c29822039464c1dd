# cpack: a Debian package of the programs, with the libraries of LibTorch that they need on the CPU in lib/tare.

# What libtorch_cpu.so needs and the system does not have, such as libc10.so and the CUDA run-time library. LibTorch looks for
# these in its own folder, too.
get_filename_component(libtorch_folder "${TARE_LIBTORCH}/.." REALPATH)
string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\\\\\1" libtorch_folder "${libtorch_folder}")  # as text of a regular expression
install(CODE "
  set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES \"${TARE_LIBTORCH}/lib/libtorch_cpu.so\" POST_INCLUDE_REGEXES \"^${libtorch_folder}/\"
       POST_EXCLUDE_REGEXES \".\" RESOLVED_DEPENDENCIES_VAR libraries)
  file(INSTALL \"${TARE_LIBTORCH}/lib/libtorch_cpu.so\" \${libraries} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/tare\" FOLLOW_SYMLINK_CHAIN)
  foreach(program IN ITEMS tare-train tare-predict)
    file(RPATH_SET FILE \"\${prefix}/bin/\${program}\" NEW_RPATH \"\\\$ORIGIN/../lib/tare\")
  endforeach()" COMPONENT libtorch EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tare)
set(CPACK_PACKAGE_CONTACT "The founders of Tare")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF)
set(CPACK_COMPONENTS_ALL programs libtorch)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
get_filename_component(cudart_folder "${LibTorch_CUDART}" DIRECTORY)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${TARE_LIBTORCH}/lib" "${cudart_folder}")
include(CPack)
