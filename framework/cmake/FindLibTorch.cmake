# Finds LibTorch 2.11 to 2.15 without the wheel's own CMake config, which insists on a CUDA toolkit and links every CUDA
# library into everything.
#
# Input:   TARE_LIBTORCH  the folder that holds include/ and lib/ (of a wheel: .../torch)
# Output:  LibTorch::headers   the headers alone: for sources that need no library, as they use no more than a type
#          LibTorch::cpu   torch_cpu + c10 and their headers: all that a CPU program links
#          LibTorch_VERSION, LibTorch_CUDA_LIBRARIES (torch_cuda and c10_cuda, empty when they are not there),
#          LibTorch_CUDART (the CUDA run-time library beside the wheel, empty when it is not there)
set(TARE_LIBTORCH "$ENV{TARE_LIBTORCH}" CACHE PATH "LibTorch folder: holds include/ and lib/")
option(TARE_ALLOW_LIBTORCH "Accept a LibTorch that is not of 2.11 to 2.15; run the full tests" OFF)

# Paths are built, not searched: a cached find_library would keep an old folder after TARE_LIBTORCH changes.
set(_include "${TARE_LIBTORCH}/include")
set(_lib "${TARE_LIBTORCH}/lib")
set(_missing "")
foreach(_file "${_include}/torch/headeronly/version.h" "${_lib}/libtorch_cpu.so" "${_lib}/libc10.so")
  if(NOT EXISTS "${_file}")
    list(APPEND _missing "${_file}")
  endif()
endforeach()

if(NOT _missing)
  file(STRINGS "${_include}/torch/headeronly/version.h" _lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  set(_parts "")
  foreach(_line IN LISTS _lines)
    string(REGEX REPLACE ".*[^0-9]([0-9]+).*" "\\1" _part "${_line} ")
    list(APPEND _parts "${_part}")
  endforeach()
  list(JOIN _parts "." LibTorch_VERSION)
  if((LibTorch_VERSION VERSION_LESS 2.11 OR LibTorch_VERSION VERSION_GREATER_EQUAL 2.16) AND NOT TARE_ALLOW_LIBTORCH)
    message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} in ${TARE_LIBTORCH}: Tare uses internals of LibTorch and knows "
                        "those of 2.11 to 2.15. To try this version: cmake --preset release -DTARE_ALLOW_LIBTORCH=ON "
                        "-DTARE_LIBTORCH=${TARE_LIBTORCH}, then cmake --build build && ctest --test-dir build; "
                        "docs/development.md says what to look at.")
  endif()
  if(NOT TARGET LibTorch::cpu)
    add_library(LibTorch::headers INTERFACE IMPORTED)
    target_include_directories(LibTorch::headers SYSTEM INTERFACE "${_include}" "${_include}/torch/csrc/api/include")
    add_library(LibTorch::c10 SHARED IMPORTED)
    set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION "${_lib}/libc10.so")
    add_library(LibTorch::cpu SHARED IMPORTED)
    set_target_properties(LibTorch::cpu PROPERTIES IMPORTED_LOCATION "${_lib}/libtorch_cpu.so")
    target_link_libraries(LibTorch::cpu INTERFACE LibTorch::headers LibTorch::c10)
    if(EXISTS "${_lib}/libgomp.so.1")  # of at::parallel_for, whose threads are those of LibTorch's operators
      target_link_libraries(LibTorch::cpu INTERFACE "${_lib}/libgomp.so.1")
    elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_link_libraries(LibTorch::cpu INTERFACE gomp)
    endif()
    # How the wheel was built: its c10d headers depend on these.
    target_compile_definitions(LibTorch::cpu INTERFACE USE_C10D_GLOO USE_C10D_NCCL USE_DISTRIBUTED USE_RPC
                                                       USE_TENSORPIPE)
  endif()
  set(LibTorch_CUDA_LIBRARIES "")
  if(EXISTS "${_lib}/libtorch_cuda.so" AND EXISTS "${_lib}/libc10_cuda.so")
    set(LibTorch_CUDA_LIBRARIES "${_lib}/libtorch_cuda.so" "${_lib}/libc10_cuda.so")
  endif()
  set(LibTorch_CUDART "")
  foreach(_folder "${TARE_LIBTORCH}/../nvidia/cu13/lib" "${_lib}")
    if(NOT LibTorch_CUDART AND EXISTS "${_folder}/libcudart.so.13")
      set(LibTorch_CUDART "${_folder}/libcudart.so.13")
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
list(JOIN _missing " and " _missing)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS _include LibTorch_VERSION VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "missing: ${_missing}. Set -DTARE_LIBTORCH=DIR, or run: bash framework/cmake/setup.sh")
