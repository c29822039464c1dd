# cmake --install: static libraries, headers, programs, and the package that find_package(tare) reads.
include(CMakePackageConfigHelpers)
string(REGEX MATCH "^[0-9]+\\.[0-9]+" TARE_LIBTORCH_MINOR "${LibTorch_VERSION}")

# Programs find the CUDA plug-in in ../lib (runtime/plugin_loader.cpp) and the recipes in ../share/tare (cli/commands_data.cpp): the
# folders below the prefix are fixed.
set(TARE_INSTALL_LIBDIR lib)
set(TARE_INSTALL_PACKAGEDIR ${TARE_INSTALL_LIBDIR}/cmake/tare)

# Read by tareConfig.cmake.in.
get_property(TARE_COMPONENTS_WITH_SQLITE GLOBAL PROPERTY TARE_COMPONENTS_WITH_SQLITE)
get_property(TARE_COMPONENTS_WITH_HTTP GLOBAL PROPERTY TARE_COMPONENTS_WITH_HTTP)

# Everything that an install takes is built by one target. An install of a tree where something of it is missing is
# refused before the first file is copied.
get_property(libraries GLOBAL PROPERTY TARE_LIBRARIES)
set(installed_files "")
add_custom_target(installable)
foreach(target IN ITEMS ${libraries} tare tare-train tare-predict tare_cuda tare_c tare_c_lite)
  if(TARGET ${target})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      add_dependencies(installable ${target})
      string(APPEND installed_files " \"$<TARGET_FILE:${target}>\"")
    endif()
  endif()
endforeach()
install(CODE "
  set(missing \"\")
  foreach(file IN ITEMS${installed_files})
    if(NOT EXISTS \"\${file}\")
      string(APPEND missing \"\\n  \${file}\")
    endif()
  endforeach()
  if(missing)
    message(FATAL_ERROR \"Nothing was installed, because these files have not been built:\${missing}\\n\"
                        \"Build them first:\\n  cmake --build \\\"${CMAKE_BINARY_DIR}\\\" --target installable\")
  endif()")

# The pages are written in the build folder, before the first file is copied.
if(TARGET tare)
  set(pages "${CMAKE_CURRENT_BINARY_DIR}/pages")
  install(CODE "
    set(share \"${pages}\")
    set(tare \"$<TARGET_FILE:tare>\")
    file(REMOVE_RECURSE \"\${share}\")
    execute_process(COMMAND \"\${tare}\" man --out \"\${share}/man\" COMMAND_ERROR_IS_FATAL ANY)
    foreach(file IN ITEMS bash-completion/completions/tare zsh/site-functions/_tare fish/vendor_completions.d/tare.fish)
      string(REGEX MATCH \"^[a-z]+\" shell \"\${file}\")
      cmake_path(GET file PARENT_PATH folder)
      file(MAKE_DIRECTORY \"\${share}/\${folder}\")
      execute_process(COMMAND \"\${tare}\" completion \${shell} OUTPUT_FILE \"\${share}/\${file}\"
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT programs)
  install(DIRECTORY "${pages}/" DESTINATION share COMPONENT programs)
endif()

install(TARGETS ${libraries} EXPORT tare ARCHIVE DESTINATION ${TARE_INSTALL_LIBDIR})
install(EXPORT tare NAMESPACE tare:: FILE tareTargets.cmake DESTINATION ${TARE_INSTALL_PACKAGEDIR})
install(DIRECTORY "${tare_SOURCE_DIR}/framework/tare" DESTINATION include
        FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE PATTERN cuda EXCLUDE
        # Code of vector instructions, for sources that say which, and what needs headers that LibTorch lacks.
        PATTERN "*_body.h" EXCLUDE PATTERN vectors.h EXCLUDE PATTERN gloo_backend.h EXCLUDE)
install(FILES "${tare_SOURCE_DIR}/framework/tare/cli/program.h" DESTINATION include/tare/cli)
install(DIRECTORY "${tare_SOURCE_DIR}/models" DESTINATION include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${tare_SOURCE_DIR}/recipes/configs/" DESTINATION share/tare/recipes COMPONENT programs
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json")
install(DIRECTORY "${tare_SOURCE_DIR}/recipes/project" DESTINATION share/tare COMPONENT programs)

foreach(program IN ITEMS tare tare-train tare-predict)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${program} RUNTIME DESTINATION bin COMPONENT programs)
  endif()
endforeach()
foreach(library IN ITEMS tare_cuda tare_c tare_c_lite)
  if(TARGET ${library})
    set_target_properties(${library} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${library} LIBRARY DESTINATION ${TARE_INSTALL_LIBDIR})
  endif()
endforeach()

# Not in the build folder itself, where find_package() looks if build/bin is on the PATH.
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/tareConfig.cmake.in" package/tareConfig.cmake
  INSTALL_DESTINATION ${TARE_INSTALL_PACKAGEDIR} PATH_VARS TARE_INSTALL_LIBDIR)
write_basic_package_version_file(package/tareConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/package/tareConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/package/tareConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake" "${CMAKE_CURRENT_LIST_DIR}/TarePrecompile.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/precompiled.cpp"
        DESTINATION ${TARE_INSTALL_PACKAGEDIR})
if(TARE_BUILD_PROGRAMS)
  include(TarePackage)
endif()
