"""What no test, or no law, can see of some mutants, each with the reason."""

# They change nothing that anyone can see: they count neither as caught nor as survivors.
EQUIVALENT: dict[str, str] = {
    "attention/backends/toeplitz/bias_gradients.cpp: channels: * side + 3 * few + → 4 ⟵ 3": "takes more memory than needed",
    "kernels/rotation/rotation.cpp: ask_for_rows_ahead: 0 ; line < row ; line → <= ⟵ <": "asks the cache for one line more",
    "kernels/cope_counts/cope_counts.cpp: backward: j ] : 0.0f ; s . → (1.5 * 0.0f) ⟵ 0.0f": "the same zero",
    "kernels/cope_counts/cope_counts.cpp: posenc_cope_counts: instructions ( ) >= AVX2 ) return → > ⟵ >=": (
        "with AVX2 the same bits by narrower vectors"
    ),
    "frequencies/scalings.py: dype: True → False": "zip is strict over four lists of one length",
    "kernels/sin_cos/sin_cos.cpp: sin_cos: ( x ) <= FAR ) ) → < ⟵ <=": "at that angle both ways are right to 2e-16",
}

# They change how the same results are computed: tests that count the work see them, laws do not.
OF_WORK_ONLY: dict[str, str] = {
    "attention/windows.py: _block": "how many queries are handed over at once",
    "attention/windows.py: _chunk_ends": "how many keys are handed over that the mask hides",
    "kernels/eager.py: plain_on_cpu": "whether a kernel is called directly or through its operator",
}
