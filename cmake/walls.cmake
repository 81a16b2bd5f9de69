# A folder of src/ sees another only through a directory of links made for it, so that a wrong include doesn't compile.
function(make_wall folder)
  set(wall ${CMAKE_BINARY_DIR}/walls/${folder})
  file(MAKE_DIRECTORY ${wall})
  foreach(seen ${ARGN})
    if(NOT EXISTS ${wall}/${seen})
      file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${seen} ${wall}/${seen} SYMBOLIC)
    endif()
  endforeach()
endfunction()

# walled_sources(<target> <folder> SEES <folders>): adds the folder's .c files to the target.
function(walled_sources target folder)
  cmake_parse_arguments(WALL "" "" "SEES" ${ARGN})
  make_wall(${folder} ${WALL_SEES})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.c)
  if(NOT sources) # a folder whose first file is still to come
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${folder}.c "typedef int nothing_here;\n")
    set(sources ${CMAKE_BINARY_DIR}/empty_${folder}.c)
  endif()
  target_sources(${target} PRIVATE ${sources})
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/walls/${folder} ${CMAKE_SOURCE_DIR}/include
                             ${CMAKE_BINARY_DIR}/include)
endfunction()

# walled_library(<folder> SEES <folders>): object library core_<folder>; part of libnpu_core.
function(walled_library folder)
  add_library(core_${folder} OBJECT)
  walled_sources(core_${folder} ${folder} ${ARGN})
  target_compile_options(core_${folder} PRIVATE -include ${CMAKE_BINARY_DIR}/public_names.h)
  add_dependencies(core_${folder} public_interface)
  set_property(GLOBAL APPEND PROPERTY CORE_OBJECTS core_${folder})
endfunction()
