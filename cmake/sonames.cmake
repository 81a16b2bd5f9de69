# libnpu_core.so (private) and CANN's public library names over it.
get_property(core_objects GLOBAL PROPERTY CORE_OBJECTS)
set(core_object_files "")
foreach(object ${core_objects})
  list(APPEND core_object_files $<TARGET_OBJECTS:${object}>)
endforeach()

add_library(npu_core SHARED ${core_object_files})
target_link_libraries(npu_core PRIVATE Threads::Threads m ${CMAKE_DL_LIBS})
target_link_options(npu_core PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/sonames/npu_core.map -Wl,-z,defs -Wl,-z,nodelete)
add_dependencies(npu_core public_interface)
# LAPACK is loaded when it is needed, from where pip puts it beside the package that these libraries are in.
set(core_path "$ORIGIN:$ORIGIN/../../../scipy_openblas32/lib")
set_target_properties(npu_core PROPERTIES LINKER_LANGUAGE C BUILD_RPATH "${core_path}" INSTALL_RPATH "${core_path}"
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib64)

function(add_soname name)
  add_library(${name} SHARED ${CMAKE_BINARY_DIR}/sonames/${name}.S)
  add_dependencies(${name} public_interface)
  target_link_libraries(${name} PRIVATE npu_core)
  target_link_options(${name} PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/sonames/${name}.map)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN"
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib64)
endfunction()
foreach(name ${SONAMES})
  add_soname(${name})
endforeach()
# Programs that link to libascendcl alone find the names of these in its dependencies.
target_link_options(ascendcl PRIVATE -Wl,--no-as-needed)
target_link_libraries(ascendcl PRIVATE profapi runtime c_sec)
# Handles are looked up through the operators' libraries.
foreach(name opapi opapi_math opapi_nn opapi_cv opapi_transformer)
  target_link_options(${name} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(${name} PRIVATE nnopbase)
endforeach()
