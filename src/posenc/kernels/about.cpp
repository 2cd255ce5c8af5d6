// What the library tells about itself.
#include "exported.h"
#include "processor.h"

// The fingerprint of the sources that it was built from.
EXPORTED const char* posenc_sources() { return POSENC_SOURCES; }

// The instructions that it uses on this processor.
EXPORTED const char* posenc_instructions() { return posenc::NAMES[posenc::instructions()]; }
