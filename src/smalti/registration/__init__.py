"""From two images to landmarks, or to a clear no: keypoints, matches, and the map that they agree on."""
