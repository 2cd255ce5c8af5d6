// EXPORTED marks a function that Python calls: C linkage, visible outside the library.
#pragma once

#if defined(_WIN32)
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C" __attribute__((visibility("default")))
#endif
