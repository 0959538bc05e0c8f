"""The engine: links of any rank, the learned camera, one adjustment, one covariance."""
