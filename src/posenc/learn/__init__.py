"""What the founding notes teach: `walk` through their figures, and `claims`, the ledger of what they say."""

from posenc.learn import claims as claims
from posenc.learn import walk as walk
