"""How tokens are numbered, in words that several families share."""

from __future__ import annotations

SEQUENCE = "0, 1, 2, … along the sequence"
LIKE_TEXT = SEQUENCE + "; image patches and audio frames count like text tokens"
EACH_PART = "each part counts its own tokens"

THREE_AXES = (
    "text: (time, row, column) are equal and increase by one per token; an image starts at the next position, its rows and "
    "columns counted from there in merged patches; text continues after the larger of its height and width"
)
VIDEO_FRAMES = THREE_AXES + "; each video frame is an image of its own, with text between"
VIDEO_CLIPS = (
    THREE_AXES + "; a video clip is one image whose time counts frames; text after it may start before its last frame"
)
VIDEO_SECONDS = VIDEO_CLIPS.replace("counts frames", "counts ⌊frame · second_per_grid_ts · tokens_per_second⌋")
VIDEO_MERGED = VIDEO_CLIPS.replace("counts frames", "counts groups of temporal_merge_size frames")
