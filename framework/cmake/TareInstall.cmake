# cmake --install: static libraries, headers, programs, and the package that find_package(tare) reads.
include(CMakePackageConfigHelpers)

# Programs find the CUDA room in ../lib (memory/init.cpp): the folders below the prefix are fixed.
set(TARE_INSTALL_LIBDIR lib)
set(TARE_INSTALL_PACKAGEDIR ${TARE_INSTALL_LIBDIR}/cmake/tare)

get_property(libraries GLOBAL PROPERTY TARE_LIBRARIES)
install(TARGETS ${libraries} EXPORT tare ARCHIVE DESTINATION ${TARE_INSTALL_LIBDIR})
install(EXPORT tare NAMESPACE tare:: FILE tareTargets.cmake DESTINATION ${TARE_INSTALL_PACKAGEDIR})
install(DIRECTORY "${tare_SOURCE_DIR}/framework/tare" DESTINATION include
        FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE PATTERN cuda EXCLUDE)
install(DIRECTORY "${tare_SOURCE_DIR}/models" DESTINATION include FILES_MATCHING PATTERN "*.h")

foreach(program IN ITEMS tare tare-predict)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()
if(TARGET tare)
  install(CODE "
    set(share \"${CMAKE_CURRENT_BINARY_DIR}/share\")
    set(tare \"$<TARGET_FILE:tare>\")
    execute_process(COMMAND \"\${tare}\" man --out \"\${share}/man/man1\" COMMAND_ERROR_IS_FATAL ANY)
    foreach(file IN ITEMS bash-completion/completions/tare zsh/site-functions/_tare fish/vendor_completions.d/tare.fish)
      string(REGEX MATCH \"^[a-z]+\" shell \"\${file}\")
      cmake_path(GET file PARENT_PATH folder)
      file(MAKE_DIRECTORY \"\${share}/\${folder}\")
      execute_process(COMMAND \"\${tare}\" completion \${shell} OUTPUT_FILE \"\${share}/\${file}\"
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
  install(DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/share" DESTINATION .)
endif()
if(TARGET tare_cuda)
  set_target_properties(tare_cuda PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS tare_cuda LIBRARY DESTINATION ${TARE_INSTALL_LIBDIR})
endif()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/tareConfig.cmake.in" tareConfig.cmake
  INSTALL_DESTINATION ${TARE_INSTALL_PACKAGEDIR} PATH_VARS TARE_INSTALL_LIBDIR)
write_basic_package_version_file(tareConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tareConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/tareConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake"
        DESTINATION ${TARE_INSTALL_PACKAGEDIR})
