# The kinds of target: rooms, backends and runtimes make up the libraries; programs use them.

# The sources of one folder, compiled apart and gathered into a library.
function(fornax_room library name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(sources)
    add_library(fornax_${name} OBJECT ${sources})
    target_link_libraries(fornax_${name} PRIVATE fornax_inside)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:fornax_${name}>)
  endif()
endfunction()

# The registry, src/backend/registry.cpp, calls make_backend() of each, in order.
function(fornax_backend name)
  fornax_room(fornax backend_${name} backends/${name})
  set_property(GLOBAL APPEND PROPERTY fornax_backends "FORNAX_BACKEND(${name})")
endfunction()
# A runtime registers itself by a static initialiser; library.cmake keeps linkers from dropping it.
function(fornax_runtime name)
  fornax_room(fornax_gpu runtime_${name} runtimes/${name})
endfunction()

# A program that sees the library as a user does, in build/<preset>/<folder>/<name>.
function(fornax_program target folder name)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE fornax::fornax fornax_flags)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
endfunction()
