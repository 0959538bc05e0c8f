"""The drift film: how the mosaic improves, answer by answer."""
