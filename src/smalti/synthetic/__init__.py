"""Image sequences of which the truth is known exactly: a scene, a camera's path over it, and the camera's faults."""
