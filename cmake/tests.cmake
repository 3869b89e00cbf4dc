# One GoogleTest program per folder of tests/, the lessons of docs/tour, the scripts of tests/build,
# and the benches.  All run in the source folder.
find_package(GTest REQUIRED)
enable_testing()

# Seconds that a test may take before it counts as hung.
set(limit 900)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(limit 3600)
endif()

function(fornax_add_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit})
endfunction()

# ./do test counts the cases in results/<suite>.xml.
file(GLOB suites RELATIVE ${PROJECT_SOURCE_DIR}/tests CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/tests/*)
list(REMOVE_ITEM suites build)
foreach(suite IN LISTS suites)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${suite}/*.cpp)
  if(sources)
    fornax_program(test_${suite} tests ${suite} ${sources})
    target_link_libraries(test_${suite} PRIVATE fornax::gpu fornax_inside GTest::gtest_main)
    # Most of a clean build is tests, and what they test is compiled with the preset's options.
    target_compile_options(test_${suite} PRIVATE $<$<CONFIG:Release>:-O1>)
    # The headers that nearly all of them include are compiled once, by the first.
    if(headers)
      target_precompile_headers(test_${suite} REUSE_FROM ${headers})
    else()
      target_precompile_headers(test_${suite} PRIVATE <gtest/gtest.h> <fornax/fornax.h>)
      set(headers test_${suite})
    endif()
    if(suite STREQUAL ops AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
      # Most of an hour as one process: in four it takes what ctest has cores for.
      foreach(shard RANGE 3)
        fornax_add_test(ops.${shard} test_ops
          --gtest_output=xml:${PROJECT_BINARY_DIR}/results/ops.${shard}.xml)
        set_tests_properties(ops.${shard} PROPERTIES
          ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
      endforeach()
    else()
      fornax_add_test(${suite} test_${suite}
        --gtest_output=xml:${PROJECT_BINARY_DIR}/results/${suite}.xml)
    endif()
  endif()
endforeach()

# The accuracy of flex's functions is measured against MPFR.
find_path(FORNAX_MPFR_INCLUDE mpfr.h REQUIRED)
find_library(FORNAX_MPFR mpfr REQUIRED)
find_library(FORNAX_GMP gmp REQUIRED)
target_include_directories(test_flex SYSTEM PRIVATE ${FORNAX_MPFR_INCLUDE})
target_link_libraries(test_flex PRIVATE ${FORNAX_MPFR} ${FORNAX_GMP})

# Stand-ins for libcuda and libnvrtc, beside the program that opens them.
foreach(name fake_driver fake_nvrtc)
  string(REPLACE fake_ fake/ source ${name})
  add_library(${name} MODULE ${PROJECT_SOURCE_DIR}/tests/cuda/${source}.cpp)
  target_link_libraries(${name} PRIVATE fornax_inside)
  set_target_properties(${name} PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(test_cuda ${name})
endforeach()

# With clang: each of tests/fuzz/*.cpp as a libFuzzer program, build/<preset>/fuzz/<name>.
option(FORNAX_FUZZ "build the fuzzers" OFF)
if(FORNAX_FUZZ)
  file(GLOB targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
  foreach(source IN LISTS targets)
    cmake_path(GET source STEM name)
    fornax_program(fuzz_${name} fuzz ${name} ${source})
    target_link_libraries(fuzz_${name} PRIVATE fornax_inside)
    target_compile_definitions(fuzz_${name} PRIVATE FORNAX_FUZZ)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
endif()

file(GLOB lessons CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/tour/*.cpp)
foreach(source IN LISTS lessons)
  cmake_path(GET source STEM name)
  fornax_program(tour_${name} docs/tour ${name} ${source})
  fornax_add_test(tour.${name} tour_${name})
endforeach()

# The scripts compile and time things themselves, which says nothing new under a sanitizer.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/build/*.sh)
  foreach(script IN LISTS scripts)
    cmake_path(GET script STEM name)
    fornax_add_test(build.${name} bash ${script} ${PROJECT_BINARY_DIR})
    set_tests_properties(build.${name} PROPERTIES RUN_SERIAL ON LABELS build)
  endforeach()
endif()

add_custom_target(bench)
file(GLOB benches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
foreach(source IN LISTS benches)
  cmake_path(GET source STEM name)
  file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/${name}/*.cpp
    ${PROJECT_SOURCE_DIR}/bench/common/*.cpp)
  fornax_program(bench_${name} bench ${name} ${source} ${parts})
  target_link_libraries(bench_${name} PRIVATE fornax::gpu fornax_inside)
  set_target_properties(bench_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(bench bench_${name})
endforeach()
