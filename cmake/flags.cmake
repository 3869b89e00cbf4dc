# How our own code is compiled.  Users of the library inherit C++20 and nothing else of this.
set(CMAKE_CXX_EXTENSIONS OFF)
if(BUILD_SHARED_LIBS)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  find_program(FORNAX_CCACHE ccache)
  if(FORNAX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # What the sloppiness names is what it needs for precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros ${FORNAX_CCACHE})
  endif()
  find_program(FORNAX_MOLD mold)
  if(FORNAX_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# For every target of ours.
add_library(fornax_flags INTERFACE)
target_compile_features(fornax_flags INTERFACE cxx_std_20)
target_compile_options(fornax_flags INTERFACE
  -Wall -Wextra -Wconversion
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>  # clang counts it to -Wconversion, g++ does not
  $<$<BOOL:${FORNAX_WERROR}>:-Werror>
  -ffp-contract=off  # with contraction, results would depend on the compiler
  -ffunction-sections -fdata-sections)  # so that --gc-sections can drop what a program does not use

# For what may look inside: rooms, backends, tests, benches.  Third parties stay in here.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
# The CMake packages of these would link libraries that we do not need (fmt.cpp, highway.cpp).
find_path(FORNAX_FMT_INCLUDE fmt/core.h REQUIRED)
find_path(FORNAX_TOML_INCLUDE toml++/toml.h REQUIRED)
find_path(FORNAX_HWY_INCLUDE hwy/highway.h REQUIRED)

add_library(fornax_inside INTERFACE)
target_link_libraries(fornax_inside INTERFACE
  fornax_flags nlohmann_json::nlohmann_json ZLIB::ZLIB Threads::Threads)
target_include_directories(fornax_inside INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_include_directories(fornax_inside SYSTEM INTERFACE
  ${FORNAX_FMT_INCLUDE} ${FORNAX_TOML_INCLUDE} ${FORNAX_HWY_INCLUDE})
