"""How tokens are numbered, in words that several families share."""

from __future__ import annotations

from posenc.support.languages import Words, clauses

SEQUENCE = Words("0, 1, 2, … along the sequence", "沿序列 0, 1, 2, …")
LIKE_TEXT = clauses(
    SEQUENCE, Words("image patches and audio frames count like text tokens", "图块和音频帧与文本词元一样计数")
)
EACH_PART = Words("each part counts its own tokens", "每个部分各自计数")
NOT_PADDING = Words("0, 1, 2, … over non-padding tokens", "对非填充词元 0, 1, 2, …")
WITH_PADDING = Words("0, 1, 2, … along the sequence, including padding", "沿序列 0, 1, 2, …，填充也计数")
NONE = Words("none", "无")
OTHER_SIZES = Words("(row, column, height, width) for images of another size", "图像尺寸不同时为（行, 列, 高, 宽）")
SAME_FRAMES = Words(
    "all frames of a video have the same positions, and each is a sequence of its own",
    "视频的所有帧位置相同，每帧自成一个序列",
)


def three_axes(patches: Words) -> Words:
    """Of time, row and column; an image counts `patches`."""
    return Words(
        "text: (time, row, column) are equal and increase by one per token; an image starts at the next position, its rows "
        f"and columns counted from there in {patches.en}; text continues after the larger of its height and width",
        "文本的（时间, 行, 列）相等，每个词元加一；图像从下一个位置起，行和列由此"
        f"以{patches.zh}计；文本从其高和宽中较大者之后继续",
    )


def video_clips(counts: Words) -> Words:
    """Of time, row and column; the time of a clip is what `counts` says."""
    return clauses(
        THREE_AXES,
        Words(
            f"a video clip is one image whose time counts {counts.en}; text after it may start before its last frame",
            f"视频片段是一张图像，其时间以{counts.zh}计；其后的文本可能从最后一帧之前开始",
        ),
    )


THREE_AXES = three_axes(Words("merged patches", "合并后的图块"))
VIDEO_FRAMES = clauses(
    THREE_AXES,
    Words("each video frame is an image of its own, with text between", "视频的每一帧各是一张图像，其间有文本"),
)
VIDEO_CLIPS = video_clips(Words("frames", "帧"))
VIDEO_SECONDS = video_clips(
    Words("⌊frame · second_per_grid_ts · tokens_per_second⌋", " ⌊帧 · second_per_grid_ts · tokens_per_second⌋ ")
)
VIDEO_MERGED = video_clips(Words("groups of temporal_merge_size frames", "每 temporal_merge_size 帧一组"))
