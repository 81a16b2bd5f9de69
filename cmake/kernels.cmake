# Kernels: every file but select.c once per instruction set of this architecture (SOFTNPU_ISAS lists them, worst first).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(SOFTNPU_ISAS neon)
  set(ISA_FLAGS_neon "")
else()
  set(SOFTNPU_ISAS baseline avx2 avx512)
  set(ISA_FLAGS_baseline "")
  set(ISA_FLAGS_avx2 -march=x86-64-v3)
  set(ISA_FLAGS_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
endif()

make_wall(kernels base kernels)
file(GLOB kernel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/*.c)
list(REMOVE_ITEM kernel_sources ${CMAKE_SOURCE_DIR}/src/kernels/select.c)
set(isa_list_macro "")
foreach(isa ${SOFTNPU_ISAS})
  add_library(core_kernels_${isa} OBJECT ${kernel_sources})
  target_include_directories(core_kernels_${isa} PRIVATE ${CMAKE_BINARY_DIR}/walls/kernels)
  target_compile_definitions(core_kernels_${isa} PRIVATE ISA=${isa})
  target_compile_options(core_kernels_${isa} PRIVATE -O3 ${ISA_FLAGS_${isa}})
  set_property(GLOBAL APPEND PROPERTY CORE_OBJECTS core_kernels_${isa})
  string(APPEND isa_list_macro " X(${isa})")
endforeach()
# Matrix and convolution kernels may fuse multiply and add; nothing else may, so that all ISAs agree bit for bit.
foreach(contracted gemm conv)
  file(GLOB contracted_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/${contracted}*.c)
  set_source_files_properties(${contracted_sources} PROPERTIES COMPILE_OPTIONS "-ffp-contract=fast")
endforeach()

# GCC 12 makes fused multiply-adds of complex products when it vectorises them, contraction or not.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/elementwise_complex.c PROPERTIES COMPILE_OPTIONS
                            "-fno-tree-vectorize;-fno-tree-slp-vectorize")
# C's complex product looks for infinities after each multiplication; decompositions have none.
include(CheckCCompilerFlag)
check_c_compiler_flag(-fcx-limited-range HAS_CX_LIMITED_RANGE) # clang before 18 hasn't
if(HAS_CX_LIMITED_RANGE)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/kernels/linalg.c PROPERTIES COMPILE_OPTIONS "-fcx-limited-range")
endif()

add_library(core_kernel_select OBJECT ${CMAKE_SOURCE_DIR}/src/kernels/select.c)
target_include_directories(core_kernel_select PRIVATE ${CMAKE_BINARY_DIR}/walls/kernels)
target_compile_options(core_kernel_select PRIVATE "-DKERNEL_ISA_LIST(X)=${isa_list_macro}")
set_property(GLOBAL APPEND PROPERTY CORE_OBJECTS core_kernel_select)
