// Returns the fingerprint of the sources that the library was built from.
#include "exported.h"

EXPORTED const char* posenc_sources() { return POSENC_SOURCES; }
