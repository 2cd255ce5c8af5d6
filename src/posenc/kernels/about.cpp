// What the library was built from.
extern "C" __attribute__((visibility("default"))) const char* posenc_sources() { return POSENC_SOURCES; }
