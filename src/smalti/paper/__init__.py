"""The paper's method, literally: linear affine adjustment, Haralick's covariance, one question at a time."""
