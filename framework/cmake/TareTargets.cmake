# How Tare's own targets are made: static libraries, private warnings, optional sanitizers.

set(TARE_COMPILER_ID "${CMAKE_CXX_COMPILER_ID}")  # of the targets of a folder

# tare_compile_by_clang(): clang compiles the targets of this folder and of those below it where it is installed, beside
# libraries that GCC compiles. clang keeps what LibTorch's headers instantiate in the precompiled header. GCC instantiates it
# again for every source, which takes most of its time.
macro(tare_compile_by_clang)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT TARE_SANITIZE)
    find_program(TARE_CLANG clang++ DOC "The compiler of the tests and of the recipes in C++; OFF: that of all else")
    if(TARE_CLANG)
      set(TARE_COMPILER_ID Clang)
      # A precompiled header that is there already would be included in the new one.
      list(JOIN CMAKE_CXX_COMPILER_LAUNCHER " " tare_launcher)
      set(CMAKE_CXX_COMPILER_LAUNCHER "")
      set(CMAKE_CXX_COMPILE_OBJECT
        "rm -f <OBJECT>" "${tare_launcher} \"${TARE_CLANG}\" <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>")
    endif()
  endif()
endmacro()

function(tare_compile_options target)
  if(tare_IS_TOP_LEVEL)  # else its user's choice of optimisation brings warnings that are not for its user
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion)
  endif()
  if(TARE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # Line tables: a leak report or a traceback of the memory monitor names file and line.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-g1>)
  # A program takes the functions that it calls, and not whole files, of which several may have been compiled as one.
  if(NOT TARE_OF_TESTS)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>)
  endif()
  if(TARE_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp" -fpch-instantiate-templates)
  endif()
  if(TARE_COMPILER_ID STREQUAL "GNU")
    # GCC looks for unused memory only from 1 GiB on, of which every file that sees LibTorch needs half: a tenth of the time.
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=1048576)
    # at::parallel_for is a template, and without OpenMP a plain loop. The run-time library has to be LibTorch's, which is
    # GCC's; the thread sanitizer does not know how that one waits.
    if(NOT TARE_SANITIZE MATCHES "thread")
      target_compile_options(${target} PRIVATE -fopenmp)
    endif()
  endif()
  if(TARE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TARE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${TARE_SANITIZE})
  endif()
endfunction()

# tare_public_name(TARGET NAME): the target is known as tare::NAME, here and where it is installed.
function(tare_public_name target name)
  add_library(tare::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY TARE_LIBRARIES ${target})
endfunction()

# tare_precompiled(NAME <header> ...): an object library with a precompiled header, for REUSE_FROM. All must see LibTorch.
function(tare_precompiled name)
  add_library(${name} OBJECT "${tare_SOURCE_DIR}/framework/cmake/precompiled.cpp")
  target_link_libraries(${name} PRIVATE LibTorch::cpu)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_20)
  tare_compile_options(${name})
endfunction()

# tare_library(NAME SOURCES a.cpp ... [APART a.cpp ...] [DEPENDS library ...] [PUBLIC lib ...] [PRIVATE lib ...] [PLAIN|MODULES])
# Makes the library tare_NAME with the alias tare::NAME. Without SOURCES it is headers only. APART: sources whose names
# collide with those of others, and that are compiled alone. PLAIN: it sees no tensors. MODULES: most of its sources see
# torch::nn::Module or LibTorch's dispatcher.
function(tare_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "PLAIN;MODULES" "" "SOURCES;APART;DEPENDS;PUBLIC;PRIVATE")
  if(library_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tare_library(${name}): unknown arguments ${library_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM library_DEPENDS PREPEND "tare::")
  if(library_SOURCES)
    add_library(tare_${name} STATIC ${library_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(tare_${name} PRIVATE ${library_PRIVATE})
    tare_compile_options(tare_${name})
    if(library_MODULES)
      target_precompile_headers(tare_${name} REUSE_FROM tare_module_pch)
    elseif(NOT library_PLAIN)
      target_precompile_headers(tare_${name} REUSE_FROM tare_tensor_pch)
    endif()
    if(TARE_UNITY AND NOT library_PLAIN)  # when all of its sources are known; DEFER would read the variables then
      cmake_language(EVAL CODE "cmake_language(DEFER CALL tare_compile_together tare_${name} 8
                                               \"${tare_SOURCE_DIR}/framework\" APART ${library_APART})")
    endif()
  else()
    add_library(tare_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  tare_public_name(tare_${name} ${name})
  target_compile_features(tare_${name} ${scope} cxx_std_20)
  target_include_directories(tare_${name} ${scope}
    "$<BUILD_INTERFACE:${tare_SOURCE_DIR}/framework>" "$<BUILD_INTERFACE:${tare_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:include>")
  target_link_libraries(tare_${name} ${scope} ${library_DEPENDS} ${library_PUBLIC})
  target_link_options(tare_${name} INTERFACE LINKER:--gc-sections)
endfunction()

# tare_vectorised(FILE ...): compiles files whose time goes into loops over numbers for vector instructions. GCC 12
# vectorises no loop of a file that has a precompiled header of LibTorch's headers.
function(tare_vectorised)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -O3)
endfunction()

# tare_for_processors(SET FILE ...): compiles files of vector instructions for processors with SET: portable, avx2 or avx512.
# Which of them is called is chosen when the program runs. A product and a sum may become one operation, which has fewer
# roundings.
function(tare_for_processors set)
  set(options -O3 -ffp-contract=fast)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    if(set STREQUAL "avx2")
      list(APPEND options -mavx2 -mfma)
    elseif(set STREQUAL "avx512")
      list(APPEND options -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512)
    endif()
  endif()
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${options}")
endfunction()

# tare_entries(TARGET HEADER NAMESPACE NAME ...): compiles NAME.cpp for each name. Each defines
# `void add_NAME(Registry& all)` in the namespace. The function `void add_entries(Registry& all)`, which is made here, calls
# all of them. HEADER declares Registry.
function(tare_entries target entries_HEADER entries_NAMESPACE)
  foreach(name IN LISTS ARGN)
    string(APPEND entries_DECLARATIONS "void add_${name}(Registry& all);\n")
    string(APPEND entries_CALLS "  add_${name}(all);\n")
    target_sources(${target} PRIVATE ${name}.cpp)
  endforeach()
  string(REPLACE "::" "_" file "${entries_NAMESPACE}_entries.cpp")
  configure_file("${tare_SOURCE_DIR}/framework/cmake/entries.cpp.in" ${file} @ONLY)
  target_sources(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${file}")
endfunction()

# tare_program(NAME SOURCES a.cpp ... LINK lib ...)
function(tare_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "" "SOURCES;LINK")
  add_executable(${name} ${program_SOURCES})
  target_link_libraries(${name} PRIVATE ${program_LINK})
  tare_compile_options(${name})
endfunction()

# Lets a target of the tests include their headers and GoogleTest. Tests are not optimised, which takes half of their compile
# time; the libraries that they test are. They have line tables, which name call sites.
function(tare_test_options name)
  target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:-O0>")
  target_link_libraries(${name} PRIVATE GTest::gmock)
  target_include_directories(${name} PRIVATE "${tare_SOURCE_DIR}/tests")
  tare_compile_options(${name})
  if(TARE_UNITY)
    tare_compile_together(${name} 6 "${tare_SOURCE_DIR}/tests")
  endif()
endfunction()

# tare_compile_together(TARGET COUNT FOLDER [APART FILE ...]): compiles up to COUNT sources of a target as one, and those of
# tare_vectorised() as another, except those that are generated, have other compile options of their own or are listed. Every
# source that sees LibTorch reads and instantiates LibTorch's headers anew, which is most of its compile time. FOLDER: one in
# which the compiler looks for headers. CMake's own UNITY_BUILD names sources by absolute paths, which __FILE__ puts into the
# text, so that a compiler cache serves one folder.
function(tare_compile_together target count folder)
  cmake_parse_arguments(PARSE_ARGV 3 sources "" "" "APART")
  get_target_property(all ${target} SOURCES)
  set(left "")
  set(together "")
  set(vectorised "")
  foreach(source IN LISTS all)
    get_source_file_property(alone "${source}" SKIP_PRECOMPILE_HEADERS)
    get_source_file_property(options "${source}" COMPILE_OPTIONS)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE file)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR "${file}" generated)
    file(RELATIVE_PATH file "${folder}" "${file}")
    if(NOT source MATCHES "\\.cpp$" OR generated OR source IN_LIST sources_APART)
      list(APPEND left "${source}")
    elseif(NOT alone)
      list(APPEND together "${file}")
    elseif(options STREQUAL "-O3")
      list(APPEND vectorised "${file}")
    else()
      list(APPEND left "${source}")
    endif()
  endforeach()
  set(names "")
  while(together)
    list(LENGTH names number)
    math(EXPR number "${number} * ${count}")
    list(SUBLIST together 0 ${count} files)
    tare_file_of_sources("${target}_from_${number}.cpp" ${files})
    list(APPEND names "${CMAKE_CURRENT_BINARY_DIR}/${target}_from_${number}.cpp")
    list(REMOVE_ITEM together ${files})
  endwhile()
  if(vectorised)
    tare_file_of_sources(${target}_vectorised.cpp ${vectorised})
    list(APPEND names "${CMAKE_CURRENT_BINARY_DIR}/${target}_vectorised.cpp")
    set_source_files_properties("${CMAKE_CURRENT_BINARY_DIR}/${target}_vectorised.cpp"
      TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -O3)
  endif()
  if(NOT names)
    return()
  endif()
  set_property(TARGET ${target} PROPERTY SOURCES ${left} ${names})
  # GCC takes an included source for a header, whose classes must not hold types of a source. A name of one source may hide
  # that of another.
  target_compile_options(${target} PRIVATE -Wno-shadow)
  if(TARE_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# tare_file_of_sources(NAME FILE ...): writes a source that consists of others into the build folder.
function(tare_file_of_sources name)
  set(files ${ARGN})
  list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
  list(JOIN includes "" includes)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}" CONTENT "${includes}" @ONLY)
endfunction()

# Compiles a target of the tests with the precompiled torch/torch.h and GoogleTest.
function(tare_torch_test_options name)
  tare_test_options(${name})
  target_precompile_headers(${name} REUSE_FROM tare_torch_test_pch)
  target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:-O0;-g0>")
  target_link_libraries(${name} PRIVATE LibTorch::cpu)
endfunction()

# tare_test(NAME SOURCES a_test.cpp ... LINK lib ... [LABELS label ...] [TORCH|PLAIN])
# One test program with one ctest entry, one thread an operator. TORCH: the sources include torch/torch.h, precompiled, and
# have no line tables, which saves compile time once more. PLAIN: they see no tensors.
function(tare_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "TORCH;PLAIN" "" "SOURCES;LINK;LABELS")
  add_executable(${name} ${test_SOURCES})
  target_link_libraries(${name} PRIVATE ${test_LINK} GTest::gtest_main)
  if(test_TORCH)
    tare_torch_test_options(${name})
  else()
    tare_test_options(${name})
    if(NOT test_PLAIN)
      target_precompile_headers(${name} REUSE_FROM tare_test_pch)
      target_link_libraries(${name} PRIVATE LibTorch::cpu)
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "OMP_NUM_THREADS=1;MKL_NUM_THREADS=1;TARE_SOURCE_DIR=${tare_SOURCE_DIR};TARE_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};LSAN_OPTIONS=suppressions=${tare_SOURCE_DIR}/tests/support/leaks.txt:print_suppressions=0"
    SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\] [^\n]*\n)+$")
  if(test_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${test_LABELS}")
  endif()
  tare_order_test(${name})
endfunction()

# The tests that take longest, which ctest starts first, so that none of them is left alone at the end.
set(TARE_LONG_TESTS c_wheel_test cli_kill_test cli_test consumer_project cuda_cli_test_stand_in cuda_mistakes_test_stand_in
  learner_cuda_plan_test_stand_in overhead_test parallel_test ranks_command_test recipe_keys_test recipe_test slurm_test)
function(tare_order_test name)
  if(name IN_LIST TARE_LONG_TESTS)
    set_tests_properties(${name} PROPERTIES COST 1000)
  endif()
endfunction()

# Runs a test also as on lesser processors, where it says nothing new on one that is no better (tests/support/with_isa.sh).
function(tare_test_on_lesser_processors name)
  tare_test_with(${name} avx2 sse41)
endfunction()

# tare_test_with(NAME KIND ...): runs a test also with each KIND that with_isa.sh knows.
function(tare_test_with name)
  get_test_property(${name} ENVIRONMENT environment)
  foreach(isa IN LISTS ARGN)
    add_test(NAME ${name}_${isa} COMMAND bash "${tare_SOURCE_DIR}/tests/support/with_isa.sh" ${isa} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_${isa} PROPERTIES ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
