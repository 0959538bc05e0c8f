"""The drift film: how the mosaic straightens, answer by answer."""
