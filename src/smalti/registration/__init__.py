"""Register two images: landmarks, or the reason why not. By keypoints (`keypoints.py`) or pixels (`dense.py`)."""
