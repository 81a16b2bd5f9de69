/* Ends a template that included gemm_pack.h: undefines what it and the includer defined. */
#undef PANEL
#undef QUAD
#undef SHUFFLE
#undef REAL
#undef VECTOR
#undef TAG
#undef REAL_DTYPE
#undef GEMM_INDEX
