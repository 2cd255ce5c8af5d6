// The tables that other kernels compute too.
#pragma once

#include <cstdint>

#include "exported.h"

// sin and cos of (starts[b] + t) · frequencies[n] to sin and cos at strides[0]·b + strides[1]·t + strides[2]·n.
EXPORTED void posenc_sin_cos_consecutive(const int64_t* starts, int64_t rows, int64_t length, const double* frequencies, int64_t n,
                                         void* sin, void* cos, const int64_t* strides, int fp64, int threads);
