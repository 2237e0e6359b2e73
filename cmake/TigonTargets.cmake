# Functions that define a stage's library, a test binary and the warnings both are held to.

function(tigon_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    # g++ 12 takes the unused members of a std::variant for uninitialised reads once it optimises.
    $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>
    # g++ 12 sees an overlapping copy inside its own std::string operator+ (GCC bug 105651).
    $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict>
    # The buffer inside libstdc++ 12's std::stable_sort is deprecated in C++20, and clang says so.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
  if(TIGON_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# tigon_stage(NAME FOLDERS folder... [EXCLUDE folder...] LINK target... [PRIVATE target...] [HEADERS target...])
# PRIVATE libraries are linked by whoever links the stage; HEADERS are needed to build it and by nobody afterwards.
function(tigon_stage name)
  cmake_parse_arguments(STAGE "" "" "FOLDERS;EXCLUDE;LINK;PRIVATE;HEADERS" ${ARGN})
  set(sources)
  foreach(folder ${STAGE_FOLDERS})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  foreach(folder ${STAGE_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/")
  endforeach()
  if(NOT sources)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/empty_${name}.cpp "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty_${name}.cpp)
  endif()
  add_library(tigon_${name} STATIC ${sources})
  add_library(tigon::${name} ALIAS tigon_${name})
  set_target_properties(tigon_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(tigon_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(tigon_${name} PUBLIC ${STAGE_LINK} PRIVATE ${STAGE_PRIVATE})
  foreach(dependency ${STAGE_HEADERS})
    target_link_libraries(tigon_${name} PRIVATE $<BUILD_INTERFACE:${dependency}>)
  endforeach()
  target_compile_features(tigon_${name} PUBLIC cxx_std_20)
  # The arithmetic is in generated kernels: -O3 would only lengthen the build.
  target_compile_options(tigon_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  target_precompile_headers(tigon_${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/library_pch.hpp)
  tigon_warnings(tigon_${name})
endfunction()

# tigon_test_folder(NAME LINK target... [ALONE file...] [DEFINE definition...])
# One test binary out of tests/NAME/**/*.cpp, compiled without optimisation; CTest runs it once for each file, as
# NAME/file, so that files are spread over the cores. Files named in ALONE start threads or processes: nothing else
# runs beside them. Tests tagged [.full] run under `ctest -C Full`, as NAME/file/full.
function(tigon_test_folder name)
  cmake_parse_arguments(TEST "" "" "LINK;ALONE;DEFINE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(tests_${name} ${sources})
  target_link_libraries(tests_${name} PRIVATE ${TEST_LINK} Catch2::Catch2WithMain)
  target_compile_options(tests_${name} PRIVATE -O0)
  target_compile_definitions(tests_${name} PRIVATE TIGON_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ${TEST_DEFINE})
  target_precompile_headers(tests_${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/test_pch.hpp)
  tigon_warnings(tests_${name})

  foreach(source ${sources})
    get_filename_component(file ${source} NAME_WE)
    file(READ ${source} text)
    if(NOT text MATCHES "TEST_CASE\\(")
      # A first test in this file makes a CTest entry.
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
      continue()
    endif()
    tigon_add_catch_test(${name}/${file} tests_${name} "[#${file}]~[.]")
    if(file IN_LIST TEST_ALONE)
      set_tests_properties(${name}/${file} PROPERTIES RUN_SERIAL ON)
    endif()
    if(text MATCHES "\\[\\.full\\]")
      tigon_add_catch_test(${name}/${file}/full tests_${name} "[#${file}][full]" CONFIGURATIONS Full)
      set_tests_properties(${name}/${file}/full PROPERTIES TIMEOUT 36000)
    endif()
  endforeach()
endfunction()

# tigon_add_catch_test(NAME target filter [argument of add_test...]): a filter that finds no test fails.
function(tigon_add_catch_test name target filter)
  set(timeout 900)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(timeout 2400)
  endif()
  add_test(NAME ${name} COMMAND ${target} --use-colour no --filenames-as-tags --warn NoTests ${filter} ${ARGN})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "OMP_NUM_THREADS=1;TIGON_CACHE_DIR=${CMAKE_BINARY_DIR}/test-cache" TIMEOUT ${timeout})
endfunction()
