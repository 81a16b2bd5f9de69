# What the public interface is made of, generated before anything compiles:
#   include/aclnnop/aclnn_*.h   prototypes of the implemented operators (src/aclnn/prototypes.tsv x operators.def), under CANN's
#                               header names (src/aclnn/headers.tsv)
#   public_names.h              #define aclnnAdd core_aclnnAdd ... : inside the core every public name carries a prefix, so that
#                               the sonames can export the plain names and jump to it
#   sonames/*.S, *.map          those jumps, and the version scripts
#   unsupported.c               public functions that only refuse (src/runtime/unsupported.txt)
file(GLOB soname_lists CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/sonames/*.txt)
set(SONAMES "")
set(soname_outputs "")
foreach(list ${soname_lists})
  get_filename_component(name ${list} NAME_WE)
  list(APPEND SONAMES ${name})
  list(APPEND soname_outputs ${CMAKE_BINARY_DIR}/sonames/${name}.S)
endforeach()
file(GLOB public_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/*/*.h)
file(GLOB_RECURSE operator_tables CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/aclnn/*.def)
set(interface_tool ${CMAKE_SOURCE_DIR}/tools/make_interface.py)
set(interface_stamp ${CMAKE_BINARY_DIR}/interface.stamp)
add_custom_command(
  OUTPUT ${interface_stamp} ${CMAKE_BINARY_DIR}/public_names.h ${CMAKE_BINARY_DIR}/unsupported.c ${soname_outputs}
  COMMAND ${Python3_EXECUTABLE} ${interface_tool} --source ${CMAKE_SOURCE_DIR} --output ${CMAKE_BINARY_DIR}
          --cc ${CMAKE_C_COMPILER}
  COMMAND ${CMAKE_COMMAND} -E touch ${interface_stamp}
  DEPENDS ${operator_tables} ${soname_lists} ${public_headers} ${interface_tool} ${CMAKE_SOURCE_DIR}/tools/make_unsupported.py
          ${CMAKE_SOURCE_DIR}/src/aclnn/prototypes.tsv ${CMAKE_SOURCE_DIR}/src/aclnn/headers.tsv
          ${CMAKE_SOURCE_DIR}/src/runtime/unsupported.txt
  VERBATIM)
add_custom_target(public_interface DEPENDS ${interface_stamp})
