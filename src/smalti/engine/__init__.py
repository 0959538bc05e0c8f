"""The engine: landmarks → links → maps, lens, noise, rejected links, covariance."""
