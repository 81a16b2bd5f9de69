/* Kernels of elementwise_activation.def. */
#include "kernels/elementwise_loop.h"
#include "kernels/elementwise_functions.h"

#define OP(name, inputs, result, cost)
#include "kernels/elementwise_activation.def"
