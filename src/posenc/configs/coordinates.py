"""How tokens are numbered, in words that several families share."""

from __future__ import annotations

from posenc.configs.say import say
from posenc.support.languages import Words, clauses

SEQUENCE = say("0, 1, 2, … along the sequence")
LIKE_TEXT = clauses(SEQUENCE, say("image patches and audio frames count like text tokens"))
EACH_PART = say("each part counts its own tokens")
NOT_PADDING = say("0, 1, 2, … over non-padding tokens")
WITH_PADDING = say("0, 1, 2, … along the sequence, including padding")
NONE = say("none")
OTHER_SIZES = say("(row, column, height, width) for images of another size")
SAME_FRAMES = say("all frames of a video have the same positions, and each is a sequence of its own")


def three_axes(patches: Words) -> Words:
    """Of time, row and column; an image counts `patches`."""
    return say(
        "text: (time, row, column) are equal and increase by one per token; an image starts at the next "
        "position, its rows and columns counted from there in {patches}; text continues after the larger "
        "of its height and width",
        patches=patches,
    )


def video_clips(counts: Words) -> Words:
    """Of time, row and column; the time of a clip is what `counts` says."""
    return clauses(
        THREE_AXES,
        say(
            "a video clip is one image whose time counts {counts}; text after it may start before its last frame",
            counts=counts,
        ),
    )


THREE_AXES = three_axes(say("merged patches"))
VIDEO_FRAMES = clauses(THREE_AXES, say("each video frame is an image of its own, with text between"))
VIDEO_CLIPS = video_clips(say("frames"))
VIDEO_SECONDS = video_clips(say("⌊frame · second_per_grid_ts · tokens_per_second⌋"))
VIDEO_MERGED = video_clips(say("groups of temporal_merge_size frames"))
