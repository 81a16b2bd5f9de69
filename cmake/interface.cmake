# What the public interface is made of, generated before anything compiles:
#   include/aclnnop/aclnn_*.h   prototypes of the implemented operators (src/aclnn/prototypes.tsv x operators.def)
#   public_names.h              #define aclnnAdd core_aclnnAdd ... : inside the core every public name carries a prefix, so that
#                               the sonames can export the plain names and jump to it
#   sonames/*.S, *.map          those jumps, and the version scripts
file(GLOB_RECURSE operator_tables CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/aclnn/*.def ${CMAKE_SOURCE_DIR}/src/sonames/*.txt)
set(interface_tool ${CMAKE_SOURCE_DIR}/tools/make_interface.py)
set(interface_stamp ${CMAKE_BINARY_DIR}/interface.stamp)
add_custom_command(
  OUTPUT ${interface_stamp} ${CMAKE_BINARY_DIR}/public_names.h ${CMAKE_BINARY_DIR}/sonames/ascendcl.S
         ${CMAKE_BINARY_DIR}/sonames/nnopbase.S ${CMAKE_BINARY_DIR}/sonames/opapi.S
  COMMAND ${Python3_EXECUTABLE} ${interface_tool} --source ${CMAKE_SOURCE_DIR} --output ${CMAKE_BINARY_DIR}
          --cc ${CMAKE_C_COMPILER}
  COMMAND ${CMAKE_COMMAND} -E touch ${interface_stamp}
  DEPENDS ${operator_tables} ${interface_tool} ${CMAKE_SOURCE_DIR}/src/aclnn/prototypes.tsv
  VERBATIM)
add_custom_target(public_interface DEPENDS ${interface_stamp})
